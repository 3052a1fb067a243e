/* file.h - files of a sandbox, from outside.
 *
 * A tree is a directory descriptor from which no path leads out: the sandbox's detached
 * clone (struct ab_sandbox, files), or a directory of the host for copying. Paths are
 * resolved by the kernel with that directory as root; links of /proc are refused.
 * Whatever is opened is looked at before it is used: only regular files are read and
 * written, nothing ever blocks, nothing is followed after it was checked. Never use a
 * path through /proc/PID/root instead: it leads to the host's own /proc files.
 *
 * Every function may run on any thread; none keeps state. Sizes are capped by the caller.
 */
#ifndef AB_SANDBOX_FILE_H
#define AB_SANDBOX_FILE_H

#include <sys/stat.h>

#include "base/buf.h"
#include "sandbox/sandbox.h"

struct ab_tree {
    int root;          /* borrowed */
    struct ab_ids ids; /* how its owners look from here; count 0: leave owners alone */
};

struct ab_file_write {
    bool append;
    bool exclusive;
    int mode;         /* -1: 0644 when new, else as it was */
    int64_t uid, gid; /* -1: root inside when new, else as it was */
};

struct ab_file_stat {
    char type;               /* f d l p s c b */
    uint32_t mode, uid, gid; /* ids as seen inside; UINT32_MAX when unmapped */
    uint64_t size, ino, links;
    int64_t mtime_ns;
};

/* name: in a listing the entry's, in a manifest the path below the start. Bytes,
 * NUL-terminated. */
typedef int (*ab_file_visit)(void *arg, const char *name, const struct ab_file_stat *st);

/* Up to out's cap: AB_ETOOBIG beyond it, or with `head` only that much. */
int ab_file_read(const struct ab_tree *t, const char *path, bool head, struct ab_buf *out,
                 struct ab_err *err) AB_MUST_CHECK;

/* Makes missing parents (root's, 0755). Gives mode and owner exactly, whatever the umask.
 */
int ab_file_write(const struct ab_tree *t, const char *path, const void *data, size_t len,
                  const struct ab_file_write *how, struct ab_err *err) AB_MUST_CHECK;

int ab_file_stat(const struct ab_tree *t, const char *path, bool follow,
                 struct ab_file_stat *st, struct ab_err *err) AB_MUST_CHECK;
int ab_file_readlink(const struct ab_tree *t, const char *path, char *out, size_t room,
                     struct ab_err *err) AB_MUST_CHECK;

/* AB_ETOOBIG beyond max entries. A visit that gives -1 ends it; err is then the caller's
 * to set. */
int ab_file_list(const struct ab_tree *t, const char *path, size_t max,
                 ab_file_visit visit, void *arg, struct ab_err *err) AB_MUST_CHECK;

/* Everything below path, parents before children; links are not followed. AB_ETOOBIG also
 * below AB_FILE_DEPTH folders. AB_EDENIED where one is closed to us that somebody inside
 * could open; what nobody there can open, a folder of the host's root say, is passed by.
 */
int ab_file_walk(const struct ab_tree *t, const char *path, size_t max,
                 ab_file_visit visit, void *arg, struct ab_err *err) AB_MUST_CHECK;

int ab_file_mkdir(const struct ab_tree *t, const char *path, bool parents, int mode,
                  struct ab_err *err) AB_MUST_CHECK;
int ab_file_remove(const struct ab_tree *t, const char *path, bool recursive,
                   struct ab_err *err) AB_MUST_CHECK;
int ab_file_rename(const struct ab_tree *t, const char *from, const char *to,
                   struct ab_err *err) AB_MUST_CHECK;

struct ab_file_copy {
    uint64_t max_bytes;
    size_t max_entries;
    uint64_t files, dirs, links, bytes; /* what was copied */
    uint64_t skipped; /* FIFOs, sockets, devices, and what nobody there can read */
};

/* Copies what is below `from` into `to`, which is made when missing; files that are there
 * are replaced. Links stay links; attributes of users come along. AB_ETOOBIG when a cap
 * is reached, AB_EDENIED as for a walk: what was copied stays. Enters the destination by
 * itself: not to be called entered. */
int ab_file_copy_tree(const struct ab_tree *src, const char *from,
                      const struct ab_tree *dst, const char *to,
                      struct ab_file_copy *copy, struct ab_err *err) AB_MUST_CHECK;

/* Around the calls above, on the same thread: where we are root of the machine and the
 * sandbox's root is one unprivileged id, files can be made only as that one. True: give
 * it to ab_file_leave(). */
bool ab_file_enter(const struct ab_tree *t);
void ab_file_leave(bool entered);

/* For those who walk and read themselves: file_tree.c, file_pack.c, src/guest. */

enum { AB_FILE_DEPTH = 256 };

/* A copy that failed with errno, at an entry of its start. */
int ab_file_copy_failed(const struct ab_file_copy *copy, const char *from,
                        const char *top, const char *to, struct ab_err *err);

/* Whether what failed with errno is only closed to us: somebody inside could do it. */
bool ab_file_is_closed(const struct ab_tree *t, int dir, const char *name);
int ab_file_check_regular(int fd, const char *path, struct stat *st, struct ab_err *err);
int ab_file_open(const struct ab_tree *t, const char *path, uint64_t flags,
                 uint32_t mode);
void ab_file_fill_stat(const struct ab_tree *t, const struct stat *st,
                       struct ab_file_stat *out);
uint32_t ab_file_outside(const struct ab_ids *ids, uint32_t inside);

#endif
