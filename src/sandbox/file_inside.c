#include "sandbox/file_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct verdict {
    int rc;
    struct ab_err err;
};

/* Descriptors of the engine that lived on here would keep others waiting for their end.
 */
static void close_others(const struct ab_inside *in, int out)
{
    int keep[] = {in->ns, in->fds[0], in->fds[1], out}, from = 3;
    for (;;) {
        int next = -1;
        for (int i = 0; i < 4; i++)
            if (keep[i] >= from && (next < 0 || keep[i] < next))
                next = keep[i];
        if (next < 0)
            break;
        if (next > from)
            close_range((unsigned)from, (unsigned)next - 1, 0);
        from = next + 1;
    }
    close_range((unsigned)from, ~0u, 0);
}

/* An ordinary user may not name the users of a pid 1 that is not dumpable; a namespace of
 * the sandbox names them. */
static int join(const struct ab_inside *in, struct ab_err *err)
{
    int users = ioctl(in->ns, NS_GET_USERNS);
    uid_t owner = in->owner;
    if ((owner != 0 &&
         (setresgid(owner, owner, owner) < 0 || setresuid(owner, owner, owner) < 0)) ||
        setns(users < 0 ? in->ns : users, CLONE_NEWUSER) < 0 || setresgid(0, 0, 0) < 0 ||
        setresuid(0, 0, 0) < 0)
        return ab_err_set(err, AB_ESANDBOX, "join the sandbox's users: %s",
                          strerror(errno));
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 0); /* it has the engine's memory */
    if (users >= 0)
        close(users);
    return 0;
}

static bool put_all(int fd, const void *data, size_t len)
{
    const char *p = data;
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno != EINTR)
            return false;
        p += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static _Noreturn void child(const struct ab_inside *in, int fd)
{
    struct verdict v = {0};
    struct ab_buf out;
    close_others(in, fd);
    ab_buf_init(&out, 0);
    v.rc = join(in, &v.err);
    if (v.rc == 0)
        v.rc = in->work(in->arg, &out, &v.err);
    bool told = put_all(fd, &v, sizeof v) && put_all(fd, out.data, out.len);
    _exit(told ? 0 : 1);
}

/* All that comes, or false. */
static bool take_all(int fd, struct verdict *v, struct ab_buf *out)
{
    char piece[65536];
    size_t head = 0;
    for (;;) {
        bool in_head = head < sizeof *v;
        ssize_t n = in_head ? read(fd, (char *)v + head, sizeof *v - head)
                            : read(fd, piece, sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0 && !in_head;
        if (in_head)
            head += (size_t)n;
        else
            ab_buf_put(out, piece, (size_t)n);
    }
}

int ab_file_inside(const struct ab_inside *in, struct ab_buf *out, struct ab_err *err)
{
    int ends[2], status = -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return ab_err_sys(err, errno, "pipe");
    pid_t pid = fork();
    if (pid == 0)
        child(in, ends[1]);
    int errnum = errno;
    close(ends[1]);
    struct verdict v = {0};
    bool whole = pid > 0 && take_all(ends[0], &v, out);
    close(ends[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid < 0)
        return ab_err_sys(err, errnum, "fork");
    if (!whole || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return ab_err_set(err, AB_ESANDBOX, "a process that looked into a tree died");
    *err = v.err;
    return v.rc;
}
