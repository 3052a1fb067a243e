/* scratch.h - texts that are needed again at the end, on the disk meanwhile.
 *
 * One file without a name for many logs: it is gone with its last descriptor, however the
 * process ends. A log is appended to and read from; it has extents of the file, which go
 * to the next log that wants some when it is freed, so that the file is as large as what
 * is alive at once. Nothing is synced: what is here need not survive anything.
 *
 * The first bytes of the file can be in memory instead (near_bytes), and are taken before
 * the others: few logs then cost no system calls, and thousands no more memory than that.
 *
 * Calls do not wait for the disk beyond what the kernel's cache makes them; they may be
 * made from the loop. Not for several threads.
 */
#ifndef AB_RT_SCRATCH_H
#define AB_RT_SCRATCH_H

#include <stdint.h>

#include "base/ab.h"
#include "base/err.h"

struct ab_scratch;

struct ab_scratch_log {
    struct ab_scratch *scratch; /* owns a share; NULL once freed */
    uint32_t *extents;          /* owns */
    size_t count, cap;
    uint64_t size; /* bytes so far */
};

/* Makes the file in a folder. NULL and err when it cannot be made. Gives. */
struct ab_scratch *ab_scratch_open(const char *dir, size_t near_bytes,
                                   struct ab_err *err);

/* The file stays until its last log is freed. */
void ab_scratch_close(struct ab_scratch *scratch);

/* Bytes that were ever in use, those in memory among them. */
uint64_t ab_scratch_size(const struct ab_scratch *scratch);

void ab_scratch_log_init(struct ab_scratch_log *log, struct ab_scratch *scratch);
/* May be called twice. */
void ab_scratch_log_fini(struct ab_scratch_log *log);

/* All of it, or -1 and the log as it was: AB_EFULL, AB_EIO. Unless these are the log's
 * first bytes, `between` is written before them. */
int ab_scratch_append(struct ab_scratch_log *log, const char *between, const char *data,
                      size_t len, struct ab_err *err);

/* The len bytes from `at` on, which must be there, between two texts. Borrowed until the
 * next call; *total is the length of all three. NULL on an error. */
const char *ab_scratch_view(const struct ab_scratch_log *log, uint64_t at, size_t len,
                            const char *before, const char *behind, size_t *total,
                            struct ab_err *err);

#endif
