/* file_inside.h - work on files with the rights of a sandbox's root.
 *
 * An ordinary user's engine cannot open what the agent closed or what another user inside
 * owns, while root inside can. The work is done in a process of its own, which joins the
 * sandbox's user namespace and nothing else of it: it runs no program, and the trees are
 * the descriptors that it was born with. There ids are those of the inside.
 */
#ifndef AB_SANDBOX_FILE_INSIDE_H
#define AB_SANDBOX_FILE_INSIDE_H

#include "base/buf.h"
#include "base/err.h"

/* Puts what is to come back into out. */
typedef int (*ab_inside_work)(void *arg, struct ab_buf *out, struct ab_err *err);

struct ab_inside {
    int ns;         /* borrowed: a namespace of the sandbox, or the pidfd of its pid 1 */
    uint32_t owner; /* who made that namespace, where we are root and it is not; or 0 */
    int fds[2];     /* borrowed: what the work uses, or -1 */
    ab_inside_work work;
    void *arg;
};

/* What the work gave, with what it put in out and its error. AB_ESANDBOX when there could
 * be no such process. Blocks; any thread. */
int ab_file_inside(const struct ab_inside *in, struct ab_buf *out, struct ab_err *err)
    AB_MUST_CHECK;

#endif
