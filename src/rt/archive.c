#include "rt/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "rt/digest.h"
#include "rt/whiteout.h"

#define LIBRARY    "libarchive.so.13"
#define READ_BLOCK 65536
#define MAX_ID     65535u /* beyond the ids that a sandbox has */
#define NOBODY     65534u

/* The few functions that are used, as found in the loaded library. */
#define FUNCTIONS(X)                           \
    X(archive_read_new)                        \
    X(archive_read_support_filter_gzip)        \
    X(archive_read_support_filter_zstd)        \
    X(archive_read_support_filter_xz)          \
    X(archive_read_support_filter_bzip2)       \
    X(archive_read_support_format_raw)         \
    X(archive_read_support_format_empty)       \
    X(archive_read_support_format_tar)         \
    X(archive_read_open_fd)                    \
    X(archive_read_open)                       \
    X(archive_read_next_header)                \
    X(archive_read_data_block)                 \
    X(archive_read_free)                       \
    X(archive_write_new)                       \
    X(archive_write_set_format_pax_restricted) \
    X(archive_write_set_bytes_per_block)       \
    X(archive_write_open)                      \
    X(archive_write_close)                     \
    X(archive_write_data)                      \
    X(archive_write_disk_new)                  \
    X(archive_write_disk_set_options)          \
    X(archive_write_header)                    \
    X(archive_write_data_block)                \
    X(archive_write_finish_entry)              \
    X(archive_write_free)                      \
    X(archive_error_string)                    \
    X(archive_errno)                           \
    X(archive_entry_new)                       \
    X(archive_entry_free)                      \
    X(archive_entry_clear)                     \
    X(archive_entry_pathname)                  \
    X(archive_entry_copy_pathname)             \
    X(archive_entry_hardlink)                  \
    X(archive_entry_copy_hardlink)             \
    X(archive_entry_copy_symlink)              \
    X(archive_entry_copy_stat)                 \
    X(archive_entry_filetype)                  \
    X(archive_entry_mode)                      \
    X(archive_entry_mtime)                     \
    X(archive_entry_mtime_nsec)                \
    X(archive_entry_size)                      \
    X(archive_entry_set_size)                  \
    X(archive_entry_unset_size)                \
    X(archive_entry_unset_atime)               \
    X(archive_entry_unset_ctime)               \
    X(archive_entry_uid)                       \
    X(archive_entry_gid)                       \
    X(archive_entry_set_uid)                   \
    X(archive_entry_set_gid)                   \
    X(archive_entry_acl_clear)                 \
    X(archive_entry_xattr_clear)               \
    X(archive_entry_xattr_add_entry)           \
    X(archive_entry_xattr_reset)               \
    X(archive_entry_xattr_next)

/* Found once, before the process is confined; it does nothing else and ends soon. */
static struct {
#define X(name) __typeof__(name) *name;
    FUNCTIONS(X)
#undef X
} la;

int ab_archive_load(struct ab_err *err)
{
    void *lib = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!lib)
        return ab_err_set(err, AB_EUNSUPPORTED,
                          "images need libarchive (Debian package libarchive13): %s",
                          dlerror());
    const struct {
        const char *name;
        void *slot;
    } wanted[] = {
#define X(name) {#name, &la.name},
        FUNCTIONS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void *symbol = dlsym(lib, wanted[i].name);
        if (!symbol)
            return ab_err_set(err, AB_EUNSUPPORTED, "%s", dlerror());
        memcpy(wanted[i].slot, &symbol, sizeof symbol);
    }
    setlocale(LC_CTYPE, "C.UTF-8"); /* names in pax headers are UTF-8 */
    struct ab_hasher *first = ab_hasher_new(err);
    ab_hasher_free(first);
    return first ? 0 : -1;
}

/* ---- reading ---- */

/* Two readers: the first undoes the compression, the second reads the tar that comes out,
 * which is hashed and counted in between. */
struct unpack {
    struct archive *raw, *tar, *disk; /* own */
    struct ab_hasher *hasher;         /* owns */
    const struct ab_archive_rules *rules;
    struct ab_archive_counts *counts;
    struct ab_pathset own; /* only when there are layers below */
    uint64_t stream_bytes, file_bytes;
    bool ended; /* there is nothing to read */
    char path[PATH_MAX], link[PATH_MAX];
    struct ab_err *err;
};

static int damaged(struct unpack *u, struct archive *a)
{
    if (u->err->code)
        return -1;
    const char *why = la.archive_error_string(a);
    return ab_err_set(u->err, AB_EPARSE, "the archive is damaged: %s",
                      why ? why : "unreadable");
}

static int too_big(struct unpack *u)
{
    return ab_err_set(u->err, AB_ETOOBIG,
                      "the archive unpacks to more than %llu MB (a cap against bombs)",
                      (unsigned long long)(u->rules->max_bytes >> 20));
}

static la_ssize_t feed(struct archive *a, void *data, const void **block)
{
    struct unpack *u = data;
    size_t len;
    la_int64_t offset;
    (void)a;
    if (u->ended)
        return 0;
    int rc = la.archive_read_data_block(u->raw, block, &len, &offset);
    u->ended = rc == ARCHIVE_EOF;
    if (u->ended)
        return 0;
    if (rc < ARCHIVE_WARN)
        return damaged(u, u->raw);
    u->stream_bytes += len;
    if (u->stream_bytes > u->rules->max_bytes)
        return too_big(u);
    ab_hasher_update(u->hasher, *block, len);
    return (la_ssize_t)len;
}

/* Into out without leading "/", "./" and doubled slashes. */
static int normalise(struct unpack *u, const char *name, char out[PATH_MAX])
{
    size_t len = 0;
    if (!name)
        return ab_err_set(u->err, AB_EINVALID, "an entry has no name");
    while (*name) {
        size_t part = strcspn(name, "/");
        if (part == 2 && name[0] == '.' && name[1] == '.')
            return ab_err_set(u->err, AB_EINVALID, "an entry's path contains \"..\"");
        if (part > NAME_MAX || len + part + 2 > PATH_MAX)
            return ab_err_set(u->err, AB_ETOOBIG, "an entry's path is too long");
        if (part > 0 && !(part == 1 && name[0] == '.')) {
            if (len > 0)
                out[len++] = '/';
            memcpy(out + len, name, part);
            len += part;
        }
        name += part + (name[part] == '/');
    }
    out[len] = '\0';
    return 0;
}

/* What overlays use for themselves must not come from outside. */
static bool is_kept_attribute(const char *name)
{
    return strcmp(name, "security.capability") == 0 ||
           (strncmp(name, "user.", 5) == 0 && strncmp(name, "user.overlay.", 13) != 0);
}

static void filter_attributes(struct unpack *u, struct archive_entry *e)
{
    const char *name;
    const void *value;
    size_t len;
    int all = la.archive_entry_xattr_reset(e), kept = 0;
    struct {
        char *name, *value;
        size_t len;
    } keep[16];
    if (all == 0)
        return;
    while (la.archive_entry_xattr_next(e, &name, &value, &len) == ARCHIVE_OK) {
        if (!u->rules->layer || !name || !is_kept_attribute(name) || kept == 16)
            continue;
        keep[kept].name = ab_xstrndup(name, strlen(name));
        keep[kept].value = ab_xcalloc(1, len + 1);
        memcpy(keep[kept].value, value, len);
        keep[kept++].len = len;
    }
    la.archive_entry_xattr_clear(e);
    for (int i = 0; i < kept; i++) {
        la.archive_entry_xattr_add_entry(e, keep[i].name, keep[i].value, keep[i].len);
        free(keep[i].name);
        free(keep[i].value);
    }
    u->counts->stripped += (uint64_t)(all - kept);
}

static void set_owner(struct unpack *u, struct archive_entry *e)
{
    la_int64_t uid = la.archive_entry_uid(e), gid = la.archive_entry_gid(e);
    if (!u->rules->owners)
        uid = gid = 0;
    u->counts->stripped += uid > MAX_ID || uid < 0 || gid > MAX_ID || gid < 0;
    la.archive_entry_set_uid(e, uid > MAX_ID || uid < 0 ? NOBODY : uid);
    la.archive_entry_set_gid(e, gid > MAX_ID || gid < 0 ? NOBODY : gid);
}

/* The root's own entry; the writer knows no name for it. */
static int set_root(struct unpack *u, struct archive_entry *e)
{
    struct timespec times[2] = {
        {.tv_nsec = UTIME_OMIT},
        {.tv_sec = la.archive_entry_mtime(e), .tv_nsec = la.archive_entry_mtime_nsec(e)}};
    if (la.archive_entry_filetype(e) != AE_IFDIR)
        return ab_err_set(u->err, AB_EINVALID, "the root is not a directory");
    if (!u->rules->layer)
        return 0;
    set_owner(u, e);
    if (chown(".", (uid_t)la.archive_entry_uid(e), (gid_t)la.archive_entry_gid(e)) < 0 ||
        chmod(".", la.archive_entry_mode(e) & 07777) < 0 ||
        utimensat(AT_FDCWD, ".", times, 0) < 0)
        return ab_err_sys(u->err, errno, "set the root's attributes");
    return 0;
}

/* A directory stays when one comes again; anything else gives way, as in an overlay. An
 * existing file is never opened: the tree may share it with another image's. */
static int make_way(struct unpack *u, bool is_dir)
{
    struct stat st;
    if (lstat(u->path, &st) < 0 || (is_dir && S_ISDIR(st.st_mode)))
        return 0;
    return ab_tree_remove(u->path, u->err);
}

static int write_failed(struct unpack *u)
{
    int why = la.archive_errno(u->disk);
    if (why == ENOSPC || why == EDQUOT)
        return ab_err_sys(u->err, why, "unpack %s", u->path);
    return ab_err_set(u->err, AB_EINVALID, "cannot unpack %s: %s", u->path,
                      la.archive_error_string(u->disk));
}

static int copy_data(struct unpack *u)
{
    const void *block;
    size_t len;
    la_int64_t offset;
    int rc;
    while ((rc = la.archive_read_data_block(u->tar, &block, &len, &offset)) ==
           ARCHIVE_OK) {
        if (la.archive_write_data_block(u->disk, block, len, offset) < ARCHIVE_OK)
            return write_failed(u);
    }
    return rc == ARCHIVE_EOF ? 0 : damaged(u, u->tar);
}

static int write_entry(struct unpack *u, struct archive_entry *e)
{
    int rc = la.archive_write_header(u->disk, e);
    if (rc < ARCHIVE_WARN)
        return write_failed(u);
    if (!la.archive_entry_hardlink(e) && la.archive_entry_filetype(e) == AE_IFREG &&
        copy_data(u) < 0)
        return -1;
    rc = la.archive_write_finish_entry(u->disk);
    if (rc < ARCHIVE_WARN)
        return write_failed(u);
    u->counts->stripped += rc == ARCHIVE_WARN;
    return 0;
}

/* Whether entries of the type are made at all. */
static bool is_made(const struct unpack *u, __LA_MODE_T type, bool hard)
{
    if (hard)
        return u->rules->layer;
    return type == AE_IFREG || type == AE_IFDIR || type == AE_IFLNK ||
           (type == AE_IFIFO && u->rules->layer);
}

static int count_entry(struct unpack *u, struct archive_entry *e)
{
    la_int64_t size = la.archive_entry_size(e);
    u->file_bytes += size > 0 ? (uint64_t)size : 0;
    if (size < 0 || u->file_bytes > u->rules->max_bytes)
        return too_big(u);
    if (++u->counts->entries > u->rules->max_entries)
        return ab_err_set(u->err, AB_ETOOBIG, "the archive has more than %llu entries",
                          (unsigned long long)u->rules->max_entries);
    return 0;
}

/* A link that carries data would be written through. */
static int prepare_hard_link(struct unpack *u, struct archive_entry *e)
{
    if (normalise(u, la.archive_entry_hardlink(e), u->link) < 0)
        return -1;
    la.archive_entry_copy_hardlink(e, u->link);
    la.archive_entry_set_size(e, 0);
    la.archive_entry_unset_size(e);
    return 0;
}

static int one_entry(struct unpack *u, struct archive_entry *e)
{
    bool hard = la.archive_entry_hardlink(e) != NULL;
    __LA_MODE_T type = la.archive_entry_filetype(e);
    if (count_entry(u, e) < 0 || normalise(u, la.archive_entry_pathname(e), u->path) < 0)
        return -1;
    if (!*u->path)
        return set_root(u, e);
    const struct ab_pathset *own = u->rules->fresh ? NULL : &u->own;
    int rc = u->rules->layer ? ab_whiteout_apply(u->path, own, u->err) : 0;
    if (rc != 0)
        return rc < 0 ? -1 : 0;
    if (!is_made(u, type, hard)) {
        u->counts->skipped++;
        return 0;
    }
    if (hard && prepare_hard_link(u, e) < 0)
        return -1;
    if (hard && strcmp(u->link, u->path) == 0)
        return 0;
    if (make_way(u, type == AE_IFDIR && !hard) < 0)
        return -1;
    if (own)
        ab_pathset_add(&u->own, u->path);
    la.archive_entry_copy_pathname(e, u->path);
    la.archive_entry_acl_clear(e);
    la.archive_entry_unset_atime(e);
    filter_attributes(u, e);
    set_owner(u, e);
    return write_entry(u, e);
}

static int open_readers(struct unpack *u, int fd)
{
    struct archive_entry *e;
    u->raw = la.archive_read_new();
    u->tar = la.archive_read_new();
    u->disk = la.archive_write_disk_new();
    u->hasher = ab_hasher_new(u->err);
    if (!u->raw || !u->tar || !u->disk || !u->hasher)
        return ab_err_set(u->err, AB_ENOMEM, "out of memory");
    la.archive_read_support_filter_gzip(u->raw);
    la.archive_read_support_filter_zstd(u->raw);
    la.archive_read_support_filter_xz(u->raw);
    la.archive_read_support_filter_bzip2(u->raw);
    la.archive_read_support_format_raw(u->raw);
    la.archive_read_support_format_empty(u->raw);
    la.archive_read_support_format_tar(u->tar);
    la.archive_read_support_format_empty(u->tar);
    int flags = ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_SECURE_NODOTDOT;
    if (u->rules->layer)
        flags |= ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_OWNER | ARCHIVE_EXTRACT_XATTR;
    la.archive_write_disk_set_options(u->disk, flags);
    if (la.archive_read_open_fd(u->raw, fd, READ_BLOCK) != ARCHIVE_OK)
        return damaged(u, u->raw);
    int rc = la.archive_read_next_header(u->raw, &e);
    if (rc < ARCHIVE_WARN)
        return damaged(u, u->raw);
    u->ended = rc == ARCHIVE_EOF;
    if (la.archive_read_open(u->tar, u, NULL, feed, NULL) < ARCHIVE_WARN)
        return damaged(u, u->tar);
    return 0;
}

/* The digest is of all that comes out, also of what stands behind the end of the tar. */
static int drain(struct unpack *u)
{
    const void *block;
    la_ssize_t n;
    while ((n = feed(u->tar, u, &block)) > 0)
        continue;
    return n < 0 ? -1 : 0;
}

static int read_entries(struct unpack *u)
{
    struct archive_entry *e;
    int rc;
    while ((rc = la.archive_read_next_header(u->tar, &e)) != ARCHIVE_EOF) {
        if (u->err->code || rc < ARCHIVE_WARN)
            return damaged(u, u->tar);
        if (one_entry(u, e) < 0)
            return -1;
    }
    if (drain(u) < 0)
        return -1;
    snprintf(u->path, sizeof u->path, "the directories");
    return la.archive_write_close(u->disk) < ARCHIVE_WARN ? write_failed(u) : 0;
}

int ab_archive_unpack(int fd, const struct ab_archive_rules *rules,
                      struct ab_archive_counts *counts, struct ab_err *err)
{
    struct unpack u = {.rules = rules, .counts = counts, .err = err};
    *err = (struct ab_err){0};
    int rc = open_readers(&u, fd) < 0 || read_entries(&u) < 0 ? -1 : 0;
    if (rc == 0) {
        counts->bytes += u.stream_bytes;
        ab_hasher_hex(u.hasher, "", 0, counts->diff_id);
    }
    if (u.tar)
        la.archive_read_free(u.tar);
    if (u.raw)
        la.archive_read_free(u.raw);
    if (u.disk)
        la.archive_write_free(u.disk);
    ab_hasher_free(u.hasher);
    ab_pathset_fini(&u.own);
    return rc;
}

/* ---- writing ---- */

struct seen {
    dev_t dev;
    ino_t ino;
    char *path; /* owns */
};

struct pack {
    struct archive *tar;         /* owns */
    struct archive_entry *entry; /* owns */
    struct ab_hasher *hasher;    /* owns */
    int out;
    const struct ab_archive_ids *ids;
    const char *skip;
    struct ab_archive_counts *counts;
    void *links; /* owns; a tree of struct seen: files with several names */
    char path[PATH_MAX];
    struct ab_err *err;
};

static la_ssize_t put_out(struct archive *a, void *data, const void *bytes, size_t len)
{
    struct pack *p = data;
    (void)a;
    for (size_t done = 0; done < len;) {
        ssize_t n = write(p->out, (const char *)bytes + done, len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ab_err_sys(p->err, errno, "write the layer");
        done += (size_t)n;
    }
    ab_hasher_update(p->hasher, bytes, len);
    p->counts->bytes += len;
    return (la_ssize_t)len;
}

static int pack_failed(struct pack *p)
{
    return p->err->code ? -1
                        : ab_err_set(p->err, AB_EIO, "cannot write %s to the layer: %s",
                                     p->path, la.archive_error_string(p->tar));
}

static int64_t inside(const struct pack *p, uint32_t id)
{
    if (id == p->ids->first)
        return 0;
    if (id >= p->ids->rest && id - p->ids->rest + 1 < p->ids->count)
        return (int64_t)id - p->ids->rest + 1;
    p->counts->stripped++;
    return NOBODY;
}

static void begin_entry(struct pack *p, const struct stat *st, const char *name)
{
    la.archive_entry_clear(p->entry);
    la.archive_entry_copy_stat(p->entry, st);
    la.archive_entry_unset_atime(p->entry);
    la.archive_entry_unset_ctime(p->entry);
    la.archive_entry_copy_pathname(p->entry, name);
    la.archive_entry_set_uid(p->entry, inside(p, st->st_uid));
    la.archive_entry_set_gid(p->entry, inside(p, st->st_gid));
    p->counts->entries++;
}

static int put_header(struct pack *p)
{
    return la.archive_write_header(p->tar, p->entry) < ARCHIVE_WARN ? pack_failed(p) : 0;
}

/* An empty file whose name says what is gone below `at`, a length of p->path. */
static int put_whiteout(struct pack *p, size_t at, const char *prefix, const char *name)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%.*s%s%s%s", (int)at, p->path, at ? "/" : "",
                     prefix, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return ab_err_set(p->err, AB_ETOOBIG, "a path in the layer is too long");
    la.archive_entry_clear(p->entry);
    la.archive_entry_copy_stat(p->entry, &(struct stat){.st_mode = S_IFREG});
    la.archive_entry_copy_pathname(p->entry, path);
    p->counts->entries++;
    return put_header(p);
}

static bool has_mark(int fd, const char *what)
{
    char name[64], value;
    snprintf(name, sizeof name, "trusted.overlay.%s", what);
    if (fgetxattr(fd, name, &value, 1) >= 0 || errno == ERANGE)
        return true;
    snprintf(name, sizeof name, "user.overlay.%s", what);
    return fgetxattr(fd, name, &value, 1) >= 0 || errno == ERANGE;
}

/* The users' attributes. Capabilities are of the sandbox's own ids, and count for nothing
 * there. */
static void put_attributes(struct pack *p, int fd)
{
    char names[8192], value[8192];
    ssize_t len = flistxattr(fd, names, sizeof names);
    for (const char *name = names; len > 0 && name < names + len;
         name += strlen(name) + 1) {
        if (!is_kept_attribute(name) || strncmp(name, "user.", 5) != 0)
            continue;
        ssize_t n = fgetxattr(fd, name, value, sizeof value);
        if (n < 0)
            p->counts->stripped++;
        else
            la.archive_entry_xattr_add_entry(p->entry, name, value, (size_t)n);
    }
}

static int put_data(struct pack *p, int fd)
{
    static char block[READ_BLOCK * 4];
    ssize_t n;
    while ((n = read(fd, block, sizeof block)) > 0)
        if (la.archive_write_data(p->tar, block, (size_t)n) < 0)
            return pack_failed(p);
    return n < 0 ? ab_err_sys(p->err, errno, "read %s", p->path) : 0;
}

static int by_inode(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    if (x->ino != y->ino)
        return x->ino < y->ino ? -1 : 1;
    return x->dev == y->dev ? 0 : x->dev < y->dev ? -1 : 1;
}

static void free_seen(void *seen)
{
    free(((struct seen *)seen)->path);
    free(seen);
}

/* The first name of a file that was met before. */
static const char *first_name(struct pack *p, const struct stat *st)
{
    struct seen *new = ab_xcalloc(1, sizeof *new);
    *new = (struct seen){st->st_dev, st->st_ino, NULL};
    struct seen *const *found = tsearch(new, &p->links, by_inode);
    if (!found)
        AB_BUG("out of memory");
    if (*found != new) {
        free(new);
        return (*found)->path;
    }
    new->path = ab_xstrndup(p->path, strlen(p->path));
    return NULL;
}

static int put_file(struct pack *p, int dir, const char *name, const struct stat *st)
{
    const char *first = st->st_nlink > 1 ? first_name(p, st) : NULL;
    begin_entry(p, st, p->path);
    if (first) {
        la.archive_entry_unset_size(p->entry);
        la.archive_entry_copy_hardlink(p->entry, first);
        return put_header(p);
    }
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return ab_err_sys(p->err, errno, "read %s", p->path);
    int rc = -1;
    if (has_mark(fd, "metacopy"))
        ab_err_set(p->err, AB_EUNSUPPORTED, "%s has its contents in a lower layer",
                   p->path);
    else
        put_attributes(p, fd), rc = put_header(p) < 0 ? -1 : put_data(p, fd);
    close(fd);
    return rc;
}

static int put_link(struct pack *p, int dir, const char *name, const struct stat *st)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(dir, name, target, sizeof target - 1);
    if (n < 0)
        return ab_err_sys(p->err, errno, "read %s", p->path);
    target[n] = '\0';
    begin_entry(p, st, p->path);
    la.archive_entry_copy_symlink(p->entry, target);
    return put_header(p);
}

static int put_children(struct pack *p, int fd);

static int put_dir(struct pack *p, int dir, const char *name, const struct stat *st)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return ab_err_sys(p->err, errno, "read %s", p->path);
    begin_entry(p, st, p->path);
    put_attributes(p, fd);
    int rc = put_header(p);
    if (rc == 0 && has_mark(fd, "redirect"))
        rc = ab_err_set(p->err, AB_EUNSUPPORTED,
                        "%s was renamed, which this overlay marks in its own way",
                        p->path);
    if (rc == 0 && has_mark(fd, "opaque"))
        rc = put_whiteout(p, strlen(p->path), ".wh..wh.", ".opq");
    return rc < 0 ? (close(fd), -1) : put_children(p, fd);
}

static int put_one(struct pack *p, int dir, const char *name)
{
    struct stat st;
    size_t len = strlen(p->path);
    int n = snprintf(p->path + len, sizeof p->path - len, "%s%s", len ? "/" : "", name);
    int rc = 0;
    if (n < 0 || (size_t)n >= sizeof p->path - len)
        rc = ab_err_set(p->err, AB_ETOOBIG, "a path in the layer is too long");
    else if (p->skip && strcmp(p->path, p->skip) == 0)
        rc = 0;
    else if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        rc = ab_err_sys(p->err, errno, "read %s", p->path);
    else if (S_ISDIR(st.st_mode))
        rc = put_dir(p, dir, name, &st);
    else if (S_ISREG(st.st_mode))
        rc = put_file(p, dir, name, &st);
    else if (S_ISLNK(st.st_mode))
        rc = put_link(p, dir, name, &st);
    else if (S_ISCHR(st.st_mode) && st.st_rdev == 0)
        rc = put_whiteout(p, len, ".wh.", name);
    else if (S_ISFIFO(st.st_mode))
        begin_entry(p, &st, p->path), rc = put_header(p);
    else
        p->counts->skipped++;
    p->path[len] = '\0';
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted, so that the same changes are the same layer. Takes fd. */
static int put_children(struct pack *p, int fd)
{
    DIR *d = fdopendir(fd);
    if (!d) {
        close(fd);
        return ab_err_sys(p->err, errno, "read %s", p->path);
    }
    char **names = NULL;
    size_t count = 0, room = 0;
    const struct dirent *entry;
    while ((entry = readdir(d)) != NULL) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        if (count == room)
            names = ab_xrealloc(names, (room = room ? room * 2 : 32) * sizeof *names);
        names[count++] = ab_xstrndup(name, strlen(name));
    }
    if (count > 1)
        qsort(names, count, sizeof *names, by_name);
    int rc = 0;
    for (size_t i = 0; i < count; i++) {
        if (rc == 0)
            rc = put_one(p, fd, names[i]);
        free(names[i]);
    }
    free(names);
    closedir(d);
    return rc;
}

static int pack_tree(struct pack *p, int dir)
{
    p->tar = la.archive_write_new();
    p->entry = la.archive_entry_new();
    p->hasher = ab_hasher_new(p->err);
    if (!p->tar || !p->entry || !p->hasher)
        return ab_err_set(p->err, AB_ENOMEM, "out of memory");
    la.archive_write_set_format_pax_restricted(p->tar);
    la.archive_write_set_bytes_per_block(p->tar, READ_BLOCK);
    if (la.archive_write_open(p->tar, p, NULL, put_out, NULL) < ARCHIVE_WARN)
        return pack_failed(p);
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return ab_err_sys(p->err, errno, "open the sandbox's changes");
    if (put_children(p, fd) < 0)
        return -1;
    return la.archive_write_close(p->tar) < ARCHIVE_WARN ? pack_failed(p) : 0;
}

int ab_archive_pack(int dir, int out, const struct ab_archive_ids *ids, const char *skip,
                    struct ab_archive_counts *counts, struct ab_err *err)
{
    struct pack p = {.out = out, .ids = ids, .skip = skip, .counts = counts, .err = err};
    *err = (struct ab_err){0};
    int rc = pack_tree(&p, dir);
    if (rc == 0)
        ab_hasher_hex(p.hasher, "", 0, counts->diff_id);
    tdestroy(p.links, free_seen);
    if (p.entry)
        la.archive_entry_free(p.entry);
    if (p.tar)
        la.archive_write_free(p.tar);
    ab_hasher_free(p.hasher);
    return rc;
}
