/* l_fs.c - agentbox.sys.fs: the host's files. Small calls run on the spot; reading,
 * writing, listing and removing go to a pool thread when a fiber can wait for them. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lua/conv.h"
#include "lua/job.h"
#include "lua/l_file.h"
#include "rt/fs.h"

int luaopen_agentbox_sys_fs(lua_State *L);

/* A call with its arguments and results. */
struct fs_job {
    struct abl_job job;
    char *path; /* owns */
    char *data; /* owns; what to write */
    size_t len;
    struct ab_fs_write how;
    bool recursive;
    struct ab_buf text;     /* owns */
    struct ab_fs_list list; /* owns */
};

static struct fs_job *of(struct abl_job *job)
{
    return (struct fs_job *)job;
}

static void fini(struct abl_job *job)
{
    struct fs_job *fs = of(job);
    ab_buf_fini(&fs->text);
    ab_fs_list_fini(&fs->list);
    free(fs->data);
    free(fs->path);
}

static struct fs_job *new_job(lua_State *L, const char *path,
                              const struct abl_job_kind *kind)
{
    struct fs_job *fs = ABL_JOB_NEW(L, struct fs_job, kind);
    fs->path = ab_xstrndup(path, strlen(path));
    return fs;
}

/* ---- read, write ---- */

enum { BIG_BYTES = 256 * 1024 };

static int run_read(struct abl_job *job)
{
    struct fs_job *fs = of(job);
    return ab_fs_read(fs->path, &fs->text, &job->err);
}

static int push_text(lua_State *L, struct abl_job *job)
{
    const struct ab_buf *text = &of(job)->text;
    lua_pushlstring(L, text->data ? text->data : "", text->len);
    return 1;
}

static const struct abl_job_kind READ = {"fs.read", run_read, push_text, fini};

/* read(path [, max_bytes]) */
static int l_read(lua_State *L)
{
    const char *path = abl_check_path(L, 1);
    lua_Integer max = luaL_optinteger(L, 2, 0);
    luaL_argcheck(L, max >= 0, 2, "must not be negative");
    struct fs_job *fs = new_job(L, path, &READ);
    ab_buf_init(&fs->text, (size_t)max);
    struct stat st;
    bool big = stat(path, &st) < 0 || st.st_size > BIG_BYTES;
    return abl_job_do(L, big);
}

static int run_write(struct abl_job *job)
{
    struct fs_job *fs = of(job);
    return ab_fs_write(fs->path, fs->data, fs->len, &fs->how, &job->err);
}

static const struct abl_job_kind WRITE = {"fs.write", run_write, abl_job_push_true, fini};

/* write(path, bytes [, { mode =, sync =, exclusive = }]) */
static int l_write(lua_State *L)
{
    static const char *const keys[] = {"mode", "sync", "exclusive", NULL};
    const char *path = abl_check_path(L, 1);
    size_t len;
    const char *data = luaL_checklstring(L, 2, &len);
    abl_check_keys(L, 3, keys);
    lua_Integer mode = abl_opt_integer(L, 3, "mode", 0);
    bool sync = abl_opt_boolean(L, 3, "sync", true);
    luaL_argcheck(L, mode >= 0 && mode <= 07777, 3, "mode out of range");
    bool exclusive = abl_opt_boolean(L, 3, "exclusive", false);
    struct fs_job *fs = new_job(L, path, &WRITE);
    fs->data = ab_xstrndup(data, len);
    fs->len = len;
    fs->how = (struct ab_fs_write){
        .mode = (unsigned)mode, .exclusive = exclusive, .lazy = !sync};
    return abl_job_do(L, sync || len > BIG_BYTES);
}

/* ---- directories ---- */

static int run_sync_dir(struct abl_job *job)
{
    struct fs_job *fs = of(job);
    return ab_fs_sync_dir(fs->path, &job->err);
}

static const struct abl_job_kind SYNC_DIR = {"fs.sync_dir", run_sync_dir,
                                             abl_job_push_true, fini};

/* sync_dir(dir): which files it has is on the disk */
static int l_sync_dir(lua_State *L)
{
    new_job(L, abl_check_path(L, 1), &SYNC_DIR);
    return abl_job_do(L, true);
}

static int run_list(struct abl_job *job)
{
    struct fs_job *fs = of(job);
    return ab_fs_list(fs->path, &fs->list, &job->err);
}

static int push_list(lua_State *L, struct abl_job *job)
{
    const struct ab_fs_list *list = &of(job)->list;
    lua_createtable(L, (int)list->count, 0);
    for (size_t i = 0; i < list->count; i++) {
        lua_createtable(L, 0, 2);
        lua_pushstring(L, list->entries[i].name);
        lua_setfield(L, -2, "name");
        lua_pushstring(L, list->entries[i].type);
        lua_setfield(L, -2, "type");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static const struct abl_job_kind LIST = {"fs.list", run_list, push_list, fini};

static int l_list(lua_State *L)
{
    new_job(L, abl_check_path(L, 1), &LIST);
    return abl_job_do(L, true);
}

static int run_remove(struct abl_job *job)
{
    struct fs_job *fs = of(job);
    return ab_fs_remove(fs->path, fs->recursive, &job->err);
}

static const struct abl_job_kind REMOVE = {"fs.remove", run_remove, abl_job_push_true,
                                           fini};

/* remove(path [, recursive]) */
static int l_remove(lua_State *L)
{
    bool recursive = lua_toboolean(L, 2);
    struct fs_job *fs = new_job(L, abl_check_path(L, 1), &REMOVE);
    fs->recursive = recursive;
    return abl_job_do(L, fs->recursive);
}

/* Pushes true, or nil and the error. */
static int push_done(lua_State *L, int rc, const struct ab_err *err, const char *op)
{
    if (rc < 0)
        return abl_push_err(L, err, op);
    lua_pushboolean(L, 1);
    return 1;
}

/* mkdir(path [, parents]) */
static int l_mkdir(lua_State *L)
{
    struct ab_err err;
    int rc = ab_fs_mkdir(abl_check_path(L, 1), lua_toboolean(L, 2), &err);
    return push_done(L, rc, &err, "fs.mkdir");
}

/* rename(from, to [, { sync = }]) */
static int l_rename(lua_State *L)
{
    static const char *const keys[] = {"sync", NULL};
    struct ab_err err;
    abl_check_keys(L, 3, keys);
    bool lazy = !abl_opt_boolean(L, 3, "sync", true);
    int rc = ab_fs_rename(abl_check_path(L, 1), abl_check_path(L, 2), lazy, &err);
    return push_done(L, rc, &err, "fs.rename");
}

static int l_symlink(lua_State *L)
{
    struct ab_err err;
    const char *target = abl_check_path(L, 1), *path = abl_check_path(L, 2);
    int rc = symlink(target, path);
    if (rc < 0)
        ab_err_sys(&err, errno, "link %s", path);
    return push_done(L, rc, &err, "fs.symlink");
}

/* tmpdir(prefix): a new directory, mode 0700, under $TMPDIR or /tmp. */
static int l_tmpdir(lua_State *L)
{
    const char *prefix = luaL_checkstring(L, 1);
    luaL_argcheck(L, !strchr(prefix, '/'), 1, "must not contain a slash");
    const char *base = getenv("TMPDIR");
    char path[PATH_MAX];
    int n =
        snprintf(path, sizeof path, "%s/%sXXXXXX", base && *base ? base : "/tmp", prefix);
    struct ab_err err;
    if (n < 0 || (size_t)n >= sizeof path) {
        ab_err_set(&err, AB_ETOOBIG, "the path of the temporary directory is too long");
        return abl_push_err(L, &err, "fs.tmpdir");
    }
    if (!mkdtemp(path)) {
        ab_err_sys(&err, errno, "create %s", path);
        return abl_push_err(L, &err, "fs.tmpdir");
    }
    lua_pushstring(L, path);
    return 1;
}

/* ---- questions ---- */

static int stat_with(lua_State *L, bool follow)
{
    struct stat st;
    struct ab_err err;
    if (ab_fs_stat(abl_check_path(L, 1), follow, &st, &err) < 0)
        return abl_push_err(L, &err, "fs.stat");
    const struct {
        const char *key;
        lua_Integer value;
    } numbers[] = {
        {"size", (lua_Integer)st.st_size}, {"mode", (lua_Integer)(st.st_mode & 07777)},
        {"uid", (lua_Integer)st.st_uid},   {"gid", (lua_Integer)st.st_gid},
        {"ino", (lua_Integer)st.st_ino},   {"nlink", (lua_Integer)st.st_nlink},
        {"dev", (lua_Integer)st.st_dev},
    };
    lua_createtable(L, 0, 9);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        lua_pushinteger(L, numbers[i].value);
        lua_setfield(L, -2, numbers[i].key);
    }
    lua_pushnumber(L, (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec / 1e9);
    lua_setfield(L, -2, "mtime");
    lua_pushstring(L, ab_fs_type(st.st_mode));
    lua_setfield(L, -2, "type");
    return 1;
}

static int l_stat(lua_State *L)
{
    return stat_with(L, true);
}

static int l_lstat(lua_State *L)
{
    return stat_with(L, false);
}

static int l_exists(lua_State *L)
{
    lua_pushboolean(L, access(abl_check_path(L, 1), F_OK) == 0);
    return 1;
}

static int l_readlink(lua_State *L)
{
    const char *path = abl_check_path(L, 1);
    char target[PATH_MAX];
    ssize_t n = readlink(path, target, sizeof target);
    if (n < 0) {
        struct ab_err err;
        ab_err_sys(&err, errno, "readlink %s", path);
        return abl_push_err(L, &err, "fs.readlink");
    }
    lua_pushlstring(L, target, (size_t)n);
    return 1;
}

static int l_realpath(lua_State *L)
{
    const char *path = abl_check_path(L, 1);
    char real[PATH_MAX];
    if (!realpath(path, real)) {
        struct ab_err err;
        ab_err_sys(&err, errno, "%s", path);
        return abl_push_err(L, &err, "fs.realpath");
    }
    lua_pushstring(L, real);
    return 1;
}

static int l_cwd(lua_State *L)
{
    char path[PATH_MAX];
    if (!getcwd(path, sizeof path)) {
        struct ab_err err;
        ab_err_sys(&err, errno, "current directory");
        return abl_push_err(L, &err, "fs.cwd");
    }
    lua_pushstring(L, path);
    return 1;
}

int luaopen_agentbox_sys_fs(lua_State *L)
{
    static const luaL_Reg lib[] = {
        {"read", l_read},         {"write", l_write},
        {"list", l_list},         {"remove", l_remove},
        {"mkdir", l_mkdir},       {"rename", l_rename},
        {"symlink", l_symlink},   {"tmpdir", l_tmpdir},
        {"stat", l_stat},         {"lstat", l_lstat},
        {"exists", l_exists},     {"readlink", l_readlink},
        {"realpath", l_realpath}, {"cwd", l_cwd},
        {"sync_dir", l_sync_dir}, {NULL, NULL},
    };
    luaL_newlib(L, lib);
    abl_file_register(L);
    return 1;
}
