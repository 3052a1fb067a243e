/* control.h - the socket of one command on the loop, where pid 1 tells of its end.
 *
 * When the command is over, pid 1 may keep its end for the next (base/wire.h). Then ours
 * stays on the loop, in the sandbox's tally: to make such a pair, to pass it and to watch
 * it is a tenth of what a command costs us.
 */
#ifndef AB_RT_CONTROL_H
#define AB_RT_CONTROL_H

#include "base/child.h"
#include "rt/loop.h"

struct ab_control;

/* A packet of n bytes with its descriptors, which are taken; its end, 0; or -errno. */
typedef void (*ab_control_cb)(void *user, const uint8_t *buf, long n, int *fds, int nfds);

/* Takes child->ctl with what watched it before. The user gets what comes until the close.
 * NULL: the kernel watches no more descriptors for us; ctl is closed, and the command
 * with it. */
struct ab_control *ab_control_open(struct ab_loop *loop, const struct ab_child *child,
                                   ab_control_cb heard, void *user);
void ab_control_send(struct ab_control *c, const uint8_t *buf, long n);

/* keep: where it stays for the next command, if none is there yet; or NULL. */
void ab_control_close(struct ab_control *c, struct ab_tally *keep);

#endif
