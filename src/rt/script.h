/* script.h - the stdin of a shell that stays: a file that grows. A shell reads a file in
 * large pieces, a pipe byte by byte, for what it starts might want the rest. Whoever
 * writes there tells the shell by other means that it may read on.
 */
#ifndef AB_RT_SCRIPT_H
#define AB_RT_SCRIPT_H

#include <sys/types.h>

#include "base/ab.h"

struct ab_script {
    int fd;     /* owned by the holder; -1: none */
    off_t end;  /* what was written */
    off_t last; /* before the last time */
    off_t freed;
};

/* Takes that what was written before the last time has been read: its memory is given
 * back. -1 with errno. */
int ab_script_append(struct ab_script *s, const char *data, size_t len) AB_MUST_CHECK;

#endif
