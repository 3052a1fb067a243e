/* pasta.h - a way out for a network namespace: the program pasta (package passt) copies
 * what happens on an interface inside to ordinary sockets of this process's user. No
 * right on the host is needed and nothing of the host is changed. The host's loopback
 * stays out of reach.
 *
 * It dies with the engine (parent death signal) and with ab_pasta_stop(). */
#ifndef AB_RT_PASTA_H
#define AB_RT_PASTA_H

#include "rt/loop.h"

/* What forwards queries for names inside when the host's resolver listens on its loopback
 * only. */
#define AB_PASTA_RESOLVER "169.254.1.1"

struct ab_pasta;

/* setpriv and program are paths. netns is borrowed during the call, as userns (-1: we are
 * root and the namespace belongs to the host's user namespace). Gives *out. */
int ab_pasta_start(struct ab_loop *loop, const char *setpriv, const char *program,
                   int netns, int userns, struct ab_pasta **out, struct ab_err *err)
    AB_MUST_CHECK;

bool ab_pasta_running(const struct ab_pasta *p);

/* Kills it and lets go of it. NULL is fine. */
void ab_pasta_stop(struct ab_pasta *p);

#endif
