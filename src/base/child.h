/* child.h - a running command, as it is handed from whoever started it to rt/child.c.
 *
 * The command lives in a sandbox or in a plain process group; this side only has
 * descriptors. The holder owns them all. Closing ctl kills the command with everything
 * that it started.
 */
#ifndef AB_BASE_CHILD_H
#define AB_BASE_CHILD_H

#include "base/ab.h"

struct ab_child {
    int in;  /* write end of its stdin, or -1 when it reads /dev/null; a terminal: see tty
              */
    int out; /* read end of its stdout */
    int err; /* read end of its stderr, or -1 with a terminal */
    int ctl; /* SOCK_SEQPACKET: KILL and RESIZE there, STARTED and EXIT back (base/wire.h)
              */
    bool tty; /* the terminal arrives with STARTED and then stands for in and out */
};

#endif
