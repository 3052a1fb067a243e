#include "rt/script.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define KEPT (1 << 20) /* of what was read long ago */

static void free_old(struct ab_script *s)
{
    if (s->last - s->freed < KEPT)
        return;
    fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, s->freed,
              s->last - s->freed);
    s->freed = s->last;
}

int ab_script_append(struct ab_script *s, const char *data, size_t len)
{
    free_old(s);
    s->last = s->end;
    while (len > 0) {
        ssize_t n = pwrite(s->fd, data, len, s->end);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        data += n;
        len -= (size_t)n;
        s->end += n;
    }
    return 0;
}
