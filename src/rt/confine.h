/* confine.h - work that only one directory is at stake for.
 *
 * The work happens in a child: in user, pid, mount, network, IPC and UTS namespaces of
 * its own, whose root is a detached mount of the directory, so that nothing is above it;
 * with no descriptors but the standard ones and those it is given; with five capabilities
 * over the files there, no new privileges, limits on memory and on processes.
 *
 * As root of the machine the ids inside are a range that nobody else has, and the mount
 * keeps them as 0.. on disk; where the file system cannot map ids, as an overlay cannot,
 * they are root's own. An ordinary user is root inside, and nobody else is there.
 *
 * Linux only; for a program of one thread.
 */
#ifndef AB_RT_CONFINE_H
#define AB_RT_CONFINE_H

#include "base/err.h"

struct ab_confine {
    int dir;        /* the directory; borrowed */
    bool mapped;    /* the caller is root of the machine: 65536 ids inside */
    const int *fds; /* what the work may use, ascending; borrowed */
    int nfds;
    /* Before the rights are given up, with those over files of all ids inside. May be
     * NULL. */
    int (*prepare)(void *arg, struct ab_err *err);
    int (*work)(void *arg); /* gives the exit status; says itself what went wrong */
    void *arg;
};

/* The exit status of the work, or -1 and *err when it could not begin. The process must
 * not be used for anything else afterwards. */
int ab_confined(const struct ab_confine *c, struct ab_err *err) AB_MUST_CHECK;

#endif
