/* l_sqlite.c - agentbox.sys.sqlite: a database whose calls run on pool threads. */
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "lua/conv.h"
#include "lua/job.h"
#include "rt/sqlite.h"

#define DB_TYPE "agentbox.sqlite"

enum { MAX_RESULT_BYTES = 64 << 20, MAX_COLUMNS = 64 };

int luaopen_agentbox_sys_sqlite(lua_State *L);

struct sqlite_job {
    struct abl_job job;
    struct ab_sqlite *db; /* owns a reference, or NULL */
    char *text;           /* owns; SQL, or the path to open */
    unsigned flags;
    struct ab_sqlite_table values, result; /* owns */
};

struct database {
    struct ab_sqlite *db; /* owns a reference, or NULL */
};

static struct sqlite_job *of(struct abl_job *job)
{
    return (struct sqlite_job *)job;
}

static void fini(struct abl_job *job)
{
    struct sqlite_job *sql = of(job);
    if (sql->db)
        ab_sqlite_unref(sql->db);
    ab_sqlite_table_fini(&sql->values);
    ab_sqlite_table_fini(&sql->result);
    free(sql->text);
}

static struct sqlite_job *new_job(lua_State *L, const struct abl_job_kind *kind,
                                  struct ab_sqlite *db, const char *text)
{
    struct sqlite_job *sql = ABL_JOB_NEW(L, struct sqlite_job, kind);
    sql->text = ab_xstrndup(text, strlen(text));
    sql->db = db;
    if (db)
        ab_sqlite_ref(db);
    ab_buf_init(&sql->values.text, 0);
    ab_buf_init(&sql->result.text, MAX_RESULT_BYTES);
    return sql;
}

/* ---- opening and closing ---- */

static int run_open(struct abl_job *job)
{
    struct sqlite_job *sql = of(job);
    return ab_sqlite_open(&sql->db, sql->text, sql->flags, &job->err);
}

static int push_database(lua_State *L, struct abl_job *job)
{
    struct database *d = lua_newuserdatauv(L, sizeof *d, 0);
    d->db = of(job)->db;
    of(job)->db = NULL;
    luaL_setmetatable(L, DB_TYPE);
    return 1;
}

static const struct abl_job_kind OPEN = {"sqlite.open", run_open, push_database, fini};

/* open(path [, { write = }]) */
static int l_open(lua_State *L)
{
    static const char *const keys[] = {"write", NULL};
    const char *path = abl_check_path(L, 1);
    abl_check_keys(L, 2, keys);
    bool write = abl_opt_boolean(L, 2, "write", false);
    struct sqlite_job *sql = new_job(L, &OPEN, NULL, path);
    sql->flags = write ? AB_SQLITE_WRITE : 0;
    return abl_job_do(L, true);
}

static struct ab_sqlite *check_open(lua_State *L)
{
    struct database *d = luaL_checkudata(L, 1, DB_TYPE);
    if (!d->db)
        luaL_error(L, "the database is closed");
    return d->db;
}

static int run_close(struct abl_job *job)
{
    ab_sqlite_close(of(job)->db);
    return 0;
}

static const struct abl_job_kind CLOSE = {"sqlite.close", run_close, abl_job_push_true,
                                          fini};

/* db:close(); may be called twice */
static int l_close(lua_State *L)
{
    struct database *d = luaL_checkudata(L, 1, DB_TYPE);
    if (!d->db)
        return 0;
    new_job(L, &CLOSE, d->db, "");
    ab_sqlite_unref(d->db);
    d->db = NULL;
    return abl_job_do(L, true);
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

static int run_exec(struct abl_job *job)
{
    return ab_sqlite_exec(of(job)->db, of(job)->text, &job->err);
}

static const struct abl_job_kind EXEC = {"sqlite.exec", run_exec, abl_job_push_true,
                                         fini};

/* db:exec(sql): statements without values */
static int l_exec(lua_State *L)
{
    struct ab_sqlite *db = check_open(L);
    new_job(L, &EXEC, db, luaL_checkstring(L, 2));
    return abl_job_do(L, true);
}

static int run_write(struct abl_job *job)
{
    struct sqlite_job *sql = of(job);
    return ab_sqlite_write(sql->db, sql->text, &sql->values, &job->err);
}

static const struct abl_job_kind WRITE = {"sqlite.write", run_write, abl_job_push_true,
                                          fini};

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
    const char *text = luaL_checkstring(L, 2);
    size_t columns = check_columns(L, 3);
    luaL_checktype(L, 4, LUA_TTABLE);
    struct sqlite_job *sql = new_job(L, &WRITE, db, text);
    sql->values.columns = columns;
    lua_Integer rows = luaL_len(L, 4);
    for (lua_Integer i = 1; i <= rows; i++) {
        lua_geti(L, 4, i);
        add_row(L, &sql->values, lua_gettop(L));
        lua_pop(L, 1);
    }
    return abl_job_do(L, true);
}

static int run_query(struct abl_job *job)
{
    struct sqlite_job *sql = of(job);
    return ab_sqlite_query(sql->db, sql->text, &sql->values, &sql->result, &job->err);
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

static int push_rows(lua_State *L, struct abl_job *job)
{
    const struct ab_sqlite_table *t = &of(job)->result;
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

static const struct abl_job_kind QUERY = {"sqlite.query", run_query, push_rows, fini};

/* db:query(sql [, columns, row]): a list of rows, each a list; NULL is nil */
static int l_query(lua_State *L)
{
    struct ab_sqlite *db = check_open(L);
    const char *text = luaL_checkstring(L, 2);
    size_t columns = lua_isnoneornil(L, 3) ? 0 : check_columns(L, 3);
    if (columns)
        luaL_checktype(L, 4, LUA_TTABLE);
    struct sqlite_job *sql = new_job(L, &QUERY, db, text);
    sql->values.columns = columns;
    add_row(L, &sql->values, 4);
    return abl_job_do(L, true);
}

int luaopen_agentbox_sys_sqlite(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"exec", l_exec},     {"write", l_write}, {"query", l_query}, {"close", l_close},
        {"__close", l_close}, {"__gc", l_gc},     {NULL, NULL},
    };
    luaL_newmetatable(L, DB_TYPE);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, l_open);
    lua_setfield(L, -2, "open");
    return 1;
}
