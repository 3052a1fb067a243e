/* command.c - one command, from EXEC to execve.
 *
 * The child of vfork shares our memory until it has exec'd: it calls nothing that
 * allocates, and what it finds out (errnum) it writes where we can read it. A program
 * that cannot be started is the command's failure, not ours: the child says why on its
 * stderr and exits as a shell would.
 */
#include "init/command.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "init/init.h"
#include "init/sys.h"

#define STATUS_NOT_FOUND  127
#define STATUS_NOT_USABLE 126

struct start {
    const struct ab_wire_exec *m;
    char **argv; /* one free entry before argv[0], for a script without #! */
    char **envp;
    int io[3];
    int terminal;         /* our side of the pty, or -1 */
    int leaf;             /* file to join it by, or -1 */
    volatile bool joined; /* set by the child */
    char path[4096];      /* candidate built from PATH */
    volatile int errnum;  /* set by the child */
};

static void send_exit(int ctl, const struct ab_wire_exit *m)
{
    uint8_t buf[128];
    long n = ab_wire_put_exit(buf, sizeof buf, m);
    if (n > 0)
        ab_wire_send(ctl, buf, (size_t)n, NULL, 0, MSG_DONTWAIT);
}

static void refuse(int ctl, int errnum)
{
    struct ab_wire_exit m = {
        .flags = AB_WIRE_NO_EXEC, .code = STATUS_NOT_USABLE, .errnum = errnum};
    send_exit(ctl, &m);
}

void ab_command_finish(struct pid1 *p, struct command *c)
{
    int status = c->status;
    bool keep = c->keep && !c->killed && p->kept < 0;
    const struct rusage *usage = &c->usage;
    bool signalled = WIFSIGNALED(status);
    struct ab_wire_exit m = {
        .flags = (c->killed ? AB_WIRE_KILLED : 0u) | (c->errnum ? AB_WIRE_NO_EXEC : 0u) |
                 (keep ? AB_WIRE_KEPT : 0u),
        .code = signalled ? -1 : WEXITSTATUS(status),
        .signal = signalled ? WTERMSIG(status) : 0,
        .errnum = c->errnum,
        .user_us = (uint64_t)usage->ru_utime.tv_sec * 1000000 +
                   (uint64_t)usage->ru_utime.tv_usec,
        .system_us = (uint64_t)usage->ru_stime.tv_sec * 1000000 +
                     (uint64_t)usage->ru_stime.tv_usec,
        .max_rss_bytes = (uint64_t)usage->ru_maxrss * 1024,
        .wall_us = ab_now_us() - c->start_us,
    };
    if (c->ctl >= 0)
        send_exit(c->ctl, &m);
    if (keep)
        p->kept = c->ctl;
    else
        sys_close(&c->ctl);
    c->pid = 0;
}

static void complain(const struct start *s, const char *what)
{
    char line[600];
    int n =
        snprintf(line, sizeof line, "agentbox: %.400s: %s\n", what, strerror(s->errnum));
    if (n > 0 && write(2, line, (size_t)n) < 0)
        return;
}

static const char *path_variable(const struct start *s)
{
    for (char **e = s->envp; *e; e++)
        if (!strncmp(*e, "PATH=", 5))
            return *e + 5;
    return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
}

/* As execve, and as a shell does with a script that does not name its interpreter. */
static void try_exec(struct start *s, const char *file)
{
    execve(file, s->argv, s->envp);
    if (errno != ENOEXEC)
        return;
    char *first = s->argv[0];
    s->argv[-1] = (char *)(uintptr_t) "sh";
    s->argv[0] = (char *)(uintptr_t)file;
    execve("/bin/sh", s->argv - 1, s->envp);
    s->argv[0] = first;
}

static void exec_in_path(struct start *s)
{
    const char *name = s->argv[0];
    if (strchr(name, '/') || !*name) {
        try_exec(s, name);
        return;
    }
    int best = ENOENT;
    for (const char *p = path_variable(s), *end; p; p = end ? end + 1 : NULL) {
        end = strchr(p, ':');
        int len = end ? (int)(end - p) : (int)strlen(p);
        int n = snprintf(s->path, sizeof s->path, "%.*s/%s", len ? len : 1, len ? p : ".",
                         name);
        if (n < 0 || (size_t)n >= sizeof s->path)
            continue;
        try_exec(s, s->path);
        if (errno == EACCES || errno == E2BIG || errno == ENOEXEC || errno == ETXTBSY)
            best = errno;
        if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
            break;
    }
    errno = best;
}

static int wire_stdio(struct start *s)
{
    if (s->terminal >= 0 && ioctl(s->io[0], TIOCSCTTY, 0) < 0)
        return -1;
    for (int fd = 0; fd < 3; fd++)
        if (dup2(s->io[fd], fd) < 0)
            return -1;
    return 0;
}

static int become_user(const struct ab_wire_exec *m)
{
    if (m->uid == 0 && m->gid == 0)
        return 0;
    if (syscall(SYS_setgroups, 0, NULL) < 0 && errno != EPERM)
        return -1;
    return syscall(SYS_setresgid, m->gid, m->gid, m->gid) < 0 ||
                   syscall(SYS_setresuid, m->uid, m->uid, m->uid) < 0
               ? -1
               : 0;
}

static int limit_files(const struct ab_wire_exec *m)
{
    struct rlimit now;
    if (!m->nofile)
        return 0;
    if (getrlimit(RLIMIT_NOFILE, &now) < 0)
        return -1;
    now.rlim_cur = m->nofile < now.rlim_max ? m->nofile : now.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &now);
}

/* A cgroup that is not there any more: the engine has given the command up before it was
 * started, and removed it. Then nothing of it shall run. */
static void join_leaf(struct start *s)
{
    if (s->leaf < 0)
        return;
    bool written = write(s->leaf, "0", 1) == 1, gone = !written && errno == ENODEV;
    s->joined = written || gone;
    if (gone)
        _exit(STATUS_NOT_USABLE);
}

/* In the child. */
static AB_NORETURN void run_child(struct start *s)
{
    sigset_t none;
    join_leaf(s);
    setsid();
    setpriority(PRIO_PROCESS, 0, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (wire_stdio(s) < 0 || limit_files(s->m) < 0) {
        s->errnum = errno;
        _exit(STATUS_NOT_USABLE);
    }
    if (become_user(s->m) < 0) {
        s->errnum = errno;
        complain(s, "change to the wanted user");
        _exit(STATUS_NOT_USABLE);
    }
    if (chdir(s->m->cwd) < 0) {
        s->errnum = errno;
        complain(s, s->m->cwd);
        _exit(STATUS_NOT_USABLE);
    }
    exec_in_path(s);
    s->errnum = errno;
    complain(s, s->argv[0]);
    _exit(s->errnum == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_USABLE);
}

static const char *map_strings(const struct ab_wire_exec *m, int fd)
{
    void *p = mmap(NULL, (size_t)m->strings_len, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (ab_wire_is_strings(p, (size_t)m->strings_len, (size_t)m->argc + m->envc))
        return p;
    munmap(p, (size_t)m->strings_len);
    return NULL;
}

static char **split_strings(struct start *s, const char *strings)
{
    size_t argc = s->m->argc, envc = s->m->envc;
    char **v = calloc(argc + envc + 3, sizeof *v);
    if (!v)
        return NULL;
    s->argv = v + 1;
    s->envp = v + argc + 2;
    for (size_t i = 0; i < argc + envc; i++) {
        (i < argc ? s->argv : s->envp - argc)[i] = (char *)(uintptr_t)strings;
        strings += strlen(strings) + 1;
    }
    return v;
}

/* Makes a pty, its inner side as stdin, stdout and stderr, and sends the outer one. */
static int open_terminal(const struct pid1 *p, struct start *s, int ctl)
{
    int unlock = 0;
    struct winsize size = {.ws_row = (unsigned short)s->m->rows,
                           .ws_col = (unsigned short)s->m->cols};
    int outer = openat(p->pts, "ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (outer < 0)
        return -1;
    int inner = -1;
    if (ioctl(outer, TIOCSPTLCK, &unlock) == 0 && ioctl(outer, TIOCSWINSZ, &size) == 0)
        inner = ioctl(outer, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    /* As after a login, its user may open it by its name. */
    if (inner >= 0 && s->m->uid && fchown(inner, s->m->uid, s->m->gid) < 0)
        sys_close(&inner);
    uint8_t buf[16];
    long n = ab_wire_put_bare(buf, sizeof buf, AB_WIRE_STARTED);
    if (inner < 0 || ab_wire_send(ctl, buf, (size_t)n, &outer, 1, MSG_DONTWAIT) < 0) {
        sys_close(&inner);
        close(outer);
        return -1;
    }
    for (int fd = 0; fd < 3; fd++)
        s->io[fd] = fd ? fcntl(inner, F_DUPFD_CLOEXEC, 3) : inner;
    s->terminal = outer;
    return 0;
}

static struct command *free_entry(struct pid1 *p)
{
    for (int i = 0; i < p->used; i++)
        if (!p->commands[i].pid)
            return &p->commands[i];
    return p->used < AB_COMMANDS ? &p->commands[p->used++] : NULL;
}

static pid_t start_child(struct start *s)
{
    pid_t pid = vfork();
    if (pid == 0)
        run_child(s);
    return pid;
}

static int start(struct pid1 *p, struct start *s, const char *strings, int ctl)
{
    struct command *c = free_entry(p);
    char **vector = c ? split_strings(s, strings) : NULL;
    if (!vector) {
        errno = c ? ENOMEM : EAGAIN;
        return -1;
    }
    if ((s->m->flags & AB_WIRE_TERMINAL) && open_terminal(p, s, ctl) < 0) {
        free(vector);
        return -1;
    }
    uint64_t now_us = ab_now_us();
    *c = (struct command){.ctl = ctl,
                          .keep = s->m->flags & AB_WIRE_KEEP,
                          .start_ticks = now_us * 1000 / p->tick_ns,
                          .start_us = now_us};
    pid_t pid = start_child(s);
    int saved = errno;
    if (pid > 0) {
        c->pid = pid;
        c->errnum = s->errnum;
        c->leaf = s->joined ? s->m->leaf : 0;
        p->leaves = p->leaves || s->joined;
    }
    sys_close(&s->terminal);
    free(vector);
    errno = saved;
    return pid > 0 ? 0 : -1;
}

void ab_command_start(struct pid1 *p, const struct ab_wire_exec *m, int *fds, int nfds)
{
    bool in_file = m->flags & AB_WIRE_IN_FILE;
    bool terminal = m->flags & AB_WIRE_TERMINAL;
    bool has_stdin = m->flags & AB_WIRE_STDIN;
    bool same = m->flags & AB_WIRE_SAME;
    if (nfds != !same + (terminal ? 0 : 2) + has_stdin + (m->leaf != 0) + in_file ||
        (terminal && has_stdin) || (same && p->kept < 0)) {
        ab_wire_close_fds(fds, nfds);
        return;
    }
    int ctl = same ? p->kept : fds[0], at = !same;
    if (same)
        p->kept = -1;
    struct start s = {.m = m, .io = {-1, -1, -1}, .terminal = -1, .leaf = -1};
    if (!terminal) {
        s.io[1] = fds[at++];
        s.io[2] = fds[at++];
        s.io[0] = has_stdin ? fds[at++]
                            : fcntl(0, F_DUPFD_CLOEXEC,
                                    3); /* our own stdin is the sandbox's /dev/null */
    }
    if (m->leaf)
        s.leaf = fds[at++];
    int file = in_file ? fds[at] : -1;
    const char *strings = in_file ? map_strings(m, file) : m->strings;
    if (!strings || start(p, &s, strings, ctl) < 0) {
        refuse(ctl, strings ? errno : EPROTO);
        close(ctl);
    }
    ab_wire_close_fds(s.io, 3);
    sys_close(&s.leaf);
    if (in_file) {
        if (strings)
            munmap((void *)(uintptr_t)strings, (size_t)m->strings_len);
        close(file);
    }
}
