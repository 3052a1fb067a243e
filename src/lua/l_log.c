/* l_log.c - agentbox.sys.log, and the `print` of every fiber. */
#include <stdio.h>

#include "base/log.h"
#include "lua/conv.h"

int luaopen_agentbox_sys_log(lua_State *L);

static enum ab_log_level check_level(lua_State *L, int arg)
{
    int level = ab_log_level_of(luaL_checkstring(L, arg));
    luaL_argcheck(L, level >= 0, arg, "debug, info, warn, error or off expected");
    return (enum ab_log_level)level;
}

/* write(level, text) */
static int l_write(lua_State *L)
{
    enum ab_log_level level = check_level(L, 1);
    size_t len;
    const char *text = luaL_checklstring(L, 2, &len);
    ab_log_text(level, text, len);
    return 0;
}

static int l_set_level(lua_State *L)
{
    ab_log_set_level(check_level(L, 1));
    return 0;
}

/* Pushes the sink that the running fiber's locals name, or nil. */
static void push_sink(lua_State *L)
{
    struct ab_sched *s = ab_sched_of(L);
    if (!s || !s->running) {
        lua_pushnil(L);
        return;
    }
    abl_push_fiber(L, s->running);
    if (lua_getiuservalue(L, -1, AB_UV_LOCALS) == LUA_TTABLE)
        lua_getfield(L, -1, "log");
    else
        lua_pushnil(L);
    lua_replace(L, -3);
    lua_pop(L, 1);
}

/* print(...): to locals().log("info", text) when the fiber has one, else to standard
 * output. */
static int l_print(lua_State *L)
{
    int n = lua_gettop(L);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (int i = 1; i <= n; i++) {
        if (i > 1)
            luaL_addchar(&b, '\t');
        luaL_tolstring(L, i, NULL);
        luaL_addvalue(&b);
    }
    luaL_pushresult(&b);
    push_sink(L);
    if (lua_isfunction(L, -1)) {
        lua_pushliteral(L, "info");
        lua_pushvalue(L, -3);
        lua_call(L, 2, 0);
        return 0;
    }
    lua_pop(L, 1);
    size_t len;
    const char *text = lua_tolstring(L, -1, &len);
    fwrite(text, 1, len, stdout);
    putchar('\n');
    fflush(stdout);
    return 0;
}

int luaopen_agentbox_sys_log(lua_State *L)
{
    static const luaL_Reg lib[] = {
        {"write", l_write}, {"set_level", l_set_level}, {"print", l_print}, {NULL, NULL}};
    luaL_newlib(L, lib);
    return 1;
}
