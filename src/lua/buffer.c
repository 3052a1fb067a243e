#include "lua/buffer.h"

#include <lauxlib.h>

#define BUFFER_TYPE "agentbox.buffer"

/* A buffer that grew beyond this is not kept. */
#define KEEP_BYTES (256u << 10)

/* Its address is the registry key of the buffer that is taken and given back. */
static const char kept_key = 0;

struct buffer {
    struct ab_buf buf;
    bool taken;
};

static int l_buffer_gc(lua_State *L)
{
    struct buffer *b = luaL_checkudata(L, 1, BUFFER_TYPE);
    ab_buf_fini(&b->buf);
    return 0;
}

static struct buffer *push_buffer(lua_State *L)
{
    struct buffer *b = lua_newuserdatauv(L, sizeof *b, 0);
    ab_buf_init(&b->buf, 0);
    b->taken = false;
    if (luaL_newmetatable(L, BUFFER_TYPE)) {
        lua_pushcfunction(L, l_buffer_gc);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    return b;
}

struct ab_buf *abl_push_buf(lua_State *L)
{
    return &push_buffer(L)->buf;
}

/* A finalizer may run while the buffer is in use, or whoever took it may have raised:
 * then another one takes its place. */
struct ab_buf *abl_take_buf(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &kept_key);
    struct buffer *b = lua_touserdata(L, -1);
    if (!b || b->taken) {
        lua_pop(L, 1);
        b = push_buffer(L);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &kept_key);
    }
    b->taken = true;
    return &b->buf;
}

void abl_return_buf(lua_State *L, int idx)
{
    struct buffer *b = lua_touserdata(L, idx);
    if (b->buf.cap > KEEP_BYTES)
        ab_buf_fini(&b->buf);
    else
        ab_buf_clear(&b->buf);
    b->taken = false;
}
