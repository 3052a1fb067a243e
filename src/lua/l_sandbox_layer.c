/* l_sandbox_layer.c - layers: the changes of a sandbox, frozen with it or taken from it
 * while it lives on, and looked at. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lua/l_sandbox.h"
#include "lua/sandbox_life.h"
#include "rt/poll.h"
#include "rt/work.h"
#include "sandbox/file_diff.h"

static struct abl_layer *new_layer(lua_State *L)
{
    struct abl_layer *box = lua_newuserdatauv(L, sizeof *box, 0);
    box->layer = NULL;
    luaL_setmetatable(L, ABL_LAYER);
    return box;
}

/* A native sandbox that is open and at rest. */
static struct ab_sandbox *check_native(lua_State *L, const char *what, struct ab_err *err)
{
    struct abl_sandbox *s = abl_check_sandbox(L, 1);
    if (s->sb)
        return ab_sandbox_undisturbed(s->sb, err) < 0 ? NULL : s->sb;
    ab_err_set(err, s->plain < 0 ? AB_ESANDBOX : AB_EUNSUPPORTED,
               "nothing that can be %s", what);
    return NULL;
}

/* ---- freeze ---- */

static int push_frozen(lua_State *L, struct ab_op *op)
{
    struct abl_layer *box = lua_touserdata(L, 2);
    box->layer = ab_life_take_layer(op);
    lua_pushvalue(L, 2);
    lua_pushboolean(L, abl_check_sandbox(L, 1)->left.root >= 0);
    return 2;
}

/* Sandbox:freeze([look]) -> layer, looks: ends it and gives its changes as a layer. With
 * look its files can be read until it is closed: its tree is mounted nowhere, and
 * outlives all that ran there. */
static int l_freeze(lua_State *L)
{
    struct ab_err err;
    struct abl_sandbox *s = abl_check_sandbox(L, 1);
    bool look = lua_toboolean(L, 2);
    lua_settop(L, 1);
    struct ab_sandbox *sb = check_native(L, "frozen", &err);
    if (!sb)
        return abl_push_err(L, &err, "sandbox.freeze");
    new_layer(L);
    struct ab_anchor *anchor = abl_anchor(L);
    abl_sandbox_close_outside(s);
    if (look) {
        s->left = (struct ab_tree){.root = sb->files, .ids = sb->ids};
        sb->files = -1;
    }
    anchor->op = ab_life_close(abl_loop(L), sb, true);
    s->sb = NULL;
    return abl_wait(L, anchor, push_frozen);
}

/* ---- snapshot ---- */

static int wait_snapshot(lua_State *L, struct ab_sandbox *sb);

static int push_snapshot(lua_State *L, struct ab_op *op)
{
    struct ab_err err;
    struct abl_sandbox *s = abl_check_sandbox(L, 1);
    struct abl_layer *box = lua_touserdata(L, 2);
    if (op && op->err)
        return abl_push_err(L, op->err, "sandbox.snapshot");
    if (!s->sb) {
        ab_err_set(&err, AB_ESANDBOX, "the sandbox was closed");
        return abl_push_err(L, &err, "sandbox.snapshot");
    }
    int rc = ab_sandbox_snapshot_step(s->sb, &err);
    if (rc == 1)
        return wait_snapshot(L, s->sb);
    box->layer = rc < 0 ? NULL : ab_sandbox_snapshot_take(s->sb);
    if (rc == 0 && !box->layer)
        rc = ab_err_set(&err, AB_ESANDBOX, "the snapshot was taken by another");
    if (rc < 0)
        return abl_push_err(L, &err, "sandbox.snapshot");
    lua_pushvalue(L, 2);
    return 1;
}

static int wait_snapshot(lua_State *L, struct ab_sandbox *sb)
{
    struct ab_anchor *anchor = abl_anchor(L);
    /* Whoever starts a command meanwhile may take the answer, and close what brought it.
     */
    anchor->op = ab_poll_shared(abl_loop(L), ab_sandbox_snapshot_fd(sb), UV_READABLE);
    return abl_wait(L, anchor, push_snapshot);
}

/* Sandbox:snapshot(): its changes so far as a layer; it lives on. */
static int l_snapshot(lua_State *L)
{
    struct ab_err err;
    lua_settop(L, 1);
    abl_check_wait(L);
    struct ab_sandbox *sb = check_native(L, "taken a snapshot of", &err);
    new_layer(L);
    if (!sb || ab_sandbox_snapshot(sb, &err) < 0)
        return abl_push_err(L, &err, "sandbox.snapshot");
    return ab_sandbox_snapshot_fd(sb) < 0 ? push_snapshot(L, NULL) : wait_snapshot(L, sb);
}

/* ---- diff ---- */

struct entry {
    enum ab_diff_kind kind;
    struct ab_file_stat st;
};

struct job {
    struct ab_diff diff; /* owns its descriptors */
    int view;            /* owns: where the base's tree comes from, or -1 */
    struct ab_buf paths; /* each with its NUL */
    struct entry *list;  /* owns */
    size_t count, room;
    int rc;
    struct ab_err err;
};

static int note_difference(void *arg, const char *path, enum ab_diff_kind kind,
                           const struct ab_file_stat *st)
{
    struct job *job = arg;
    if (job->count == job->room) {
        job->room = job->room ? job->room * 2 : 64;
        job->list = ab_xrealloc(job->list, job->room * sizeof *job->list);
    }
    job->list[job->count++] = (struct entry){kind, *st};
    ab_buf_put(&job->paths, path, strlen(path) + 1);
    return 0;
}

static void close_trees(struct job *job)
{
    ab_wire_close_fds(job->diff.uppers, job->diff.count);
    ab_wire_close_fds((int[]){job->diff.now.root, job->diff.base.root}, 2);
    job->diff.count = 0;
    job->diff.now.root = job->diff.base.root = -1;
}

/* The trees are closed here: the loop would wait for the kernel. */
static void job_run(void *arg)
{
    struct job *job = arg;
    job->diff.visit = note_difference;
    job->diff.arg = job;
    job->rc = ab_file_diff(&job->diff, &job->err);
    close_trees(job);
}

static void job_free(void *arg)
{
    struct job *job = arg;
    close_trees(job);
    ab_wire_close_fds(&job->view, 1); /* the loop has looked at it */
    ab_buf_fini(&job->paths);
    free(job->list);
    free(job);
}

/* Holds a job until a thread has it. */
static int l_held_gc(lua_State *L)
{
    struct job **held = lua_touserdata(L, 1);
    if (*held)
        job_free(*held);
    *held = NULL;
    return 0;
}

static bool add_layers(struct ab_diff *d, const struct ab_layer *top,
                       const struct ab_layer *until)
{
    for (int i = 0; top && i <= top->below_count; i++) {
        const struct ab_layer *layer = i ? top->below[i - 1] : top;
        if (layer == until)
            return true;
        d->uppers[d->count++] = fcntl(layer->fd, F_DUPFD_CLOEXEC, 3);
    }
    return until == NULL;
}

/* All that was written above base. Where base is not below us (it is a copy, or was made
 * one with others) all there is, and what it has that we took away again. */
static void add_uppers(struct ab_diff *d, const struct ab_sandbox *sb,
                       const struct ab_layer *base)
{
    d->uppers[d->count++] = fcntl(sb->upper, F_DUPFD_CLOEXEC, 3);
    if (!add_layers(d, sb->layer, base))
        add_layers(d, base, NULL);
}

static struct job *new_job(const struct ab_sandbox *sb, const struct ab_layer *base,
                           size_t max)
{
    struct job *job = ab_xcalloc(1, sizeof *job);
    *job = (struct job){.view = -1};
    ab_buf_init(&job->paths, 0);
    job->diff.now =
        (struct ab_tree){.root = fcntl(sb->files, F_DUPFD_CLOEXEC, 3), .ids = sb->ids};
    job->diff.base = (struct ab_tree){.root = -1, .ids = sb->ids};
    job->diff.host_image = sb->host_image;
    job->diff.max = max;
    add_uppers(&job->diff, sb, base);
    return job;
}

static int push_differences(lua_State *L, struct ab_op *op)
{
    static const char *const kinds[] = {"added", "changed", "removed"};
    struct job *job = ab_work_job(op);
    if (op->err || job->rc < 0)
        return abl_push_err(L, op->err ? op->err : &job->err, "sandbox.diff");
    const char *path = job->paths.data;
    lua_createtable(L, (int)job->count, 0);
    for (size_t i = 0; i < job->count; i++) {
        lua_createtable(L, 0, 8);
        lua_pushstring(L, path);
        lua_setfield(L, -2, "path");
        lua_pushstring(L, kinds[job->list[i].kind]);
        lua_setfield(L, -2, "kind");
        abl_fill_entry(L, &job->list[i].st);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
        path += strlen(path) + 1;
    }
    return 1;
}

static int push_viewed(lua_State *L, struct ab_op *op)
{
    struct ab_err err;
    struct job **held = lua_touserdata(L, -2), *job = *held; /* below the anchor */
    if (op->err)
        return abl_push_err(L, op->err, "sandbox.diff");
    job->diff.base.root = ab_sandbox_take_view(job->view, &err);
    if (job->diff.base.root < 0)
        return abl_push_err(L, &err, "sandbox.diff");
    struct ab_anchor *anchor = abl_anchor(L);
    struct ab_work work = {.run = job_run, .free = job_free, .job = job};
    *held = NULL;
    anchor->op = ab_work_start(abl_loop(L), &work);
    return abl_wait(L, anchor, push_differences);
}

static const struct ab_layer *opt_base(lua_State *L, const struct ab_sandbox *sb)
{
    if (lua_isnoneornil(L, 2))
        return sb->start;
    if (lua_type(L, 2) == LUA_TSTRING) {
        luaL_argcheck(L, !strcmp(lua_tostring(L, 2), "image"), 2, "\"image\" or a layer");
        return NULL;
    }
    const struct abl_layer *box = luaL_checkudata(L, 2, ABL_LAYER);
    luaL_argcheck(L, box->layer, 2, "the layer is closed");
    luaL_argcheck(
        L, box->layer->slot == sb->slot && box->layer->host_image == sb->host_image, 2,
        "a layer of another family of sandboxes");
    return box->layer;
}

/* Sandbox:diff([layer or "image" [, max]]): what differs from what it started from, from
 * a layer, or from the bare image. */
static int l_diff(lua_State *L)
{
    struct ab_err err;
    lua_settop(L, 3);
    abl_check_wait(L);
    lua_Integer max = luaL_optinteger(L, 3, 100000);
    luaL_argcheck(L, max > 0, 3, "must be positive");
    struct ab_sandbox *sb = check_native(L, "compared", &err);
    if (!sb)
        return abl_push_err(L, &err, "sandbox.diff");
    const struct ab_layer *base = opt_base(L, sb);
    struct job **held = lua_newuserdatauv(L, sizeof(struct job *), 0);
    *held = NULL;
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, l_held_gc);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    struct ab_anchor *anchor = abl_anchor(L);
    *held = new_job(sb, base, (size_t)max);
    (*held)->view = ab_sandbox_view(sb, base, &err);
    if ((*held)->view < 0)
        return abl_push_err(L, &err, "sandbox.diff");
    anchor->op = ab_poll_start(abl_loop(L), (*held)->view, UV_READABLE);
    return abl_wait(L, anchor, push_viewed);
}

void abl_sandbox_layer_methods(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"freeze", l_freeze}, {"snapshot", l_snapshot}, {"diff", l_diff}, {NULL, NULL}};
    luaL_setfuncs(L, methods, 0);
}

/* ---- layers ---- */

/* Layer:parts(): the directories of changes, lowest first, as paths that a child of this
 * process can open. */
static int l_layer_parts(lua_State *L)
{
    const struct abl_layer *box = luaL_checkudata(L, 1, ABL_LAYER);
    const struct ab_layer *top = box->layer;
    luaL_argcheck(L, top, 1, "the layer is closed");
    if (top->host_image)
        return luaL_argerror(L, 1, "a layer of the host's files belongs to no image");
    lua_createtable(L, top->below_count + 1, 0);
    for (int i = 0; i <= top->below_count; i++) {
        const struct ab_layer *layer = i ? top->below[i - 1] : top;
        lua_pushfstring(L, "/proc/%d/fd/%d/u", (int)getpid(), layer->fd);
        lua_rawseti(L, -2, top->below_count + 1 - i);
    }
    return 1;
}

static int l_layer_close(lua_State *L)
{
    struct abl_layer *box = luaL_checkudata(L, 1, ABL_LAYER);
    ab_layer_unref(box->layer);
    box->layer = NULL;
    return 0;
}

void abl_layer_register(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"close", l_layer_close}, {"parts", l_layer_parts}, {NULL, NULL}};
    abl_sandbox_new_type(L, ABL_LAYER, methods, l_layer_close, l_layer_close);
    lua_pop(L, 2);
}
