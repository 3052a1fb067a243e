#include "rt/whiteout.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX     ".wh."
#define PREFIX_LEN (sizeof PREFIX - 1)
#define OPAQUE     ".wh..wh..opq"
#define MAX_DEPTH  64

/* ---- the set ---- */

static size_t hash(const char *s, size_t len)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)s[i]) * 1099511628211u;
    return (size_t)(h ^ h >> 32);
}

static size_t find(char *const *slots, size_t room, const char *path, size_t len)
{
    size_t i = hash(path, len) & (room - 1);
    while (slots[i] && (strncmp(slots[i], path, len) != 0 || slots[i][len]))
        i = (i + 1) & (room - 1);
    return i;
}

static void grow(struct ab_pathset *set)
{
    size_t room = set->room ? set->room * 2 : 1024;
    char **slots = ab_xcalloc(room, sizeof *slots);
    for (size_t i = 0; i < set->room; i++)
        if (set->slots[i])
            slots[find(slots, room, set->slots[i], strlen(set->slots[i]))] =
                set->slots[i];
    free(set->slots);
    set->slots = slots;
    set->room = room;
}

/* False when it was there already. */
static bool add_one(struct ab_pathset *set, const char *path, size_t len)
{
    if (2 * set->count >= set->room)
        grow(set);
    size_t i = find(set->slots, set->room, path, len);
    if (set->slots[i])
        return false;
    set->slots[i] = ab_xstrndup(path, len);
    set->count++;
    return true;
}

void ab_pathset_add(struct ab_pathset *set, const char *path)
{
    size_t len = strlen(path);
    while (len > 0 && add_one(set, path, len)) {
        while (len > 0 && path[len - 1] != '/')
            len--;
        if (len > 0)
            len--;
    }
}

bool ab_pathset_has(const struct ab_pathset *set, const char *path)
{
    return set->room &&
           set->slots[find(set->slots, set->room, path, strlen(path))] != NULL;
}

void ab_pathset_fini(struct ab_pathset *set)
{
    for (size_t i = 0; i < set->room; i++)
        free(set->slots[i]);
    free(set->slots);
    *set = (struct ab_pathset){0};
}

/* ---- removing ---- */

static bool is_dots(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

static DIR *open_dir(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d && fd >= 0)
        close(fd);
    return d;
}

/* Names of any depth exist, and as many descriptors do not: what lies too deep is moved
 * to the top, and the top is emptied again. */
struct removal {
    int top;
    unsigned moved;
};

static int move_up(struct removal *r, int at, const char *name)
{
    char to[32];
    do
        snprintf(to, sizeof to, ".deep-%u", r->moved++);
    while (renameat2(at, name, r->top, to, 1 /* RENAME_NOREPLACE */) < 0 &&
           errno == EEXIST);
    return faccessat(r->top, to, F_OK, AT_SYMLINK_NOFOLLOW);
}

static int empty(struct removal *r, DIR *d, int depth)
{
    int fd = dirfd(d);
    const struct dirent *entry;
    while ((entry = readdir(d)) != NULL) {
        const char *name = entry->d_name;
        if (is_dots(name) || unlinkat(fd, name, 0) == 0 || errno == ENOENT)
            continue;
        if (errno != EISDIR && errno != EPERM)
            return -1;
        if (unlinkat(fd, name, AT_REMOVEDIR) == 0)
            continue;
        if (depth == MAX_DEPTH) {
            if (move_up(r, fd, name) < 0)
                return -1;
            continue;
        }
        fchmodat(fd, name, 0700,
                 0); /* an ordinary user needs it, and it is a directory */
        DIR *sub = open_dir(fd, name);
        int rc = sub ? empty(r, sub, depth + 1) : -1;
        int saved = errno;
        if (sub)
            closedir(sub);
        errno = saved;
        if (rc < 0 || unlinkat(fd, name, AT_REMOVEDIR) < 0)
            return -1;
    }
    return 0;
}

int ab_tree_remove(const char *path, struct ab_err *err)
{
    if (unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return ab_err_sys(err, errno, "remove %s", path);
    while (rmdir(path) < 0) {
        if (errno == ENOENT)
            return 0;
        int why = errno;
        DIR *d = why == ENOTEMPTY ? open_dir(AT_FDCWD, path) : NULL;
        if (!d)
            return ab_err_sys(err, why == ENOTEMPTY ? errno : why, "remove %s", path);
        struct removal r = {.top = dirfd(d)};
        int rc = empty(&r, d, 0);
        int saved = errno;
        closedir(d);
        if (rc < 0)
            return ab_err_sys(err, saved, "remove %s", path);
    }
    return 0;
}

/* ---- whiteouts ---- */

/* Removes what lower layers have below the directory. */
static int hide_children(const char *dir, const struct ab_pathset *own,
                         struct ab_err *err)
{
    char path[PATH_MAX];
    DIR *d = open_dir(AT_FDCWD, *dir ? dir : ".");
    if (!d)
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP
                   ? 0
                   : ab_err_sys(err, errno, "empty %s", dir);
    int rc = 0;
    const struct dirent *entry;
    while (rc == 0 && (entry = readdir(d)) != NULL) {
        if (is_dots(entry->d_name))
            continue;
        int n =
            snprintf(path, sizeof path, "%s%s%s", dir, *dir ? "/" : "", entry->d_name);
        if (n < 0 || (size_t)n >= sizeof path)
            rc = ab_err_set(err, AB_ETOOBIG, "a path below %s is too long", dir);
        else
            rc = ab_pathset_has(own, path) ? hide_children(path, own, err)
                                           : ab_tree_remove(path, err);
    }
    closedir(d);
    return rc;
}

int ab_whiteout_apply(const char *path, const struct ab_pathset *own, struct ab_err *err)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    char target[PATH_MAX];
    size_t dir_len = (size_t)(name - path);
    if (strncmp(name, PREFIX, PREFIX_LEN) != 0)
        return 0;
    if (strcmp(name, OPAQUE) == 0) {
        if (!own)
            return 1;
        snprintf(target, sizeof target, "%.*s", (int)(dir_len ? dir_len - 1 : 0), path);
        return hide_children(target, own, err) < 0 ? -1 : 1;
    }
    if (strncmp(name + PREFIX_LEN, PREFIX, PREFIX_LEN) == 0)
        return 1; /* aufs kept its own things under such names */
    if (!name[PREFIX_LEN] || is_dots(name + PREFIX_LEN))
        return ab_err_set(err, AB_EINVALID, "a whiteout without a name: %s", path);
    snprintf(target, sizeof target, "%.*s%s", (int)dir_len, path, name + PREFIX_LEN);
    if (own && !ab_pathset_has(own, target) && ab_tree_remove(target, err) < 0)
        return -1;
    return 1;
}
