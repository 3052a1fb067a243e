#include "lua/buffer.h"

#include <lauxlib.h>

#define BUFFER_TYPE "agentbox.buffer"

/* A buffer that grew beyond this is not kept. */
#define KEEP_BYTES (256u << 10)

/* Its address is the registry key of the buffer that waits to be taken. */
static const char kept_key = 0;

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

/* Taking leaves nothing behind: whoever runs meanwhile must not find it in use. */
struct ab_buf *abl_take_buf(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &kept_key) != LUA_TUSERDATA) {
        lua_pop(L, 1);
        return abl_push_buf(L);
    }
    lua_pushboolean(L, 0);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &kept_key);
    return lua_touserdata(L, -1);
}

void abl_return_buf(lua_State *L, int idx)
{
    struct ab_buf *buf = lua_touserdata(L, idx);
    if (buf->cap > KEEP_BYTES)
        ab_buf_fini(buf);
    else
        ab_buf_clear(buf);
    lua_pushvalue(L, idx);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &kept_key);
}
