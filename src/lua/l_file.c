/* l_file.c - files that stay open: an append-only file, and a lock. */
#include "lua/l_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "lua/conv.h"
#include "lua/job.h"
#include "rt/fs.h"

#define FILE_TYPE  "agentbox.file"
#define LOCK_TYPE  "agentbox.lock"
#define LOCK_TRIES 8

struct file {
    int fd; /* owns, or -1 */
};

static struct file *new_file(lua_State *L, const char *type)
{
    struct file *f = lua_newuserdatauv(L, sizeof *f, 0);
    f->fd = -1;
    luaL_setmetatable(L, type);
    return f;
}

int abl_file_fd(lua_State *L, int idx)
{
    const struct file *f = luaL_checkudata(L, idx, FILE_TYPE);
    if (f->fd < 0)
        luaL_error(L, "the file is closed");
    return f->fd;
}

static struct file *check_open(lua_State *L)
{
    abl_file_fd(L, 1);
    return lua_touserdata(L, 1);
}

static int close_fd(struct file *f)
{
    int rc = f->fd < 0 ? 0 : close(f->fd);
    f->fd = -1;
    return rc;
}

static int push_true(lua_State *L)
{
    lua_pushboolean(L, 1);
    return 1;
}

/* append_open(path [, mode]) */
static int l_append_open(lua_State *L)
{
    const char *path = abl_check_path(L, 1);
    mode_t mode = (mode_t)luaL_optinteger(L, 2, 0666);
    struct file *f = new_file(L, FILE_TYPE);
    struct ab_err err;
    f->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, mode);
    if (f->fd < 0) {
        ab_err_sys(&err, errno, "open %s", path);
        return abl_push_err(L, &err, "fs.append_open");
    }
    return 1;
}

/* file:write(bytes): all of it, or nil and the error; what a full disk took is cut off
 * again. */
static int l_write(lua_State *L)
{
    struct file *f = check_open(L);
    size_t len;
    const char *data = luaL_checklstring(L, 2, &len);
    struct ab_err err;
    off_t before = lseek(f->fd, 0, SEEK_END);
    if (ab_fs_write_fd(f->fd, data, len, &err) == 0)
        return push_true(L);
    if (before >= 0 && ftruncate(f->fd, before) < 0)
        ab_err_wrap(&err, "the file keeps a torn end");
    return abl_push_err(L, &err, "file.write");
}

static int sync_fd(int fd, struct ab_err *err)
{
    int errnum = AB_FAULT("file.fdatasync");
    if (errnum == 0 && fdatasync(fd) < 0)
        errnum = errno;
    return errnum ? ab_err_sys(err, errnum, "sync") : 0;
}

struct sync_job {
    struct abl_job job;
    int fd; /* owns: a duplicate, so that the file may be closed meanwhile; or -1 */
};

static int run_sync(struct abl_job *job)
{
    return sync_fd(((struct sync_job *)job)->fd, &job->err);
}

static void fini_sync(struct abl_job *job)
{
    int fd = ((struct sync_job *)job)->fd;
    if (fd >= 0)
        close(fd);
}

static const struct abl_job_kind SYNC = {"file.sync", run_sync, abl_job_push_true,
                                         fini_sync};

/* file:sync(): waits until the bytes are on the disk. */
static int l_sync(lua_State *L)
{
    struct file *f = check_open(L);
    struct sync_job *sync = ABL_JOB_NEW(L, struct sync_job, &SYNC);
    sync->fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 3);
    if (sync->fd < 0) {
        struct ab_err err;
        ab_err_sys(&err, errno, "sync");
        return abl_push_err(L, &err, "file.sync");
    }
    return abl_job_do(L, true);
}

struct finish_job {
    struct abl_job job;
    int *fds; /* owns, and the descriptors in it */
    size_t count, failed;
};

/* All of them begin to be written before the first is waited for, so that the file
 * system's journal has one transaction to end for all and not one for each. What becomes
 * of it the sync tells. */
static int run_finish(struct abl_job *job)
{
    struct finish_job *finish = (struct finish_job *)job;
    for (size_t i = 0; i < finish->count; i++)
        (void)sync_file_range(finish->fds[i], 0, 0, SYNC_FILE_RANGE_WRITE);
    for (size_t i = 0; i < finish->count && !finish->failed; i++) {
        if (sync_fd(finish->fds[i], &job->err) < 0)
            finish->failed = i + 1;
    }
    return 0;
}

static int push_finish(lua_State *L, struct abl_job *job)
{
    const struct finish_job *finish = (const struct finish_job *)job;
    if (!finish->failed)
        return push_true(L);
    abl_push_err(L, &job->err, job->kind->op);
    lua_pushinteger(L, (lua_Integer)finish->failed);
    return 3;
}

static void fini_finish(struct abl_job *job)
{
    struct finish_job *finish = (struct finish_job *)job;
    for (size_t i = 0; i < finish->count; i++)
        close(finish->fds[i]);
    free(finish->fds);
}

static const struct abl_job_kind FINISH = {"fs.finish", run_finish, push_finish,
                                           fini_finish};

/* finish(files): waits until the bytes of all are on the disk, and closes them in any
 * case; true, or nil, the error and the place of the file in the list. */
static int l_finish(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    size_t n = lua_rawlen(L, 1);
    for (size_t i = 1; i <= n; i++) {
        lua_rawgeti(L, 1, (lua_Integer)i);
        abl_file_fd(L, -1);
        lua_pop(L, 1);
    }
    struct finish_job *finish = ABL_JOB_NEW(L, struct finish_job, &FINISH);
    finish->fds = ab_xcalloc(n ? n : 1, sizeof *finish->fds);
    for (; finish->count < n; finish->count++) {
        lua_rawgeti(L, 1, (lua_Integer)finish->count + 1);
        struct file *f = lua_touserdata(L, -1);
        finish->fds[finish->count] = f->fd;
        f->fd = -1;
        lua_pop(L, 1);
    }
    return abl_job_do(L, true);
}

static int l_truncate(lua_State *L)
{
    struct file *f = check_open(L);
    lua_Integer size = luaL_checkinteger(L, 2);
    luaL_argcheck(L, size >= 0, 2, "must not be negative");
    if (ftruncate(f->fd, (off_t)size) == 0)
        return push_true(L);
    struct ab_err err;
    ab_err_sys(&err, errno, "truncate");
    return abl_push_err(L, &err, "file.truncate");
}

static int l_size(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)lseek(check_open(L)->fd, 0, SEEK_END));
    return 1;
}

static int l_file_close(lua_State *L)
{
    close_fd(luaL_checkudata(L, 1, FILE_TYPE));
    return 0;
}

/* Who locks a file that another has just removed would hold what nobody else can find. */
static int open_locked(const char *path, int flags, int how, struct ab_err *err)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        struct stat st;
        int fd = open(path, flags | O_CLOEXEC | O_NOCTTY, 0666);
        if (fd < 0)
            return ab_err_sys(err, errno, "open %s", path);
        int rc = flock(fd, how | LOCK_NB), errnum = errno;
        if (rc == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0)
            return fd;
        close(fd);
        if (rc < 0 && errnum != EWOULDBLOCK)
            return ab_err_sys(err, errnum, "lock %s", path);
        if (rc < 0)
            break;
    }
    return ab_err_set(err, AB_EBUSY, "%s is locked by another process", path);
}

/* lock(path [, shared [, there]]): a handle, or nil and `busy` when another process holds
 * it. Held until closed. The file is made unless it is to be there. */
static int l_lock(lua_State *L)
{
    const char *path = abl_check_path(L, 1);
    int how = lua_toboolean(L, 2) ? LOCK_SH : LOCK_EX;
    int make = lua_toboolean(L, 3) ? 0 : O_CREAT;
    struct file *f = new_file(L, LOCK_TYPE);
    struct ab_err err;
    f->fd = open_locked(path, O_RDWR | make, how, &err);
    return f->fd < 0 ? abl_push_err(L, &err, "fs.lock") : 1;
}

static int l_lock_close(lua_State *L)
{
    close_fd(luaL_checkudata(L, 1, LOCK_TYPE));
    return 0;
}

static void register_type(lua_State *L, const char *type, const luaL_Reg *methods,
                          lua_CFunction close)
{
    luaL_newmetatable(L, type);
    luaL_setfuncs(L, methods, 0);
    lua_pushcfunction(L, close);
    lua_setfield(L, -2, "close");
    lua_pushcfunction(L, close);
    lua_setfield(L, -2, "__gc");
    lua_pushcfunction(L, close);
    lua_setfield(L, -2, "__close");
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

void abl_file_register(lua_State *L)
{
    static const luaL_Reg file[] = {
        {"write", l_write}, {"sync", l_sync}, {"truncate", l_truncate},
        {"size", l_size},   {NULL, NULL},
    };
    static const luaL_Reg lock[] = {{NULL, NULL}};
    register_type(L, FILE_TYPE, file, l_file_close);
    register_type(L, LOCK_TYPE, lock, l_lock_close);
    lua_pushcfunction(L, l_append_open);
    lua_setfield(L, -2, "append_open");
    lua_pushcfunction(L, l_finish);
    lua_setfield(L, -2, "finish");
    lua_pushcfunction(L, l_lock);
    lua_setfield(L, -2, "lock");
}
