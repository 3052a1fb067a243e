/* archive_pack.c - the changed side of an overlay as a layer. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "rt/archive.h"
#include "rt/archive_lib.h"
#include "rt/digest.h"

#define NOBODY 65534u

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
                                     p->path, ab_la.archive_error_string(p->tar));
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
    ab_la.archive_entry_clear(p->entry);
    ab_la.archive_entry_copy_stat(p->entry, st);
    ab_la.archive_entry_unset_atime(p->entry);
    ab_la.archive_entry_unset_ctime(p->entry);
    ab_la.archive_entry_copy_pathname(p->entry, name);
    ab_la.archive_entry_set_uid(p->entry, inside(p, st->st_uid));
    ab_la.archive_entry_set_gid(p->entry, inside(p, st->st_gid));
    p->counts->entries++;
}

static int put_header(struct pack *p)
{
    return ab_la.archive_write_header(p->tar, p->entry) < ARCHIVE_WARN ? pack_failed(p)
                                                                       : 0;
}

/* An empty file whose name says what is gone below `at`, a length of p->path. */
static int put_whiteout(struct pack *p, size_t at, const char *prefix, const char *name)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%.*s%s%s%s", (int)at, p->path, at ? "/" : "",
                     prefix, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return ab_err_set(p->err, AB_ETOOBIG, "a path in the layer is too long");
    ab_la.archive_entry_clear(p->entry);
    ab_la.archive_entry_copy_stat(p->entry, &(struct stat){.st_mode = S_IFREG});
    ab_la.archive_entry_copy_pathname(p->entry, path);
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
        if (!ab_archive_keeps(name) || strncmp(name, "user.", 5) != 0)
            continue;
        ssize_t n = fgetxattr(fd, name, value, sizeof value);
        if (n < 0)
            p->counts->stripped++;
        else
            ab_la.archive_entry_xattr_add_entry(p->entry, name, value, (size_t)n);
    }
}

static int put_data(struct pack *p, int fd)
{
    char block[AB_ARCHIVE_BLOCK];
    ssize_t n;
    while ((n = read(fd, block, sizeof block)) > 0)
        if (ab_la.archive_write_data(p->tar, block, (size_t)n) < 0)
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
        ab_la.archive_entry_unset_size(p->entry);
        ab_la.archive_entry_copy_hardlink(p->entry, first);
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
    ab_la.archive_entry_copy_symlink(p->entry, target);
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

static int open_tar(struct pack *p)
{
    p->tar = ab_la.archive_write_new();
    p->entry = ab_la.archive_entry_new();
    p->hasher = ab_hasher_new(p->err);
    if (!p->tar || !p->entry || !p->hasher)
        return ab_err_set(p->err, AB_ENOMEM, "out of memory");
    ab_la.archive_write_set_format_pax_restricted(p->tar);
    ab_la.archive_write_set_bytes_per_block(p->tar, AB_ARCHIVE_BLOCK);
    if (ab_la.archive_write_open(p->tar, p, NULL, put_out, NULL) < ARCHIVE_WARN)
        return pack_failed(p);
    return 0;
}

/* rc is of what was written so far. */
static int close_tar(struct pack *p, int rc)
{
    if (rc == 0 && ab_la.archive_write_close(p->tar) < ARCHIVE_WARN)
        rc = pack_failed(p);
    if (rc == 0)
        ab_hasher_hex(p->hasher, "", 0, p->counts->diff_id);
    tdestroy(p->links, free_seen);
    if (p->entry)
        ab_la.archive_entry_free(p->entry);
    if (p->tar)
        ab_la.archive_write_free(p->tar);
    ab_hasher_free(p->hasher);
    return rc;
}

int ab_archive_pack(int dir, int out, const struct ab_archive_ids *ids, const char *skip,
                    struct ab_archive_counts *counts, struct ab_err *err)
{
    struct pack p = {.out = out, .ids = ids, .skip = skip, .counts = counts, .err = err};
    *err = (struct ab_err){0};
    int rc = open_tar(&p);
    int fd = rc < 0 ? -1 : openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (rc == 0 && fd < 0)
        rc = ab_err_sys(err, errno, "open the sandbox's changes");
    return close_tar(&p, rc == 0 ? put_children(&p, fd) : rc);
}

/* ---- files of the host ---- */

static int copy_one(struct pack *p, const char *from, const struct ab_archive_copy *how)
{
    struct stat st;
    if (lstat(from, &st) < 0)
        return ab_err_sys(p->err, errno, "read %s", from);
    st.st_uid = how->uid;
    st.st_gid = how->gid;
    st.st_nlink = 1;
    if (how->mode >= 0 && S_ISREG(st.st_mode))
        st.st_mode = S_IFREG | (mode_t)how->mode;
    if (S_ISREG(st.st_mode))
        return put_file(p, AT_FDCWD, from, &st);
    if (S_ISLNK(st.st_mode))
        return put_link(p, AT_FDCWD, from, &st);
    if (!S_ISDIR(st.st_mode))
        return ab_err_set(p->err, AB_EINVALID, "%s is neither file, folder nor link",
                          from);
    begin_entry(p, &st, p->path);
    return put_header(p);
}

/* The next string of the list; 0 at its end. */
static int next_string(struct pack *p, FILE *list, char out[PATH_MAX])
{
    size_t len = 0;
    int c;
    while ((c = getc(list)) > 0 && len < PATH_MAX - 1)
        out[len++] = (char)c;
    out[len] = '\0';
    if (c > 0)
        return ab_err_set(p->err, AB_ETOOBIG, "a path is too long");
    return c == 0;
}

int ab_archive_copy(int list, int out, const struct ab_archive_copy *how,
                    struct ab_archive_counts *counts, struct ab_err *err)
{
    static const struct ab_archive_ids as_they_are = {0, 1, UINT32_MAX};
    struct pack p = {.out = out, .ids = &as_they_are, .counts = counts, .err = err};
    char from[PATH_MAX];
    FILE *f = fdopen(list, "r");
    *err = (struct ab_err){0};
    if (!f)
        return ab_err_sys(err, errno, "read the list of files");
    int rc = open_tar(&p), more = 1;
    while (rc == 0 && (more = next_string(&p, f, from)) > 0) {
        more = next_string(&p, f, p.path);
        rc = more > 0 ? copy_one(&p, from, how) : -1;
    }
    fclose(f);
    return close_tar(&p, more < 0 ? -1 : rc);
}
