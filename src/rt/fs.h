/* fs.h - files, as blocking calls that never surprise: only regular files are read,
 * writing is atomic and durable. Run the long ones with ab_work_start (work.h).
 *
 * Every function gives -1 and *err on failure; the message starts with what was tried.
 */
#ifndef AB_RT_FS_H
#define AB_RT_FS_H

#include <sys/stat.h>

#include "base/buf.h"

/* Appends the whole file to out, whose cap is the limit (AB_ETOOBIG). A directory, FIFO,
 * socket or device is AB_EINVALID: reading one might never end. */
int ab_fs_read(const char *path, struct ab_buf *out, struct ab_err *err) AB_MUST_CHECK;

struct ab_fs_write {
    unsigned mode;  /* permission bits; 0 means 0644 as umask allows */
    bool exclusive; /* AB_EEXISTS when the path is there already */
    bool lazy;      /* atomic but not durable: no fsync */
};

/* Replaces the file in one step: a reader or a crash sees the old bytes or the new ones.
 * What cannot be completed leaves nothing behind. AB_EFULL when the disk is. */
int ab_fs_write(const char *path, const void *data, size_t len,
                const struct ab_fs_write *how, struct ab_err *err) AB_MUST_CHECK;

int ab_fs_stat(const char *path, bool follow, struct stat *out, struct ab_err *err)
    AB_MUST_CHECK;

/* "file", "dir", "link", "fifo", "socket", "char", "block". */
const char *ab_fs_type(mode_t mode);

struct ab_fs_entry {
    char *name;       /* owns */
    const char *type; /* as ab_fs_type; "unknown" when it vanished meanwhile */
};

struct ab_fs_list {
    struct ab_fs_entry *entries; /* owns; sorted by bytes */
    size_t count;
};

int ab_fs_list(const char *dir, struct ab_fs_list *out, struct ab_err *err) AB_MUST_CHECK;
void ab_fs_list_fini(struct ab_fs_list *list);

/* parents: creates missing ones and accepts a directory that is there. */
int ab_fs_mkdir(const char *path, bool parents, struct ab_err *err) AB_MUST_CHECK;

/* Never follows a symbolic link. recursive: a tree; one that is not there is no error. */
int ab_fs_remove(const char *path, bool recursive, struct ab_err *err) AB_MUST_CHECK;

/* Puts on the disk which files the directory has: a file that was made and synced can be
 * lost without. */
int ab_fs_sync_dir(const char *dir, struct ab_err *err) AB_MUST_CHECK;

/* rename(2), then both directories are synced, unless it is lazy: that is for who renames
 * many and syncs their directory once. */
int ab_fs_rename(const char *from, const char *to, bool lazy, struct ab_err *err)
    AB_MUST_CHECK;

/* Writes all of it to fd, whatever the number of write(2) calls. */
int ab_fs_write_fd(int fd, const void *data, size_t len, struct ab_err *err)
    AB_MUST_CHECK;

#endif
