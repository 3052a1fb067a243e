/* l_sqlite.c - agentbox.sys.sqlite: a database whose calls run on pool threads. */
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "lua/conv.h"
#include "rt/sqlite.h"
#include "rt/work.h"

#define DB_TYPE  "agentbox.sqlite"
#define JOB_TYPE "agentbox.sqlite.job"

enum { MAX_RESULT_BYTES = 64 << 20, MAX_COLUMNS = 64 };

int luaopen_agentbox_sys_sqlite(lua_State *L);

struct job {
    int (*run)(struct job *job);
    int (*push)(lua_State *L, struct job *job);
    const char *name;     /* for the error's op */
    struct ab_sqlite *db; /* owns a reference, or NULL */
    char *text;           /* owns; SQL, or the path to open */
    unsigned flags;
    struct ab_sqlite_table values, result; /* owns */
    int rc;
    struct ab_err err;
};

struct holder {
    struct job *job; /* owns, or NULL: it was handed to the pool */
};

struct database {
    struct ab_sqlite *db; /* owns a reference, or NULL */
};

static void job_run(void *arg)
{
    struct job *job = arg;
    job->rc = job->run(job);
}

static void job_free(void *arg)
{
    struct job *job = arg;
    if (job->db)
        ab_sqlite_unref(job->db);
    ab_sqlite_table_fini(&job->values);
    ab_sqlite_table_fini(&job->result);
    free(job->text);
    free(job);
}

static int l_holder_gc(lua_State *L)
{
    struct holder *h = luaL_checkudata(L, 1, JOB_TYPE);
    if (h->job)
        job_free(h->job);
    h->job = NULL;
    return 0;
}

/* The job lives in a userdata until it is handed to the pool, so that an error cannot
 * lose it. */
static struct job *new_job(lua_State *L, const char *name, struct ab_sqlite *db,
                           const char *text)
{
    struct holder *h = lua_newuserdatauv(L, sizeof *h, 0);
    h->job = NULL;
    luaL_setmetatable(L, JOB_TYPE);
    h->job = ab_xcalloc(1, sizeof *h->job);
    h->job->name = name;
    h->job->text = ab_xstrndup(text, strlen(text));
    h->job->db = db;
    if (db)
        ab_sqlite_ref(db);
    ab_buf_init(&h->job->values.text, 0);
    ab_buf_init(&h->job->result.text, MAX_RESULT_BYTES);
    return h->job;
}

static int job_results(lua_State *L, struct job *job)
{
    if (job->rc < 0)
        return abl_push_err(L, &job->err, job->name);
    return job->push(L, job);
}

static int push_job(lua_State *L, struct ab_op *op)
{
    if (op->err)
        return abl_push_err(L, op->err, "sqlite");
    return job_results(L, ab_work_job(op));
}

/* The holder is on top of the stack. */
static int do_job(lua_State *L)
{
    struct holder *h = luaL_checkudata(L, -1, JOB_TYPE);
    if (!abl_can_wait(L)) {
        job_run(h->job);
        return job_results(L, h->job);
    }
    struct ab_anchor *anchor = abl_anchor(L);
    struct ab_work work = {.run = job_run, .free = job_free, .job = h->job};
    h->job = NULL;
    anchor->op = ab_work_start(abl_loop(L), &work);
    return abl_wait(L, anchor, push_job);
}

static int push_true(lua_State *L, struct job *job)
{
    (void)job;
    lua_pushboolean(L, 1);
    return 1;
}

/* ---- opening and closing ---- */

static int run_open(struct job *job)
{
    return ab_sqlite_open(&job->db, job->text, job->flags, &job->err);
}

static int push_database(lua_State *L, struct job *job)
{
    struct database *d = lua_newuserdatauv(L, sizeof *d, 0);
    d->db = job->db;
    job->db = NULL;
    luaL_setmetatable(L, DB_TYPE);
    return 1;
}

/* open(path [, { write = }]) */
static int l_open(lua_State *L)
{
    static const char *const keys[] = {"write", NULL};
    const char *path = abl_check_path(L, 1);
    abl_check_keys(L, 2, keys);
    bool write = abl_opt_boolean(L, 2, "write", false);
    struct job *job = new_job(L, "sqlite.open", NULL, path);
    job->flags = write ? AB_SQLITE_WRITE : 0;
    job->run = run_open;
    job->push = push_database;
    return do_job(L);
}

static struct ab_sqlite *check_open(lua_State *L)
{
    struct database *d = luaL_checkudata(L, 1, DB_TYPE);
    if (!d->db)
        luaL_error(L, "the database is closed");
    return d->db;
}

static int run_close(struct job *job)
{
    ab_sqlite_close(job->db);
    return 0;
}

/* db:close(); may be called twice */
static int l_close(lua_State *L)
{
    struct database *d = luaL_checkudata(L, 1, DB_TYPE);
    if (!d->db)
        return 0;
    struct job *job = new_job(L, "sqlite.close", d->db, "");
    ab_sqlite_unref(d->db);
    d->db = NULL;
    job->run = run_close;
    job->push = push_true;
    return do_job(L);
}

static int l_gc(lua_State *L)
{
    struct database *d = luaL_checkudata(L, 1, DB_TYPE);
    if (d->db)
        ab_sqlite_unref(d->db);
    d->db = NULL;
    return 0;
}

/* ---- statements ---- */

static void add_value(lua_State *L, struct ab_sqlite_table *t, int idx)
{
    size_t len;
    switch (lua_type(L, idx)) {
    case LUA_TNIL:
        ab_sqlite_add(t, AB_SQLITE_NULL);
        break;
    case LUA_TBOOLEAN:
        ab_sqlite_add(t, AB_SQLITE_INTEGER)->integer = lua_toboolean(L, idx);
        break;
    case LUA_TNUMBER:
        if (lua_isinteger(L, idx))
            ab_sqlite_add(t, AB_SQLITE_INTEGER)->integer = lua_tointeger(L, idx);
        else
            ab_sqlite_add(t, AB_SQLITE_REAL)->real = lua_tonumber(L, idx);
        break;
    case LUA_TSTRING: {
        const char *text = lua_tolstring(L, idx, &len);
        ab_sqlite_add_text(t, text, len);
        break;
    }
    default:
        luaL_error(L, "a %s is no value for a database", luaL_typename(L, idx));
    }
}

/* Adds the first t->columns elements of the list at idx. */
static void add_row(lua_State *L, struct ab_sqlite_table *t, int idx)
{
    for (size_t i = 1; i <= t->columns; i++) {
        lua_geti(L, idx, (lua_Integer)i);
        add_value(L, t, -1);
        lua_pop(L, 1);
    }
}

static int run_exec(struct job *job)
{
    return ab_sqlite_exec(job->db, job->text, &job->err);
}

/* db:exec(sql): statements without values */
static int l_exec(lua_State *L)
{
    struct ab_sqlite *db = check_open(L);
    struct job *job = new_job(L, "sqlite.exec", db, luaL_checkstring(L, 2));
    job->run = run_exec;
    job->push = push_true;
    return do_job(L);
}

static int run_write(struct job *job)
{
    return ab_sqlite_write(job->db, job->text, &job->values, &job->err);
}

static size_t check_columns(lua_State *L, int arg)
{
    lua_Integer columns = luaL_checkinteger(L, arg);
    luaL_argcheck(L, columns >= 0 && columns <= MAX_COLUMNS, arg, "out of range");
    return (size_t)columns;
}

/* db:write(sql, columns, rows): the statement once for each row, all or none */
static int l_write(lua_State *L)
{
    struct ab_sqlite *db = check_open(L);
    const char *sql = luaL_checkstring(L, 2);
    size_t columns = check_columns(L, 3);
    luaL_checktype(L, 4, LUA_TTABLE);
    struct job *job = new_job(L, "sqlite.write", db, sql);
    job->values.columns = columns;
    lua_Integer rows = luaL_len(L, 4);
    for (lua_Integer i = 1; i <= rows; i++) {
        lua_geti(L, 4, i);
        add_row(L, &job->values, lua_gettop(L));
        lua_pop(L, 1);
    }
    job->run = run_write;
    job->push = push_true;
    return do_job(L);
}

static int run_query(struct job *job)
{
    return ab_sqlite_query(job->db, job->text, &job->values, &job->result, &job->err);
}

static void push_value(lua_State *L, const struct ab_sqlite_table *t,
                       const struct ab_sqlite_value *v)
{
    if (v->kind == AB_SQLITE_INTEGER)
        lua_pushinteger(L, v->integer);
    else if (v->kind == AB_SQLITE_REAL)
        lua_pushnumber(L, v->real);
    else if (v->kind == AB_SQLITE_TEXT)
        lua_pushlstring(L, v->len ? t->text.data + v->at : "", v->len);
    else
        lua_pushnil(L);
}

static int push_rows(lua_State *L, struct job *job)
{
    const struct ab_sqlite_table *t = &job->result;
    size_t rows = t->columns ? t->count / t->columns : 0;
    lua_createtable(L, (int)rows, 0);
    for (size_t i = 0; i < rows; i++) {
        lua_createtable(L, (int)t->columns, 0);
        for (size_t k = 0; k < t->columns; k++) {
            push_value(L, t, &t->values[i * t->columns + k]);
            lua_rawseti(L, -2, (lua_Integer)k + 1);
        }
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/* db:query(sql [, columns, row]): a list of rows, each a list; NULL is nil */
static int l_query(lua_State *L)
{
    struct ab_sqlite *db = check_open(L);
    const char *sql = luaL_checkstring(L, 2);
    size_t columns = lua_isnoneornil(L, 3) ? 0 : check_columns(L, 3);
    if (columns)
        luaL_checktype(L, 4, LUA_TTABLE);
    struct job *job = new_job(L, "sqlite.query", db, sql);
    job->values.columns = columns;
    add_row(L, &job->values, 4);
    job->run = run_query;
    job->push = push_rows;
    return do_job(L);
}

int luaopen_agentbox_sys_sqlite(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"exec", l_exec},     {"write", l_write}, {"query", l_query}, {"close", l_close},
        {"__close", l_close}, {"__gc", l_gc},     {NULL, NULL},
    };
    luaL_newmetatable(L, JOB_TYPE);
    lua_pushcfunction(L, l_holder_gc);
    lua_setfield(L, -2, "__gc");
    luaL_newmetatable(L, DB_TYPE);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, l_open);
    lua_setfield(L, -2, "open");
    return 1;
}
