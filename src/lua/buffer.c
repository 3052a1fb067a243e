#include "lua/buffer.h"

#include <lauxlib.h>

#define BUFFER_TYPE "agentbox.buffer"

static int l_buffer_gc(lua_State *L)
{
    ab_buf_fini(luaL_checkudata(L, 1, BUFFER_TYPE));
    return 0;
}

struct ab_buf *abl_push_buf(lua_State *L)
{
    struct ab_buf *buf = lua_newuserdatauv(L, sizeof *buf, 0);
    ab_buf_init(buf, 0);
    if (luaL_newmetatable(L, BUFFER_TYPE)) {
        lua_pushcfunction(L, l_buffer_gc);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    return buf;
}
