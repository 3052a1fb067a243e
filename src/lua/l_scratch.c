/* l_scratch.c - agentbox.sys.scratch: texts that wait on the disk until they are needed.
 *
 * A place is an integer: where in its log a text begins, and how long it is. A list of
 * places costs the collector nothing, which a list of texts does. */
#include "lua/conv.h"
#include "rt/scratch.h"

#define SCRATCH_TYPE "agentbox.scratch"
#define LOG_TYPE     "agentbox.scratch.log"

enum { LEN_BITS = 28, MAX_NEAR_BYTES = 64 << 20 };

int luaopen_agentbox_sys_scratch(lua_State *L);

struct holder {
    struct ab_scratch *scratch; /* owns, or NULL */
};

/* open(dir [, near_bytes]) */
static int l_open(lua_State *L)
{
    const char *dir = abl_check_path(L, 1);
    lua_Integer near = luaL_optinteger(L, 2, 0);
    luaL_argcheck(L, near >= 0 && near <= MAX_NEAR_BYTES, 2, "out of range");
    struct holder *h = lua_newuserdatauv(L, sizeof *h, 0);
    struct ab_err err;
    h->scratch = NULL;
    luaL_setmetatable(L, SCRATCH_TYPE);
    h->scratch = ab_scratch_open(dir, (size_t)near, &err);
    return h->scratch ? 1 : abl_push_err(L, &err, "scratch.open");
}

static struct ab_scratch *check_scratch(lua_State *L)
{
    struct holder *h = luaL_checkudata(L, 1, SCRATCH_TYPE);
    if (!h->scratch)
        luaL_error(L, "the scratch file is closed");
    return h->scratch;
}

/* scratch:log() */
static int l_log(lua_State *L)
{
    struct ab_scratch *scratch = check_scratch(L);
    struct ab_scratch_log *log = lua_newuserdatauv(L, sizeof *log, 0);
    ab_scratch_log_init(log, scratch);
    luaL_setmetatable(L, LOG_TYPE);
    return 1;
}

/* scratch:size(): of the file */
static int l_size(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)ab_scratch_size(check_scratch(L)));
    return 1;
}

static int l_scratch_close(lua_State *L)
{
    struct holder *h = luaL_checkudata(L, 1, SCRATCH_TYPE);
    ab_scratch_close(h->scratch);
    h->scratch = NULL;
    return 0;
}

static struct ab_scratch_log *check_log(lua_State *L)
{
    struct ab_scratch_log *log = luaL_checkudata(L, 1, LOG_TYPE);
    if (!log->scratch)
        luaL_error(L, "the log is closed");
    return log;
}

/* log:add(text [, between]): its place; `between` stands before it unless it is the first
 * text. */
static int l_add(lua_State *L)
{
    struct ab_scratch_log *log = check_log(L);
    size_t len;
    const char *text = luaL_checklstring(L, 2, &len);
    const char *between = luaL_optstring(L, 3, "");
    struct ab_err err;
    if (len >> LEN_BITS) {
        ab_err_set(&err, AB_ETOOBIG, "a text of %zu bytes", len);
        return abl_push_err(L, &err, "scratch.add");
    }
    if (ab_scratch_append(log, between, text, len, &err) < 0)
        return abl_push_err(L, &err, "scratch.add");
    lua_pushinteger(L, (lua_Integer)((log->size - len) << LEN_BITS | len));
    return 1;
}

static uint64_t check_place(lua_State *L, int idx, const struct ab_scratch_log *log,
                            size_t *len)
{
    uint64_t place = (uint64_t)luaL_checkinteger(L, idx), at = place >> LEN_BITS;
    *len = (size_t)(place & (((uint64_t)1 << LEN_BITS) - 1));
    luaL_argcheck(L, at <= log->size && *len <= log->size - at, idx, "no such place");
    return at;
}

static int push_bytes(lua_State *L, const struct ab_scratch_log *log, uint64_t at,
                      size_t len, const char *before, const char *behind)
{
    struct ab_err err;
    size_t total;
    const char *view = ab_scratch_view(log, at, len, before, behind, &total, &err);
    if (!view)
        return abl_push_err(L, &err, "scratch.get");
    lua_pushlstring(L, view, total);
    return 1;
}

/* log:get(place) */
static int l_get(lua_State *L)
{
    struct ab_scratch_log *log = check_log(L);
    size_t len;
    uint64_t at = check_place(L, 2, log, &len);
    return push_bytes(L, log, at, len, "", "");
}

/* log:span(first, last, open, close): all that lies between the beginning of one place
 * and the end of another, between two texts. */
static int l_span(lua_State *L)
{
    struct ab_scratch_log *log = check_log(L);
    size_t first_len, last_len;
    uint64_t from = check_place(L, 2, log, &first_len);
    uint64_t to = check_place(L, 3, log, &last_len) + last_len;
    luaL_argcheck(L, from <= to, 3, "lies before the first");
    return push_bytes(L, log, from, (size_t)(to - from), luaL_checkstring(L, 4),
                      luaL_checkstring(L, 5));
}

/* What lies between the first and the last of the places in a list. */
static uint64_t range_of(lua_State *L, const struct ab_scratch_log *log, lua_Integer n,
                         size_t *range)
{
    uint64_t from = UINT64_MAX, to = 0;
    for (lua_Integer i = 1; i <= n; i++) {
        if (lua_rawgeti(L, 2, i) == LUA_TNUMBER) {
            size_t len;
            uint64_t at = check_place(L, lua_gettop(L), log, &len);
            from = at < from ? at : from;
            to = at + len > to ? at + len : to;
        }
        lua_pop(L, 1);
    }
    *range = from < to ? (size_t)(to - from) : 0;
    return *range ? from : 0;
}

/* log:fill(list): the list, with the texts where their places were; they are read at
 * once. */
static int l_fill(lua_State *L)
{
    struct ab_scratch_log *log = check_log(L);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    lua_Integer n = luaL_len(L, 2);
    struct ab_err err;
    size_t range, total;
    uint64_t from = range_of(L, log, n, &range);
    const char *view =
        range ? ab_scratch_view(log, from, range, "", "", &total, &err) : "";
    if (!view)
        return abl_push_err(L, &err, "scratch.fill");
    for (lua_Integer i = 1; i <= n; i++) {
        if (lua_rawgeti(L, 2, i) == LUA_TNUMBER) {
            size_t len;
            uint64_t at = check_place(L, 3, log, &len);
            lua_pushlstring(L, len ? view + (at - from) : view, len);
            lua_rawseti(L, 2, i);
        }
        lua_settop(L, 2);
    }
    return 1;
}

static int l_log_close(lua_State *L)
{
    ab_scratch_log_fini(luaL_checkudata(L, 1, LOG_TYPE));
    return 0;
}

static void new_type(lua_State *L, const char *name, const luaL_Reg *methods,
                     lua_CFunction gc)
{
    luaL_newmetatable(L, name);
    lua_newtable(L);
    luaL_setfuncs(L, methods, 0);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
}

int luaopen_agentbox_sys_scratch(lua_State *L)
{
    static const luaL_Reg scratch[] = {
        {"log", l_log}, {"size", l_size}, {"close", l_scratch_close}, {NULL, NULL}};
    static const luaL_Reg log[] = {{"add", l_add},         {"get", l_get},
                                   {"span", l_span},       {"fill", l_fill},
                                   {"close", l_log_close}, {NULL, NULL}};
    static const luaL_Reg lib[] = {{"open", l_open}, {NULL, NULL}};
    new_type(L, SCRATCH_TYPE, scratch, l_scratch_close);
    new_type(L, LOG_TYPE, log, l_log_close);
    luaL_newlib(L, lib);
    return 1;
}
