#include "rt/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/wire.h"
#include "rt/archive.h"
#include "rt/linktree.h"
#include "rt/whiteout.h"

#define ID_BASE  0x6fff0000u /* just below the sandboxes' */
#define ID_COUNT 65536u

#define MAX_ARCHIVES 512
#define MEMORY_MAX   ((rlim_t)2 << 30) /* a window of zstd may be 128 MB */

struct source {
    int fd;
    const char *diff_id; /* NULL when it is not known */
};

struct job {
    bool own;           /* root, owners are kept */
    int dest;           /* the directory to work in */
    int base;           /* a tree to start from, or -1 */
    const char *remove; /* a name in dest to remove, instead of unpacking */
    struct ab_archive_rules rules;
    struct source sources[MAX_ARCHIVES];
    int count;
};

static int fail(const struct ab_err *err)
{
    fprintf(stderr, "%s %s\n", ab_err_name(err->code), err->msg);
    return 1;
}

static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
    int saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
    return n < 0 ? -1 : 0;
}

/* ---- confinement ---- */

static int only_caps(uint32_t keep)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{.permitted = keep, .effective = keep}};
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
            return -1;
    return (int)syscall(SYS_capset, &head, data);
}

static int give_up_rights(struct ab_err *err)
{
    const uint32_t keep = 1u << CAP_CHOWN | 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER |
                          1u << CAP_FSETID | 1u << CAP_SETFCAP;
    const struct rlimit memory = {MEMORY_MAX, MEMORY_MAX}, none = {0, 0};
    if (setrlimit(RLIMIT_CORE, &none) < 0 || setrlimit(RLIMIT_NPROC, &none) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || only_caps(keep) < 0)
        return ab_err_sys(err, errno, "give up rights");
#if !defined(__SANITIZE_ADDRESS__)
    if (setrlimit(RLIMIT_AS, &memory) < 0)
        return ab_err_sys(err, errno, "limit the memory");
#else
    (void)memory;
#endif
    umask(022); /* for directories that an archive only implies */
    return 0;
}

/* The root becomes a detached mount of the destination: above it there is nothing. */
static int enter(int tree, struct ab_err *err)
{
    if (fchdir(tree) < 0 || chroot(".") < 0)
        return ab_err_sys(err, errno, "change the root");
    close(tree);
    return give_up_rights(err);
}

static int detached(int dir, struct ab_err *err)
{
    int tree = (int)syscall(SYS_open_tree, dir, "",
                            OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
    if (tree < 0 && errno == EPERM && geteuid() == 0)
        return ab_err_set(err, AB_EUNSUPPORTED,
                          "root without the right to mount (CAP_SYS_ADMIN) cannot "
                          "unpack; an ordinary user can");
    return tree < 0 ? ab_err_sys(err, errno, "clone the destination") : tree;
}

static int new_namespaces(struct ab_err *err)
{
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC |
                CLONE_NEWUTS) < 0)
        return ab_err_set(err, AB_EUNSUPPORTED,
                          "unpacking needs user namespaces: %s (see agentbox doctor)",
                          strerror(errno));
    return 0;
}

/* ---- what is done inside ---- */

static int unpack_all(struct job *job, struct ab_err *err)
{
    struct ab_archive_counts counts = {0};
    for (int i = 0; i < job->count; i++) {
        const struct source *s = &job->sources[i];
        if (ab_archive_unpack(s->fd, &job->rules, &counts, err) < 0)
            return ab_err_wrap(err, "layer %d of %d", i + 1, job->count);
        if (s->diff_id && strcmp(s->diff_id, counts.diff_id) != 0)
            return ab_err_set(err, AB_EPROTOCOL,
                              "layer %d of %d unpacks to sha256:%.16s..., and the image "
                              "promises sha256:%.16s...",
                              i + 1, job->count, counts.diff_id, s->diff_id);
        printf("diff_id %s\n", counts.diff_id);
        job->rules.fresh = false;
    }
    printf("entries %llu\nbytes %llu\nskipped %llu\nstripped %llu\n",
           (unsigned long long)counts.entries, (unsigned long long)counts.bytes,
           (unsigned long long)counts.skipped, (unsigned long long)counts.stripped);
    return 0;
}

static int work(struct job *job, int tree)
{
    struct ab_err err = {0};
    if (enter(tree, &err) < 0 ||
        (job->remove ? ab_tree_remove(job->remove, &err) : unpack_all(job, &err)) < 0)
        return fail(&err);
    return fflush(stdout) == 0 ? 0 : 1;
}

/* ---- as an ordinary user ---- */

static int work_flat(struct job *job)
{
    struct ab_err err = {0};
    char uids[64], gids[64];
    snprintf(uids, sizeof uids, "0 %u 1", (unsigned)geteuid());
    snprintf(gids, sizeof gids, "0 %u 1", (unsigned)getegid());
    /* Only the current directory goes along into the new mount namespace. */
    if (fchdir(job->dest) < 0) {
        ab_err_sys(&err, errno, "enter the destination");
        return fail(&err);
    }
    if (new_namespaces(&err) < 0)
        return fail(&err);
    if (write_text("/proc/self/setgroups", "deny") < 0 ||
        write_text("/proc/self/uid_map", uids) < 0 ||
        write_text("/proc/self/gid_map", gids) < 0) {
        ab_err_sys(&err, errno, "map our own user id");
        return fail(&err);
    }
    if (job->base >= 0 && ab_link_tree(job->base, job->dest, &err) < 0)
        return fail(&err);
    int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (here < 0) {
        ab_err_sys(&err, errno, "enter the destination");
        return fail(&err);
    }
    int tree = detached(here, &err);
    return tree < 0 ? fail(&err) : work(job, tree);
}

/* ---- as root ---- */

/* The worker: its ids come from outside, and with them the mount to work in. */
static int work_owned(struct job *job, int sock)
{
    struct ab_err err = {0};
    uint8_t byte[16];
    int fds[AB_WIRE_FDS], nfds = 0;
    if (new_namespaces(&err) < 0)
        return fail(&err);
    if (ab_wire_send(sock, (const uint8_t *)"r", 1, NULL, 0, 0) < 0 ||
        ab_wire_recv(sock, byte, fds, &nfds, 0) != 1 || nfds != 1)
        return 1; /* the other side has said why */
    close(sock);
    close(job->dest);
    if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0) {
        ab_err_sys(&err, errno, "become root of the namespace");
        return fail(&err);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of user takes it back */
    return work(job, fds[0]);
}

/* Writes the ids of the worker's namespace; gives the mount that it works in. Where the
 * file system cannot map ids, as an overlay cannot, they are root's own. */
static int make_tree(const struct job *job, pid_t pid, bool mapped, struct ab_err *err)
{
    char path[64], map[64];
    snprintf(map, sizeof map, "0 %u %u", mapped ? ID_BASE : 0, ID_COUNT);
    snprintf(path, sizeof path, "/proc/%d/uid_map", (int)pid);
    int rc = write_text(path, map);
    snprintf(path, sizeof path, "/proc/%d/gid_map", (int)pid);
    if (rc < 0 || write_text(path, map) < 0)
        return ab_err_sys(err, errno, "map the user ids");
    int tree = detached(job->dest, err);
    if (tree < 0 || !mapped)
        return tree;
    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    int userns = open(path, O_RDONLY | O_CLOEXEC);
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP,
                              .userns_fd = (uint64_t)userns};
    if (userns >= 0 &&
        syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof attr) == 0) {
        close(userns);
        return tree;
    }
    int saved = errno;
    close(userns);
    close(tree);
    return ab_err_sys(err, saved, "map ids of the destination");
}

/* Serves one worker; its status, or -1 when it could not begin. */
static int serve(const struct job *job, pid_t pid, int sock, bool mapped,
                 struct ab_err *err)
{
    uint8_t byte[16];
    int fds[AB_WIRE_FDS], nfds = 0, status = 0;
    bool began = ab_wire_recv(sock, byte, fds, &nfds, 0) == 1;
    int tree = began ? make_tree(job, pid, mapped, err) : -1;
    if (tree >= 0)
        ab_wire_send(sock, (const uint8_t *)"t", 1, &tree, 1, 0);
    close(sock);
    if (tree >= 0)
        close(tree);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (began && tree < 0)
        return -1;
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    fprintf(stderr, "%s the unpacking process was killed by signal %d%s\n",
            ab_err_name(AB_EINVALID), WTERMSIG(status),
            WTERMSIG(status) == SIGKILL ? " (out of memory?)" : "");
    return 1;
}

static int run_owned(struct job *job)
{
    struct ab_err err = {0};
    if (job->base >= 0 && ab_link_tree(job->base, job->dest, &err) < 0)
        return fail(&err);
    for (int mapped = 1; mapped >= 0; mapped--) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
            ab_err_sys(&err, errno, "make a socket");
            break;
        }
        pid_t pid = fork();
        if (pid == 0) {
            close(pair[0]);
            _exit(work_owned(job, pair[1]));
        }
        close(pair[1]);
        int status = pid < 0 ? -1 : serve(job, pid, pair[0], mapped, &err);
        if (status >= 0)
            return status;
        if (pid < 0) {
            ab_err_sys(&err, errno, "start a process");
            break;
        }
    }
    return fail(&err);
}

/* ---- the command line ---- */

static int open_dir(const char *path, struct ab_err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return ab_err_sys(err, errno, "open %s", path);
    return fd;
}

static int run(struct job *job)
{
    struct ab_err err = {0};
    if (ab_archive_load(&err) < 0)
        return fail(&err);
    return job->own ? run_owned(job) : work_flat(job);
}

static int unpack(int argc, char **argv)
{
    struct ab_err err = {0};
    struct job job = {.base = -1};
    job.rules.layer = strcmp(argv[1], "layer") == 0;
    job.own = job.rules.owners = strcmp(argv[2], "own") == 0;
    job.rules.max_bytes = strtoull(argv[4], NULL, 10);
    job.rules.max_entries = strtoull(argv[5], NULL, 10);
    job.rules.fresh = strcmp(argv[3], "-") == 0;
    job.count = (argc - 6) / 2;
    if (job.count > MAX_ARCHIVES) {
        ab_err_set(&err, AB_ETOOBIG, "more than %d layers", MAX_ARCHIVES);
        return fail(&err);
    }
    job.dest = open_dir(argv[0], &err);
    if (job.dest >= 0 && !job.rules.fresh)
        job.base = open_dir(argv[3], &err);
    if (job.dest < 0 || (!job.rules.fresh && job.base < 0))
        return fail(&err);
    /* Programs with setuid bits will lie there: not for other users of this machine. */
    if (fchmodat(job.dest, "..", 0700, 0) < 0) {
        ab_err_sys(&err, errno, "make the folder of %s private", argv[0]);
        return fail(&err);
    }
    for (int i = 0; i < job.count; i++) {
        const char *path = argv[6 + 2 * i], *diff_id = argv[7 + 2 * i];
        job.sources[i].fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        job.sources[i].diff_id = strcmp(diff_id, "-") == 0 ? NULL : diff_id;
        if (job.sources[i].fd < 0) {
            ab_err_sys(&err, errno, "open %s", path);
            return fail(&err);
        }
    }
    return run(&job);
}

static int remove_tree(char **argv)
{
    struct ab_err err = {0};
    struct job job = {.base = -1, .own = geteuid() == 0, .remove = argv[1]};
    job.dest = open_dir(argv[0], &err);
    return job.dest < 0 ? fail(&err) : run(&job);
}

static int open_out(const char *path, struct ab_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd < 0 ? ab_err_sys(err, errno, "create %s", path) : fd;
}

static int finish_out(int out, const struct ab_archive_counts *counts, struct ab_err *err)
{
    if (fsync(out) < 0) {
        ab_err_sys(err, errno, "write the layer");
        return fail(err);
    }
    printf("diff_id %s\nentries %llu\nbytes %llu\nskipped %llu\nstripped %llu\n",
           counts->diff_id, (unsigned long long)counts->entries,
           (unsigned long long)counts->bytes, (unsigned long long)counts->skipped,
           (unsigned long long)counts->stripped);
    return fflush(stdout) == 0 ? 0 : 1;
}

/* Reads only what the kernel's overlay wrote, and undoes no compression: not confined. */
static int pack(char **argv)
{
    struct ab_err err = {0};
    struct ab_archive_counts counts = {0};
    struct ab_archive_ids ids = {(uint32_t)strtoul(argv[2], NULL, 10),
                                 (uint32_t)strtoul(argv[3], NULL, 10),
                                 (uint32_t)strtoul(argv[4], NULL, 10)};
    const char *skip = strcmp(argv[5], "-") == 0 ? NULL : argv[5];
    int dir = open(argv[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        ab_err_sys(&err, errno, "open the sandbox's changes");
    int out = dir < 0 ? -1 : open_out(argv[1], &err);
    if (out < 0 || ab_archive_load(&err) < 0 ||
        ab_archive_pack(dir, out, &ids, skip, &counts, &err) < 0)
        return fail(&err);
    return finish_out(out, &counts, &err);
}

static int copy(char **argv)
{
    struct ab_err err = {0};
    struct ab_archive_counts counts = {0};
    struct ab_archive_copy how = {(uint32_t)strtoul(argv[1], NULL, 10),
                                  (uint32_t)strtoul(argv[2], NULL, 10), -1};
    if (strcmp(argv[3], "-") != 0)
        how.mode = (int)strtoul(argv[3], NULL, 8) & 07777;
    int out = open_out(argv[0], &err);
    if (out < 0 || ab_archive_load(&err) < 0 ||
        ab_archive_copy(STDIN_FILENO, out, &how, &counts, &err) < 0)
        return fail(&err);
    return finish_out(out, &counts, &err);
}

static int check(void)
{
    struct ab_err err = {0};
    return ab_archive_load(&err) < 0 ? fail(&err) : 0;
}

int ab_unpack_main(int argc, char **argv)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc >= 8 && argc % 2 == 0 && strcmp(argv[1], "unpack") == 0)
        return unpack(argc - 2, argv + 2);
    if (argc == 4 && strcmp(argv[1], "remove") == 0)
        return remove_tree(argv + 2);
    if (argc == 8 && strcmp(argv[1], "pack") == 0)
        return pack(argv + 2);
    if (argc == 2 && strcmp(argv[1], "check") == 0)
        return check();
    if (argc == 6 && strcmp(argv[1], "copy") == 0)
        return copy(argv + 2);
    fprintf(stderr, "%s started by agentbox itself, not by hand\n",
            ab_err_name(AB_EBADARG));
    return 2;
}
