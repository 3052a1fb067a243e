/* command.c - the engine's half of starting a command: pipes, limits of the kernel, EXEC.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "sandbox/sandbox.h"

#define INLINE_MAX (AB_WIRE_MAX - 8192) /* longer strings travel in a memfd */

struct ends {
    int in[2], out[2], err[2], ctl[2]; /* [0] ours, [1] the command's */
};

static void close_ends(struct ends *e, int which)
{
    int *const all[] = {e->in, e->out, e->err, e->ctl};
    for (int i = 0; i < 4; i++) {
        if (all[i][which] >= 0)
            close(all[i][which]);
        all[i][which] = -1;
    }
}

static int open_pipe(int ends[2], bool we_write)
{
    int p[2];
    if (pipe2(p, O_CLOEXEC) < 0)
        return -1;
    ends[0] = p[we_write];
    ends[1] = p[!we_write];
    return fcntl(ends[0], F_SETFL, O_NONBLOCK);
}

/* Only we may write to it: a file's writers wait for each other, so whoever wrote there
 * without end would keep us, and the engine with us, from adding a line. Its owner is
 * nobody whom the sandbox knows (but for an ordinary user's: see lua/stdlib/shell.lua).
 */
static int open_script(int ends[2])
{
    char path[40];
    ends[0] = memfd_create("agentbox-script", MFD_CLOEXEC);
    if (ends[0] < 0 || fchmod(ends[0], 0444) < 0)
        return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    ends[1] = open(path, O_RDONLY | O_CLOEXEC);
    return ends[1] < 0 ? -1 : 0;
}

static int open_stdio(struct ends *e, const struct ab_command *cmd)
{
    if (cmd->terminal)
        return 0;
    if (open_pipe(e->out, false) < 0 || open_pipe(e->err, cmd->script) < 0)
        return -1;
    return cmd->script       ? open_script(e->in)
           : cmd->stdin_pipe ? open_pipe(e->in, true)
                             : 0;
}

static int open_ends(struct ends *e, const struct ab_command *cmd, bool same,
                     struct ab_err *err)
{
    *e = (struct ends){{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
    int fault = AB_FAULT("sandbox_pipe");
    if (!fault &&
        (same || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, e->ctl) == 0) &&
        open_stdio(e, cmd) == 0)
        return 0;
    int errnum = fault ? fault : errno;
    close_ends(e, 0);
    close_ends(e, 1);
    return ab_err_sys(err, errnum, "make the command's pipes");
}

/* Refuses what execve would refuse, so that the caller learns it before anything ran. */
static int measure(const struct ab_command *cmd, size_t *total, struct ab_err *err)
{
    *total = 0;
    for (size_t i = 0; i < cmd->argc + cmd->envc; i++) {
        size_t len = strlen(i < cmd->argc ? cmd->argv[i] : cmd->envp[i - cmd->argc]) + 1;
        if (len > AB_ARG_MAX)
            return ab_err_set(
                err, AB_ETOOBIG,
                "an argument or variable of %zu bytes: the kernel takes %u; use "
                "stdin or a file",
                len - 1, AB_ARG_MAX - 1);
        *total += len;
    }
    if (*total + (cmd->argc + cmd->envc) * sizeof(char *) > AB_ARGS_MAX - 8192)
        return ab_err_set(
            err, AB_ETOOBIG,
            "arguments and environment of %zu bytes: the kernel takes %u; use stdin "
            "or a file",
            *total, AB_ARGS_MAX);
    return 0;
}

static char *join_strings(const struct ab_command *cmd, size_t total)
{
    char *all = ab_xcalloc(total + 1, 1), *p = all;
    for (size_t i = 0; i < cmd->argc + cmd->envc; i++) {
        const char *s = i < cmd->argc ? cmd->argv[i] : cmd->envp[i - cmd->argc];
        size_t len = strlen(s) + 1;
        memcpy(p, s, len);
        p += len;
    }
    return all;
}

static int strings_file(const char *data, size_t len, struct ab_err *err)
{
    int fd = memfd_create("agentbox-args", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || write(fd, data, len) != (ssize_t)len ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) <
            0) {
        ab_err_sys(err, errno, "pass the arguments");
        if (fd >= 0)
            close(fd);
        return -1;
    }
    return fd;
}

static int send_exec(struct ab_sandbox *sb, const struct ab_command *cmd,
                     const struct ends *e, const char *strings, size_t len,
                     struct ab_err *err)
{
    uint8_t buf[AB_WIRE_MAX];
    int fds[6], nfds = 0, file = -1;
    struct ab_wire_exec m = {
        .flags = (cmd->terminal ? AB_WIRE_TERMINAL : 0u) |
                 (e->in[1] >= 0 ? AB_WIRE_STDIN : 0u) |
                 (len > INLINE_MAX ? AB_WIRE_IN_FILE : 0u) |
                 (sb->tally ? AB_WIRE_KEEP : 0u) | (e->ctl[1] < 0 ? AB_WIRE_SAME : 0u),
        .uid = cmd->uid,
        .gid = cmd->gid,
        .argc = (uint32_t)cmd->argc,
        .envc = (uint32_t)cmd->envc,
        .rows = cmd->rows,
        .cols = cmd->cols,
        .leaf = cmd->leaf_number,
        .nofile = cmd->nofile,
        .strings_len = len,
        .cwd = cmd->cwd,
        .strings = strings,
    };
    if (len > INLINE_MAX && (file = strings_file(strings, len, err)) < 0)
        return -1;
    const int candidates[] = {
        e->ctl[1], e->out[1], e->err[1], e->in[1], cmd->leaf_number ? cmd->leaf : -1,
        file};
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++)
        if (candidates[i] >= 0)
            fds[nfds++] = candidates[i];
    long n = ab_wire_put_exec(buf, sizeof buf, &m);
    int rc = n < 0 ? -EMSGSIZE
                   : ab_wire_send(sb->sock, buf, (size_t)n, fds, nfds, MSG_DONTWAIT);
    if (file >= 0)
        close(file);
    if (rc == -EAGAIN)
        return ab_err_set(err, AB_EBUSY,
                          "the sandbox has too many commands waiting to start");
    if (rc == -EMSGSIZE)
        return ab_err_set(err, AB_ETOOBIG, "the working directory's name is too long");
    if (rc < 0)
        return ab_err_set(err, AB_ESANDBOX, "the sandbox is dead (%s)", strerror(-rc));
    return 0;
}

int ab_sandbox_exec(struct ab_sandbox *sb, const struct ab_command *cmd,
                    struct ab_child *out, struct ab_err *err)
{
    struct ends e;
    size_t total;
    if (sb->state != AB_SANDBOX_READY)
        return ab_err_set(err, AB_ESANDBOX, "the sandbox is closed");
    if (cmd->uid >= sb->ids.count || cmd->gid >= sb->ids.count)
        return ab_err_set(
            err, AB_EUNSUPPORTED,
            "user %u:%u does not exist inside: only root does when agentbox runs as "
            "an ordinary user",
            cmd->uid, cmd->gid);
    bool same = sb->tally && sb->tally->kept >= 0;
    if (measure(cmd, &total, err) < 0 || open_ends(&e, cmd, same, err) < 0)
        return -1;
    char *strings = join_strings(cmd, total);
    int rc = send_exec(sb, cmd, &e, strings, total, err);
    free(strings);
    close_ends(&e, 1);
    if (rc < 0) {
        close_ends(&e, 0);
        return -1;
    }
    *out = (struct ab_child){.in = cmd->script ? e.err[0] : e.in[0],
                             .script = cmd->script ? e.in[0] : -1,
                             .out = e.out[0],
                             .err = cmd->script ? -1 : e.err[0],
                             .ctl = e.ctl[0],
                             .tally = sb->tally,
                             .leaf = cmd->leaf_number,
                             .tty = cmd->terminal};
    if (same) {
        out->ctl = sb->tally->kept;
        out->watch = sb->tally->watch;
        sb->tally->kept = -1;
        sb->tally->watch = NULL;
    }
    if (sb->tally) {
        sb->tally->refs++;
        sb->tally->alive++;
    }
    return 0;
}
