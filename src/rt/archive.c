#include "rt/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rt/archive_lib.h"
#include "rt/digest.h"
#include "rt/whiteout.h"

#define MAX_ID 65535u /* beyond the ids that a sandbox has */
#define NOBODY 65534u

struct dir_time {
    char *path; /* owns */
    struct timespec mtime;
};

/* Two readers: the first undoes the compression, the second reads the tar that comes out,
 * which is hashed and counted in between. */
struct unpack {
    struct archive *raw, *tar, *disk; /* own */
    struct ab_hasher *hasher;         /* owns */
    const struct ab_archive_rules *rules;
    struct ab_archive_counts *counts;
    struct ab_pathset own;   /* only when there are layers below */
    struct ab_pathset timed; /* directories whose times were kept */
    struct dir_time *dirs; /* owns; set last, since what is put into them changes them */
    size_t dir_count, dir_room;
    uint64_t stream_bytes, file_bytes;
    bool ended; /* there is nothing to read */
    char path[PATH_MAX], link[PATH_MAX];
    struct ab_err *err;
};

static int damaged(struct unpack *u, struct archive *a)
{
    if (u->err->code)
        return -1;
    const char *why = ab_la.archive_error_string(a);
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
    int rc = ab_la.archive_read_data_block(u->raw, block, &len, &offset);
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

static void filter_attributes(struct unpack *u, struct archive_entry *e)
{
    const char *name;
    const void *value;
    size_t len;
    int all = ab_la.archive_entry_xattr_reset(e), kept = 0;
    struct {
        char *name, *value;
        size_t len;
    } keep[16];
    if (all == 0)
        return;
    while (ab_la.archive_entry_xattr_next(e, &name, &value, &len) == ARCHIVE_OK) {
        if (!u->rules->layer || !name || !ab_archive_keeps(name) || kept == 16)
            continue;
        keep[kept].name = ab_xstrndup(name, strlen(name));
        keep[kept].value = ab_xcalloc(1, len + 1);
        memcpy(keep[kept].value, value, len);
        keep[kept++].len = len;
    }
    ab_la.archive_entry_xattr_clear(e);
    for (int i = 0; i < kept; i++) {
        ab_la.archive_entry_xattr_add_entry(e, keep[i].name, keep[i].value, keep[i].len);
        free(keep[i].name);
        free(keep[i].value);
    }
    u->counts->stripped += (uint64_t)(all - kept);
}

static void set_owner(struct unpack *u, struct archive_entry *e)
{
    la_int64_t uid = ab_la.archive_entry_uid(e), gid = ab_la.archive_entry_gid(e);
    if (!u->rules->owners)
        uid = gid = 0;
    u->counts->stripped += uid > MAX_ID || uid < 0 || gid > MAX_ID || gid < 0;
    ab_la.archive_entry_set_uid(e, uid > MAX_ID || uid < 0 ? NOBODY : uid);
    ab_la.archive_entry_set_gid(e, gid > MAX_ID || gid < 0 ? NOBODY : gid);
}

/* The writer would set the times of a directory that is there already at once. */
static void keep_time(struct unpack *u, const char *path, struct timespec mtime)
{
    if (u->dir_count == u->dir_room) {
        u->dir_room = u->dir_room ? u->dir_room * 2 : 256;
        u->dirs = ab_xrealloc(u->dirs, u->dir_room * sizeof *u->dirs);
    }
    u->dirs[u->dir_count++] = (struct dir_time){ab_xstrndup(path, strlen(path)), mtime};
}

static struct timespec mtime_of(struct archive_entry *e)
{
    return (struct timespec){ab_la.archive_entry_mtime(e),
                             ab_la.archive_entry_mtime_nsec(e)};
}

static void keep_if_there(struct unpack *u, const char *dir)
{
    struct stat st;
    if (lstat(dir, &st) == 0 && S_ISDIR(st.st_mode))
        keep_time(u, dir, st.st_mtim);
}

/* Directories of a lower layer that this one only puts something into, or takes from,
 * stay as old as they were. */
static void keep_parents(struct unpack *u)
{
    char dir[PATH_MAX];
    size_t len = strlen(u->path);
    memcpy(dir, u->path, len + 1);
    while (len > 0 && dir[len - 1] != '/')
        len--;
    size_t parent = len > 0 ? len - 1 : 0;
    for (len = parent; len > 0; len--) {
        if (len < parent && u->path[len] != '/')
            continue;
        dir[len] = '\0';
        if (ab_pathset_has(&u->timed, dir))
            break;
        keep_if_there(u, dir);
    }
    if (!ab_pathset_has(&u->timed, "."))
        keep_if_there(u, ".");
    ab_pathset_add(&u->timed, ".");
    memcpy(dir, u->path, parent);
    dir[parent] = '\0';
    ab_pathset_add(&u->timed, dir);
}

/* What is no directory any more was replaced by a later entry, which has its own. */
static void set_times(const struct unpack *u)
{
    struct stat st;
    for (size_t i = 0; i < u->dir_count; i++) {
        const struct dir_time *dir = &u->dirs[i];
        const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, dir->mtime};
        if (lstat(dir->path, &st) == 0 && S_ISDIR(st.st_mode))
            utimensat(AT_FDCWD, dir->path, times, AT_SYMLINK_NOFOLLOW);
    }
}

/* The root's own entry; the writer knows no name for it. */
static int set_root(struct unpack *u, struct archive_entry *e)
{
    if (ab_la.archive_entry_filetype(e) != AE_IFDIR)
        return ab_err_set(u->err, AB_EINVALID, "the root is not a directory");
    if (!u->rules->layer)
        return 0;
    set_owner(u, e);
    uid_t uid = (uid_t)ab_la.archive_entry_uid(e);
    gid_t gid = (gid_t)ab_la.archive_entry_gid(e);
    if (chown(".", uid, gid) < 0 || chmod(".", ab_la.archive_entry_mode(e) & 07777) < 0)
        return ab_err_sys(u->err, errno, "set the root's attributes");
    keep_time(u, ".", mtime_of(e));
    ab_pathset_add(&u->timed, ".");
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
    int why = ab_la.archive_errno(u->disk);
    if (why == ENOSPC || why == EDQUOT)
        return ab_err_sys(u->err, why, "unpack %s", u->path);
    return ab_err_set(u->err, AB_EINVALID, "cannot unpack %s: %s", u->path,
                      ab_la.archive_error_string(u->disk));
}

static int copy_data(struct unpack *u)
{
    const void *block;
    size_t len;
    la_int64_t offset;
    int rc;
    while ((rc = ab_la.archive_read_data_block(u->tar, &block, &len, &offset)) ==
           ARCHIVE_OK) {
        if (ab_la.archive_write_data_block(u->disk, block, len, offset) < ARCHIVE_OK)
            return write_failed(u);
    }
    return rc == ARCHIVE_EOF ? 0 : damaged(u, u->tar);
}

static int write_entry(struct unpack *u, struct archive_entry *e)
{
    int rc = ab_la.archive_write_header(u->disk, e);
    if (rc < ARCHIVE_WARN)
        return write_failed(u);
    if (!ab_la.archive_entry_hardlink(e) && ab_la.archive_entry_filetype(e) == AE_IFREG &&
        copy_data(u) < 0)
        return -1;
    rc = ab_la.archive_write_finish_entry(u->disk);
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

/* The top of an OCI layout or of what "docker save" and its kin write: known names, and
 * digests. */
static bool is_bundle_name(const char *path)
{
    static const char *const known[] = {"blobs", "index.json", "oci-layout",
                                        "manifest.json", "repositories"};
    size_t len = strcspn(path, "/");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i]) == len && strncmp(known[i], path, len) == 0)
            return true;
    const char *hex = strncmp(path, "sha256:", 7) == 0 ? path + 7 : path;
    size_t digits = strspn(hex, "0123456789abcdef");
    return digits >= 12 && (!hex[digits] || hex[digits] == '/' || hex[digits] == '.');
}

static int count_entry(struct unpack *u, struct archive_entry *e)
{
    la_int64_t size = ab_la.archive_entry_size(e);
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
    if (normalise(u, ab_la.archive_entry_hardlink(e), u->link) < 0)
        return -1;
    ab_la.archive_entry_copy_hardlink(e, u->link);
    ab_la.archive_entry_set_size(e, 0);
    ab_la.archive_entry_unset_size(e);
    return 0;
}

static int one_entry(struct unpack *u, struct archive_entry *e)
{
    bool hard = ab_la.archive_entry_hardlink(e) != NULL;
    __LA_MODE_T type = ab_la.archive_entry_filetype(e);
    if (count_entry(u, e) < 0 ||
        normalise(u, ab_la.archive_entry_pathname(e), u->path) < 0)
        return -1;
    if (!*u->path)
        return set_root(u, e);
    if (!u->rules->layer && !is_bundle_name(u->path))
        return ab_err_set(u->err, AB_EINVALID, "not an image but some other archive");
    const struct ab_pathset *own = u->rules->fresh ? NULL : &u->own;
    if (own)
        keep_parents(u);
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
    ab_la.archive_entry_copy_pathname(e, u->path);
    ab_la.archive_entry_acl_clear(e);
    ab_la.archive_entry_unset_atime(e);
    filter_attributes(u, e);
    set_owner(u, e);
    if (type == AE_IFDIR && !hard && u->rules->layer) {
        keep_time(u, u->path, mtime_of(e));
        ab_pathset_add(&u->timed, u->path); /* those above it are there already */
    }
    return write_entry(u, e);
}

static int open_readers(struct unpack *u, int fd)
{
    struct archive_entry *e;
    u->raw = ab_la.archive_read_new();
    u->tar = ab_la.archive_read_new();
    u->disk = ab_la.archive_write_disk_new();
    u->hasher = ab_hasher_new(u->err);
    if (!u->raw || !u->tar || !u->disk || !u->hasher)
        return ab_err_set(u->err, AB_ENOMEM, "out of memory");
    ab_la.archive_read_support_filter_gzip(u->raw);
    ab_la.archive_read_support_filter_zstd(u->raw);
    ab_la.archive_read_support_filter_xz(u->raw);
    ab_la.archive_read_support_filter_bzip2(u->raw);
    ab_la.archive_read_support_format_raw(u->raw);
    ab_la.archive_read_support_format_empty(u->raw);
    ab_la.archive_read_support_format_tar(u->tar);
    ab_la.archive_read_support_format_empty(u->tar);
    int flags = ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_SECURE_NODOTDOT;
    if (u->rules->layer)
        flags |= ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_OWNER | ARCHIVE_EXTRACT_XATTR;
    ab_la.archive_write_disk_set_options(u->disk, flags);
    if (ab_la.archive_read_open_fd(u->raw, fd, AB_ARCHIVE_BLOCK) != ARCHIVE_OK)
        return damaged(u, u->raw);
    int rc = ab_la.archive_read_next_header(u->raw, &e);
    if (rc < ARCHIVE_WARN)
        return damaged(u, u->raw);
    u->ended = rc == ARCHIVE_EOF;
    if (ab_la.archive_read_open(u->tar, u, NULL, feed, NULL) < ARCHIVE_WARN)
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
    while ((rc = ab_la.archive_read_next_header(u->tar, &e)) != ARCHIVE_EOF) {
        if (u->err->code || (rc != ARCHIVE_OK && rc != ARCHIVE_WARN))
            return damaged(u, u->tar);
        if (one_entry(u, e) < 0)
            return -1;
    }
    if (drain(u) < 0)
        return -1;
    snprintf(u->path, sizeof u->path, "the directories");
    if (ab_la.archive_write_close(u->disk) < ARCHIVE_WARN)
        return write_failed(u);
    set_times(u);
    return 0;
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
        ab_la.archive_read_free(u.tar);
    if (u.raw)
        ab_la.archive_read_free(u.raw);
    if (u.disk)
        ab_la.archive_write_free(u.disk);
    ab_hasher_free(u.hasher);
    ab_pathset_fini(&u.own);
    ab_pathset_fini(&u.timed);
    for (size_t i = 0; i < u.dir_count; i++)
        free(u.dirs[i].path);
    free(u.dirs);
    return rc;
}
