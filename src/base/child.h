/* child.h - a running command, as it is handed from whoever started it to rt/child.c.
 *
 * The command lives in a sandbox or in a plain process group; this side only has
 * descriptors. The holder owns them all. Closing ctl kills the command with everything
 * that it started.
 */
#ifndef AB_BASE_CHILD_H
#define AB_BASE_CHILD_H

#include <stdlib.h>
#include <unistd.h>

#include "base/ab.h"

/* The commands of one sandbox that are not over, and the cgroups that some of them have.
 * They and it share it, counted. */
#define AB_LEAVES 16
struct ab_tally {
    int refs;
    unsigned alive;
    unsigned writers; /* trees that are being copied into it */
    int kept;    /* owns: the socket of a command that is over, for the next; or -1 */
    void *watch; /* owns: what the loop watches it with, or NULL; see rt/child.c */
    void (*unwatch)(void *watch);
    bool given_up; /* one without a cgroup was, and pid 1 may have to kill it yet */
    struct ab_leaf {
        uint32_t number; /* 0: a free entry */
        enum ab_leaf_state {
            AB_LEAF_TAKEN,
            AB_LEAF_OVER,     /* its command is; daemons may be in it yet */
            AB_LEAF_GIVEN_UP, /* nobody knows: pid 1 starts it, or kills who is in it */
        } state;
    } leaf[AB_LEAVES];
};

static inline void ab_tally_end_leaf(struct ab_tally *t, uint32_t number,
                                     enum ab_leaf_state state)
{
    for (int i = 0; number && i < AB_LEAVES; i++)
        if (t->leaf[i].number == number)
            t->leaf[i].state = state;
    t->given_up = t->given_up || (!number && state == AB_LEAF_GIVEN_UP);
}

static inline void ab_tally_forget(struct ab_tally *t)
{
    if (t->watch)
        t->unwatch(t->watch);
    if (t->kept >= 0)
        close(t->kept);
    t->watch = NULL;
    t->kept = -1;
}

static inline void ab_tally_unref(struct ab_tally *t)
{
    if (!t || --t->refs > 0)
        return;
    ab_tally_forget(t);
    free(t);
}

/* A command is over, or nobody waits until it is: gives its share of the tally, which may
 * be NULL, back. */
static inline void ab_tally_leave(struct ab_tally *t, uint32_t leaf,
                                  enum ab_leaf_state state)
{
    if (!t)
        return;
    t->alive--;
    ab_tally_end_leaf(t, leaf, state);
    ab_tally_unref(t);
}

struct ab_child {
    int in; /* write end of its stdin, or -1 when it reads /dev/null; a terminal: see tty
             */
    int script; /* its stdin is this file, which grows by what is written, and `in` a pipe
                 * that gets one byte each time, for it to wait on; or -1 */
    int out;    /* read end of its stdout */
    int err;    /* read end of its stderr, or -1 with a terminal or a script */
    int ctl;    /* SOCK_SEQPACKET: KILL there, STARTED and EXIT back (base/wire.h) */
    void *watch;            /* of ctl, which was kept, in the tally; or NULL */
    struct ab_tally *tally; /* owns a reference and one that is alive, or NULL */
    uint32_t leaf;          /* the number of its cgroup, or 0 */
    bool tty; /* the terminal arrives with STARTED and then stands for in and out */
};

#endif
