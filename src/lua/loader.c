#include "lua/loader.h"

#include <lauxlib.h>
#include <string.h>

#include "lua/embed.h"

static int l_search_embedded(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    for (const struct ab_embed *e = ab_embedded; e->module; e++) {
        if (strcmp(e->module, name) != 0)
            continue;
        lua_pushfstring(L, "@%s", name);
        if (luaL_loadbufferx(L, e->text, e->size, lua_tostring(L, -1), "t") != LUA_OK)
            return lua_error(L);
        lua_pushstring(L, "builtin");
        return 2;
    }
    lua_pushfstring(L, "no built-in module '%s'", name);
    return 1;
}

void abl_loader_install(lua_State *L)
{
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "searchers");
    lua_pushcfunction(L, l_search_embedded);
    lua_rawseti(L, -2, 2);
    lua_pop(L, 2);
}
