#include "rt/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rt/archive.h"
#include "rt/confine.h"
#include "rt/linktree.h"
#include "rt/whiteout.h"

#define MAX_ARCHIVES 512

struct job {
    bool own;           /* root, owners are kept */
    int dest;           /* the directory to work in */
    int base;           /* a tree to start from, or -1 */
    const char *remove; /* a name in dest to remove, instead of unpacking */
    struct ab_archive_rules rules;
    int archives[MAX_ARCHIVES];
    const char *diff_ids[MAX_ARCHIVES]; /* NULL when it is not known */
    int count;
};

static int fail(const struct ab_err *err)
{
    fprintf(stderr, "%s %s\n", ab_err_name(err->code), err->msg);
    return 1;
}

/* ---- what is done inside ---- */

static int unpack_all(struct job *job, struct ab_err *err)
{
    struct ab_archive_counts counts = {0};
    for (int i = 0; i < job->count; i++) {
        const char *diff_id = job->diff_ids[i];
        if (ab_archive_unpack(job->archives[i], &job->rules, &counts, err) < 0)
            return ab_err_wrap(err, "layer %d of %d", i + 1, job->count);
        if (diff_id && strcmp(diff_id, counts.diff_id) != 0)
            return ab_err_set(err, AB_EPROTOCOL,
                              "layer %d of %d unpacks to sha256:%.16s..., and the image "
                              "promises sha256:%.16s...",
                              i + 1, job->count, counts.diff_id, diff_id);
        printf("diff_id %s\n", counts.diff_id);
        job->rules.fresh = false;
    }
    printf("entries %llu\nbytes %llu\nskipped %llu\nstripped %llu\n",
           (unsigned long long)counts.entries, (unsigned long long)counts.bytes,
           (unsigned long long)counts.skipped, (unsigned long long)counts.stripped);
    return 0;
}

static int work(void *arg)
{
    struct ab_err err = {0};
    struct job *job = arg;
    if ((job->remove ? ab_tree_remove(job->remove, &err) : unpack_all(job, &err)) < 0)
        return fail(&err);
    return fflush(stdout) == 0 ? 0 : 1;
}

static int link_base(void *arg, struct ab_err *err)
{
    const struct job *job = arg;
    return job->base < 0 ? 0 : ab_link_tree(job->base, job->dest, err);
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
    const struct ab_confine confine = {.dir = job->dest,
                                       .mapped = job->own,
                                       .fds = job->archives,
                                       .nfds = job->count,
                                       .prepare = link_base,
                                       .work = work,
                                       .arg = job};
    int status = ab_archive_load(&err) < 0 ? -1 : ab_confined(&confine, &err);
    return status < 0 ? fail(&err) : status;
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
        job.archives[i] = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        job.diff_ids[i] = strcmp(diff_id, "-") == 0 ? NULL : diff_id;
        if (job.archives[i] < 0) {
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
