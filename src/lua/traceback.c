#include "lua/traceback.h"

#include <lauxlib.h>
#include <lualib.h>

enum { DEEP = 2000, SHOWN = 20 };

static void add_frame(lua_State *L, lua_State *co, lua_Debug *ar)
{
    lua_getinfo(co, "Sln", ar);
    if (ar->currentline > 0)
        lua_pushfstring(L, "\n\t%s:%d: in ", ar->short_src, ar->currentline);
    else
        lua_pushfstring(L, "\n\t%s: in ", ar->short_src);
    if (*ar->namewhat)
        lua_pushfstring(L, "%s '%s'", ar->namewhat, ar->name);
    else
        lua_pushfstring(L, "function <%s:%d>", ar->short_src, ar->linedefined);
    lua_concat(L, 3);
}

void abl_traceback(lua_State *L, lua_State *co, const char *msg, int level)
{
    lua_Debug ar;
    if (!lua_getstack(co, DEEP, &ar)) {
        luaL_traceback(L, co, msg, level);
        return;
    }
    lua_pushfstring(L, "%s%sstack traceback:", msg ? msg : "", msg ? "\n" : "");
    for (int i = 0; i < SHOWN && lua_getstack(co, level + i, &ar); i++)
        add_frame(L, co, &ar);
    lua_pushfstring(L, "\n\t...\t(more than %d levels)", DEEP);
    lua_concat(L, 2);
}

/* debug.traceback([thread,] [message [, level]]) */
static int l_traceback(lua_State *L)
{
    lua_State *co = lua_isthread(L, 1) ? lua_tothread(L, 1) : L;
    int arg = co == L && !lua_isthread(L, 1) ? 0 : 1;
    const char *msg = lua_tostring(L, arg + 1);
    if (!msg && !lua_isnoneornil(L, arg + 1)) {
        lua_pushvalue(L, arg + 1); /* not a text: unchanged */
        return 1;
    }
    abl_traceback(L, co, msg, (int)luaL_optinteger(L, arg + 2, co == L ? 1 : 0));
    return 1;
}

void abl_traceback_install(lua_State *L)
{
    lua_getglobal(L, LUA_DBLIBNAME);
    lua_pushcfunction(L, l_traceback);
    lua_setfield(L, -2, "traceback");
    lua_pop(L, 1);
}
