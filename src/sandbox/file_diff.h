/* file_diff.h - what a sandbox's files are that its base's are not. */
#ifndef AB_SANDBOX_FILE_DIFF_H
#define AB_SANDBOX_FILE_DIFF_H

#include "sandbox/file.h"

#define AB_DIFF_UPPERS (2 * (AB_WIRE_LAYERS + 1))

enum ab_diff_kind { AB_DIFF_ADDED, AB_DIFF_CHANGED, AB_DIFF_REMOVED };

/* path: absolute, bytes. st: of what is there now, of a removed one as it was. -1 ends
 * it.
 */
typedef int (*ab_diff_visit)(void *arg, const char *path, enum ab_diff_kind kind,
                             const struct ab_file_stat *st);

struct ab_diff {
    struct ab_tree now, base; /* borrowed: whole trees */
    int uppers[AB_WIRE_LAYERS +
               1]; /* borrowed: whatever was written in either is there */
    int count;
    bool host_image; /* /usr has an upper directory of its own */
    size_t max;      /* entries; AB_ETOOBIG beyond */
    ab_diff_visit visit;
    void *arg;
};

/* Looks only where something was written: the time it takes follows the changes, not the
 * image. A file that was written and is the same as before (type, owner, mode, bytes) is
 * no difference; times are none. What was removed is named without what was below it. In
 * each directory in order of bytes. */
int ab_file_diff(const struct ab_diff *d, struct ab_err *err) AB_MUST_CHECK;

#endif
