/* plain.h - a command in a plain process group on the host: no sandbox at all, for
 * backend "none".
 *
 * It is driven like any other: child.ctl speaks as pid 1 of a sandbox does. A process
 * that leaves the group by setsid() escapes the kill; that is one of the reasons why this
 * is no sandbox. */
#ifndef AB_RT_PLAIN_H
#define AB_RT_PLAIN_H

#include <sys/types.h>

#include "base/child.h"
#include "rt/op.h"

/* The commands of one sandbox of this kind, so that its end can wait for theirs. */
struct ab_plain_home;
struct ab_plain_home *ab_plain_home_new(void);

/* Kills what is alive. NULL when nothing was; else an operation that is done when the
 * last one is reaped, whose reference is the caller's. Takes home. */
struct ab_op *ab_plain_home_close(struct ab_loop *loop, struct ab_plain_home *home);

struct ab_plain {
    char *const *argv; /* NULL-terminated, as envp; borrowed during the call */
    char *const *envp;
    const char *cwd;
    struct ab_plain_home *home; /* borrowed */
    bool stdin_pipe;
    void (*note)(pid_t leader, bool alive); /* at its start and its end; or NULL */
};

/* Gives the descriptors in out. */
int ab_plain_spawn(struct ab_loop *loop, const struct ab_plain *cmd, struct ab_child *out,
                   struct ab_err *err) AB_MUST_CHECK;

#endif
