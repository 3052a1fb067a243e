/* l_sandbox_file.c - files of a sandbox. Small things run on the spot; trees, and what
 * those inside could make wait, go to a pool thread, with descriptors of their own, so
 * that the sandbox may be closed meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lua/l_sandbox.h"
#include "rt/work.h"
#include "sandbox/file_inside.h"

#define READ_DEFAULT    (64 << 20)
#define ENTRIES_DEFAULT 100000
#define COPY_BYTES      (4ll << 30)

static int answer(lua_State *L, int rc, const struct ab_err *err, const char *op)
{
    if (rc < 0)
        return abl_push_err(L, err, op);
    lua_pushboolean(L, 1);
    return 1;
}

static lua_Integer check_mode(lua_State *L, int opts, lua_Integer def)
{
    lua_Integer mode = abl_opt_integer(L, opts, "mode", def);
    if (mode < -1 || mode > 07777)
        luaL_error(L, "option 'mode': not a file mode");
    return mode;
}

/* ---- small calls ---- */

static int push_read(lua_State *L)
{
    struct ab_buf *buf = lua_touserdata(L, 1);
    lua_pushlstring(L, buf->data ? buf->data : "", buf->len);
    return 1;
}

/* Sandbox:read(path [, max_bytes [, head]]) */
static int l_read(lua_State *L)
{
    struct ab_tree t;
    struct ab_err err;
    struct ab_buf buf;
    const char *path = abl_check_path(L, 2);
    lua_Integer max = luaL_optinteger(L, 3, READ_DEFAULT);
    luaL_argcheck(L, max > 0, 3, "must be positive");
    if (!abl_open_left(L, 1, &t, &err))
        return abl_push_err(L, &err, "sandbox.read");
    ab_buf_init(&buf, (size_t)max);
    bool entered = ab_file_enter(&t);
    int got = ab_file_read(&t, path, lua_toboolean(L, 4), &buf, &err);
    ab_file_leave(entered);
    if (got < 0) {
        ab_buf_fini(&buf);
        return abl_push_err(L, &err, "sandbox.read");
    }
    lua_pushcfunction(L, push_read);
    lua_pushlightuserdata(L, &buf);
    int rc = lua_pcall(L, 1, 1, 0); /* the bytes must be freed when Lua's heap is full */
    ab_buf_fini(&buf);
    return rc == LUA_OK ? 1 : lua_error(L);
}

static const char *type_name(char type)
{
    static const struct {
        char type;
        const char *name;
    } names[] = {{'f', "file"},   {'d', "dir"},  {'l', "link"}, {'p', "fifo"},
                 {'s', "socket"}, {'c', "char"}, {'b', "block"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].type == type)
            return names[i].name;
    return "unknown";
}

static void set_integer(lua_State *L, const char *key, lua_Integer value)
{
    lua_pushinteger(L, value);
    lua_setfield(L, -2, key);
}

void abl_fill_entry(lua_State *L, const struct ab_file_stat *st)
{
    lua_pushstring(L, type_name(st->type));
    lua_setfield(L, -2, "type");
    set_integer(L, "size", (lua_Integer)st->size);
    set_integer(L, "mode", st->mode);
    set_integer(L, "uid", st->uid == UINT32_MAX ? 65534 : st->uid);
    set_integer(L, "gid", st->gid == UINT32_MAX ? 65534 : st->gid);
    lua_pushnumber(L, (double)st->mtime_ns / 1e9);
    lua_setfield(L, -2, "mtime");
}

static int stat_of(lua_State *L, bool follow, const char *op)
{
    struct ab_tree t;
    struct ab_err err;
    struct ab_file_stat st;
    char target[4096];
    const char *path = abl_check_path(L, 2);
    if (!abl_open_left(L, 1, &t, &err) || ab_file_stat(&t, path, follow, &st, &err) < 0)
        return abl_push_err(L, &err, op);
    lua_createtable(L, 0, 8);
    abl_fill_entry(L, &st);
    set_integer(L, "ino", (lua_Integer)st.ino);
    if (st.type == 'l' && ab_file_readlink(&t, path, target, sizeof target, &err) == 0) {
        lua_pushstring(L, target);
        lua_setfield(L, -2, "target");
    }
    return 1;
}

static int l_stat(lua_State *L)
{
    return stat_of(L, true, "sandbox.stat");
}

static int l_lstat(lua_State *L)
{
    return stat_of(L, false, "sandbox.lstat");
}

static int l_mkdir(lua_State *L)
{
    struct ab_tree t;
    struct ab_err err;
    static const char *const keys[] = {"parents", "mode", NULL};
    const char *path = abl_check_path(L, 2);
    abl_check_keys(L, 3, keys);
    bool parents = abl_opt_boolean(L, 3, "parents", true);
    int mode = (int)check_mode(L, 3, 0755);
    if (!abl_open_tree(L, 1, &t, &err))
        return abl_push_err(L, &err, "sandbox.mkdir");
    bool entered = ab_file_enter(&t);
    int rc = ab_file_mkdir(&t, path, parents, mode, &err);
    ab_file_leave(entered);
    return answer(L, rc, &err, "sandbox.mkdir");
}

static int l_rename(lua_State *L)
{
    struct ab_tree t;
    struct ab_err err;
    const char *from = abl_check_path(L, 2), *to = abl_check_path(L, 3);
    if (!abl_open_tree(L, 1, &t, &err))
        return abl_push_err(L, &err, "sandbox.rename");
    bool entered = ab_file_enter(&t);
    int rc = ab_file_rename(&t, from, to, &err);
    ab_file_leave(entered);
    return answer(L, rc, &err, "sandbox.rename");
}

/* ---- trees, on a thread ---- */

struct entries {
    struct ab_buf text;         /* names, each with its NUL */
    struct ab_file_stat *stats; /* owns */
    size_t count, room;
};

struct job {
    int (*run)(struct job *job);
    const char *op;
    struct ab_tree tree, dst; /* own their roots */
    int ns;                   /* owns: of the sandbox whose root may help, or -1 */
    struct ab_tally *tally;   /* of the sandbox that it writes to; owns a reference */
    char *path, *to;          /* own */
    bool gives; /* files to other users inside, which only root there may do */
    bool recursive;
    size_t max;
    char *data; /* owns */
    size_t len;
    struct ab_file_write write;
    struct ab_file_copy copy;
    struct entries entries;
    int rc;
    struct ab_err err;
};

/* What a job found, from the process that did it. */
struct found {
    struct ab_file_copy copy;
    size_t entries;
};

static void see_as_inside(struct ab_tree *t)
{
    if (t->ids.count > 0)
        t->ids = (struct ab_ids){.first = 0, .rest = 1, .count = t->ids.count};
}

static int work_inside(void *arg, struct ab_buf *out, struct ab_err *err)
{
    struct job *job = arg;
    see_as_inside(&job->tree);
    see_as_inside(&job->dst);
    int rc = job->run(job);
    struct found found = {.copy = job->copy, .entries = job->entries.count};
    ab_buf_put(out, &found, sizeof found);
    ab_buf_put(out, job->entries.stats, found.entries * sizeof *job->entries.stats);
    ab_buf_put(out, job->entries.text.data, job->entries.text.len);
    *err = job->err;
    return rc;
}

static void take_found(struct job *job, const struct ab_buf *buf)
{
    struct found found;
    memcpy(&found, buf->data, sizeof found);
    size_t bytes = found.entries * sizeof *job->entries.stats, at = sizeof found + bytes;
    job->copy = found.copy;
    job->entries.count = job->entries.room = found.entries;
    job->entries.stats = ab_xrealloc(job->entries.stats, bytes + 1);
    memcpy(job->entries.stats, buf->data + sizeof found, bytes);
    ab_buf_put(&job->entries.text, buf->data + at, buf->len - at);
}

/* By who may do more. False: there could be no such process. */
static bool run_inside(struct job *job)
{
    struct ab_inside in = {.ns = job->ns,
                           .owner = geteuid() == 0 ? job->tree.ids.first : 0,
                           .fds = {job->tree.root, job->dst.root},
                           .work = work_inside,
                           .arg = job};
    struct ab_buf buf;
    struct ab_err err;
    job->copy = (struct ab_file_copy){.max_bytes = job->copy.max_bytes,
                                      .max_entries = job->copy.max_entries};
    job->entries.count = 0;
    ab_buf_clear(&job->entries.text);
    ab_buf_init(&buf, 0);
    int rc = ab_file_inside(&in, &buf, &err);
    bool done = rc == 0 || err.code != AB_ESANDBOX;
    if (rc == 0)
        take_found(job, &buf);
    else if (done)
        job->err = err;
    if (done)
        job->rc = rc;
    ab_buf_fini(&buf);
    return done;
}

static void job_run(void *arg)
{
    struct job *job = arg;
    bool inside = job->gives && job->ns >= 0 && run_inside(job);
    if (!inside)
        job->rc = job->run(job);
    if (!inside && job->rc < 0 && job->err.code == AB_EDENIED && job->ns >= 0)
        run_inside(job);
}

static void job_free(void *arg)
{
    struct job *job = arg;
    if (job->tree.root >= 0)
        close(job->tree.root);
    if (job->dst.root >= 0)
        close(job->dst.root);
    if (job->ns >= 0)
        close(job->ns);
    ab_buf_fini(&job->entries.text);
    free(job->entries.stats);
    if (job->tally)
        job->tally->writers--;
    ab_tally_unref(job->tally);
    free(job->path);
    free(job->to);
    free(job->data);
    free(job);
}

static struct job *new_job(const struct ab_tree *t, const char *path, const char *op)
{
    struct job *job = ab_xcalloc(1, sizeof *job);
    job->tree = *t;
    job->tree.root = fcntl(t->root, F_DUPFD_CLOEXEC, 3);
    job->dst.root = job->ns = -1;
    job->path = ab_xstrndup(path, strlen(path));
    job->op = op;
    ab_buf_init(&job->entries.text, 0);
    return job;
}

/* Root inside may open what is closed to an engine that is not root of the machine, or
 * has but one user inside. */
static void with_help_of(struct job *job, const struct abl_sandbox *s)
{
    if (s->sb && (geteuid() != 0 || s->sb->ids.count == 1))
        job->ns =
            fcntl(s->sb->mounts >= 0 ? s->sb->mounts : s->sb->pidfd, F_DUPFD_CLOEXEC, 3);
}

static void writes_to(struct job *job, const struct abl_sandbox *s)
{
    if (!s->sb)
        return;
    job->tally = s->sb->tally;
    job->tally->refs++;
    job->tally->writers++;
}

static int start_job(lua_State *L, struct ab_anchor *anchor, struct job *job,
                     int (*push)(lua_State *, struct ab_op *))
{
    struct ab_work work = {.run = job_run, .free = job_free, .job = job};
    anchor->op = ab_work_start(abl_loop(L), &work);
    return abl_wait(L, anchor, push);
}

static int keep_entry(void *arg, const char *name, const struct ab_file_stat *st)
{
    struct entries *e = arg;
    if (e->count == e->room) {
        e->room = e->room ? e->room * 2 : 64;
        e->stats = ab_xrealloc(e->stats, e->room * sizeof *e->stats);
    }
    e->stats[e->count++] = *st;
    ab_buf_put(&e->text, name, strlen(name) + 1);
    return 0;
}

static int run_list(struct job *job)
{
    bool entered = ab_file_enter(&job->tree);
    int rc = (job->recursive ? ab_file_walk : ab_file_list)(
        &job->tree, job->path, job->max, keep_entry, &job->entries, &job->err);
    ab_file_leave(entered);
    return rc;
}

static int push_entries(lua_State *L, struct ab_op *op)
{
    struct job *job = ab_work_job(op);
    if (op->err)
        return abl_push_err(L, op->err, "sandbox.list");
    if (job->rc < 0)
        return abl_push_err(L, &job->err, job->op);
    const char *name = job->entries.text.data;
    lua_createtable(L, (int)job->entries.count, 0);
    for (size_t i = 0; i < job->entries.count; i++) {
        lua_createtable(L, 0, 7);
        lua_pushstring(L, name);
        lua_setfield(L, -2, job->recursive ? "path" : "name");
        abl_fill_entry(L, &job->entries.stats[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
        name += strlen(name) + 1;
    }
    return 1;
}

static int list_with(lua_State *L, bool recursive, const char *op)
{
    struct ab_tree t;
    struct ab_err err;
    const char *path = abl_check_path(L, 2);
    lua_Integer max = luaL_optinteger(L, 3, ENTRIES_DEFAULT);
    luaL_argcheck(L, max > 0, 3, "must be positive");
    struct ab_anchor *anchor = abl_anchor(L);
    if (!abl_open_left(L, 1, &t, &err))
        return abl_push_err(L, &err, op);
    struct job *job = new_job(&t, path, op);
    job->run = run_list;
    with_help_of(job, abl_check_sandbox(L, 1));
    job->recursive = recursive;
    job->max = (size_t)max;
    return start_job(L, anchor, job, push_entries);
}

/* Sandbox:list(path [, max]): the entries of a directory, unsorted. */
static int l_list(lua_State *L)
{
    return list_with(L, false, "sandbox.list");
}

/* Sandbox:tree(path [, max]): everything below, unsorted. */
static int l_tree(lua_State *L)
{
    return list_with(L, true, "sandbox.tree");
}

static int push_answer(lua_State *L, struct ab_op *op)
{
    struct job *job = ab_work_job(op);
    if (op->err)
        return abl_push_err(L, op->err, job->op);
    return answer(L, job->rc, &job->err, job->op);
}

static int run_write(struct job *job)
{
    bool entered = ab_file_enter(&job->tree);
    int rc =
        ab_file_write(&job->tree, job->path, job->data, job->len, &job->write, &job->err);
    ab_file_leave(entered);
    return rc;
}

static const char *const write_keys[] = {"append", "exclusive", "mode",
                                         "uid",    "gid",       NULL};

/* Sandbox:write(path, bytes [, opts]). A file's writers wait for each other, and those
 * inside may write for minutes: then it is not the loop that waits. */
static int l_write(lua_State *L)
{
    struct ab_tree t;
    struct ab_err err;
    size_t len;
    const char *path = abl_check_path(L, 2);
    const char *data = luaL_checklstring(L, 3, &len);
    abl_check_keys(L, 4, write_keys);
    struct ab_file_write how = {
        .append = abl_opt_boolean(L, 4, "append", false),
        .exclusive = abl_opt_boolean(L, 4, "exclusive", false),
        .mode = (int)check_mode(L, 4, -1),
        .uid = abl_opt_integer(L, 4, "uid", -1),
        .gid = abl_opt_integer(L, 4, "gid", -1),
    };
    struct abl_sandbox *s = abl_check_sandbox(L, 1);
    bool wait = s->sb && ab_sandbox_inhabited(s->sb);
    struct ab_anchor *anchor = wait ? abl_anchor(L) : NULL;
    if (!abl_open_tree(L, 1, &t, &err))
        return abl_push_err(L, &err, "sandbox.write");
    if (!wait) {
        bool entered = ab_file_enter(&t);
        int rc = ab_file_write(&t, path, data, len, &how, &err);
        ab_file_leave(entered);
        return answer(L, rc, &err, "sandbox.write");
    }
    struct job *job = new_job(&t, path, "sandbox.write");
    job->run = run_write;
    job->write = how;
    job->data = ab_xstrndup(data, len);
    job->len = len;
    writes_to(job, s);
    return start_job(L, anchor, job, push_answer);
}

static int run_remove(struct job *job)
{
    bool entered = ab_file_enter(&job->tree);
    int rc = ab_file_remove(&job->tree, job->path, job->recursive, &job->err);
    ab_file_leave(entered);
    return rc;
}

/* Sandbox:remove(path [, recursive]) */
static int l_remove(lua_State *L)
{
    struct ab_tree t;
    struct ab_err err;
    const char *path = abl_check_path(L, 2);
    bool recursive = lua_toboolean(L, 3);
    struct ab_anchor *anchor = abl_anchor(L);
    if (!abl_open_tree(L, 1, &t, &err))
        return abl_push_err(L, &err, "sandbox.remove");
    struct job *job = new_job(&t, path, "sandbox.remove");
    job->run = run_remove;
    with_help_of(job, abl_check_sandbox(L, 1));
    writes_to(job, abl_check_sandbox(L, 1));
    job->recursive = recursive;
    return start_job(L, anchor, job, push_answer);
}

static int run_copy(struct job *job)
{
    return ab_file_copy_tree(&job->tree, job->path, &job->dst, job->to, &job->copy,
                             &job->err);
}

static int push_copied(lua_State *L, struct ab_op *op)
{
    struct job *job = ab_work_job(op);
    if (op->err)
        return abl_push_err(L, op->err, "sandbox.copy_tree");
    if (job->rc < 0)
        return abl_push_err(L, &job->err, job->op);
    lua_createtable(L, 0, 5);
    set_integer(L, "files", (lua_Integer)job->copy.files);
    set_integer(L, "dirs", (lua_Integer)job->copy.dirs);
    set_integer(L, "links", (lua_Integer)job->copy.links);
    set_integer(L, "bytes", (lua_Integer)job->copy.bytes);
    set_integer(L, "skipped", (lua_Integer)job->copy.skipped);
    return 1;
}

static const char *const copy_keys[] = {"max_bytes", "max_entries", NULL};

static void check_copy(lua_State *L, int opts, struct ab_file_copy *copy)
{
    abl_check_keys(L, opts, copy_keys);
    lua_Integer bytes = abl_opt_integer(L, opts, "max_bytes", COPY_BYTES);
    lua_Integer entries = abl_opt_integer(L, opts, "max_entries", ENTRIES_DEFAULT);
    if (bytes < 0 || entries < 0)
        luaL_error(L, "caps must not be negative");
    *copy = (struct ab_file_copy){.max_bytes = (uint64_t)bytes,
                                  .max_entries = (size_t)entries};
}

static int copy_between(lua_State *L, struct ab_anchor *anchor, const struct ab_tree *src,
                        const char *from, const struct ab_tree *dst, const char *to,
                        const struct ab_file_copy *copy)
{
    struct job *job = new_job(src, from, "sandbox.copy_tree");
    job->run = run_copy;
    writes_to(job, abl_check_sandbox(L, 3));
    job->dst = *dst;
    job->dst.root = fcntl(dst->root, F_DUPFD_CLOEXEC, 3);
    job->to = ab_xstrndup(to, strlen(to));
    job->copy = *copy;
    if (memcmp(&src->ids, &dst->ids, sizeof src->ids) == 0)
        with_help_of(job, abl_check_sandbox(L, 1));
    job->gives = src->ids.count > 1;
    return start_job(L, anchor, job, push_copied);
}

/* Sandbox:copy_tree(path, other sandbox, path [, opts]) */
static int l_copy_tree(lua_State *L)
{
    struct ab_tree src, dst;
    struct ab_err err;
    struct ab_file_copy copy;
    const char *from = abl_check_path(L, 2), *to = abl_check_path(L, 4);
    abl_check_sandbox(L, 3);
    check_copy(L, 5, &copy);
    struct ab_anchor *anchor = abl_anchor(L);
    if (!abl_open_left(L, 1, &src, &err) || !abl_open_tree(L, 3, &dst, &err))
        return abl_push_err(L, &err, "sandbox.copy_tree");
    return copy_between(L, anchor, &src, from, &dst, to, &copy);
}

static int with_host(lua_State *L, bool put)
{
    struct ab_tree inside, host = {.root = -1};
    struct ab_err err;
    struct ab_file_copy copy;
    const char *path = abl_check_path(L, 2), *dir = abl_check_path(L, 3);
    check_copy(L, 4, &copy);
    struct ab_anchor *anchor = abl_anchor(L);
    if (!(put ? abl_open_tree : abl_open_left)(L, 1, &inside, &err))
        return abl_push_err(L, &err, put ? "sandbox.put" : "sandbox.get");
    host.root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (host.root < 0) {
        ab_err_sys(&err, errno, "%s", dir);
        return abl_push_err(L, &err, put ? "sandbox.put" : "sandbox.get");
    }
    struct job *job = new_job(put ? &host : &inside, put ? "/" : path,
                              put ? "sandbox.put" : "sandbox.get");
    job->run = run_copy;
    /* Of the host, root inside may do less. */
    (put ? writes_to : with_help_of)(job, abl_check_sandbox(L, 1));
    job->dst = put ? inside : host;
    job->dst.root = fcntl(job->dst.root, F_DUPFD_CLOEXEC, 3);
    close(host.root);
    job->to = ab_xstrndup(put ? path : "/", put ? strlen(path) : 1);
    job->copy = copy;
    return start_job(L, anchor, job, push_copied);
}

/* Sandbox:put(path inside, directory of the host [, opts]): copies the tree into the
 * sandbox. */
static int l_put(lua_State *L)
{
    return with_host(L, true);
}

/* Sandbox:get(path inside, directory of the host [, opts]): copies the tree out of it. */
static int l_get(lua_State *L)
{
    return with_host(L, false);
}

void abl_sandbox_file_methods(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"read", l_read},     {"write", l_write},
        {"stat", l_stat},     {"lstat", l_lstat},
        {"list", l_list},     {"tree", l_tree},
        {"mkdir", l_mkdir},   {"remove", l_remove},
        {"rename", l_rename}, {"copy_tree", l_copy_tree},
        {"put", l_put},       {"get", l_get},
        {NULL, NULL},
    };
    luaL_setfuncs(L, methods, 0);
}
