/* l_sse.c - agentbox.sys.sse */
#include "base/sse.h"
#include "lua/conv.h"

int luaopen_agentbox_sys_sse(lua_State *L);

#define PARSER_TYPE       "agentbox.sse.parser"
#define DEFAULT_MAX_BYTES (16 << 20)

static void push_event(lua_State *L, const struct ab_sse_event *event)
{
    lua_createtable(L, 0, 4);
    lua_pushlstring(L, event->name, event->name_len);
    lua_setfield(L, -2, "event");
    lua_pushlstring(L, event->data, event->data_len);
    lua_setfield(L, -2, "data");
    if (event->id_len > 0) {
        lua_pushlstring(L, event->id, event->id_len);
        lua_setfield(L, -2, "id");
    }
    if (event->retry_ms >= 0) {
        lua_pushinteger(L, event->retry_ms);
        lua_setfield(L, -2, "retry_ms");
    }
}

/* parser:feed(bytes) -> list of events | nil, err */
static int l_feed(lua_State *L)
{
    struct ab_sse *sse = luaL_checkudata(L, 1, PARSER_TYPE);
    struct ab_sse_event event;
    struct ab_err err;
    size_t len;
    const char *data = luaL_checklstring(L, 2, &len);
    lua_Integer n = 0;
    int rc;
    lua_settop(L, 2);
    lua_newtable(L);
    while ((rc = ab_sse_next(sse, &data, &len, &event, &err)) > 0) {
        push_event(L, &event);
        lua_rawseti(L, 3, ++n);
    }
    return rc == 0 ? 1 : abl_push_err(L, &err, "sse.feed");
}

/* parser:finish() -> list with the last event or none, whether the stream ended in a line
 */
static int l_finish(lua_State *L)
{
    struct ab_sse *sse = luaL_checkudata(L, 1, PARSER_TYPE);
    struct ab_sse_event event;
    bool cut;
    lua_newtable(L);
    if (ab_sse_finish(sse, &event, &cut) > 0) {
        push_event(L, &event);
        lua_rawseti(L, -2, 1);
    }
    lua_pushboolean(L, cut);
    return 2;
}

static int l_gc(lua_State *L)
{
    ab_sse_fini(luaL_checkudata(L, 1, PARSER_TYPE));
    return 0;
}

/* parser([{ max_bytes = }]) -> parser */
static int l_parser(lua_State *L)
{
    static const char *const allowed[] = {"max_bytes", NULL};
    abl_check_keys(L, 1, allowed);
    lua_Integer max = abl_opt_integer(L, 1, "max_bytes", DEFAULT_MAX_BYTES);
    luaL_argcheck(L, max > 0, 1, "option 'max_bytes': must be positive");
    struct ab_sse *sse = lua_newuserdatauv(L, sizeof *sse, 0);
    ab_sse_init(sse, (size_t)max);
    luaL_setmetatable(L, PARSER_TYPE);
    return 1;
}

int luaopen_agentbox_sys_sse(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"feed", l_feed},
        {"finish", l_finish},
        {"__gc", l_gc},
        {NULL, NULL},
    };
    static const luaL_Reg lib[] = {
        {"parser", l_parser},
        {NULL, NULL},
    };
    luaL_newmetatable(L, PARSER_TYPE);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    luaL_newlib(L, lib);
    return 1;
}
