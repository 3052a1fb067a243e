/* l_sink.c - agentbox.sys.sink: JSON values written to a file, one behind the other.
 *
 * What a value is made of is copied once, into the sink's own memory, and from there to
 * the kernel: no string is made of it. */
#include <lauxlib.h>

#include "lua/buffer.h"
#include "lua/conv.h"
#include "lua/json_encode.h"
#include "lua/l_file.h"
#include "rt/fs.h"

#define SINK_TYPE "agentbox.sink"

enum {
    FLUSH_BYTES = 128 << 10, /* what is written at once */
    KEEP_BYTES = 4 * FLUSH_BYTES,
    MAX_BYTES = 1 << 30, /* of a value, as for json.encode */
};

enum { SINK_FILE = 1, SINK_BUFFER };

struct sink {
    struct ab_buf *out; /* borrowed from the user value */
};

int luaopen_agentbox_sys_sink(lua_State *L);

/* new(file) -> Sink; the file is one of fs.append_open, and stays its owner's. */
static int l_new(lua_State *L)
{
    abl_file_fd(L, 1);
    lua_settop(L, 1);
    struct sink *sink = lua_newuserdatauv(L, sizeof *sink, SINK_BUFFER);
    sink->out = abl_push_buf(L);
    lua_setiuservalue(L, 2, SINK_BUFFER);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, 2, SINK_FILE);
    luaL_setmetatable(L, SINK_TYPE);
    return 1;
}

/* Writes what has come together; true, or nil and the error. Then it is gone either way:
 * a file that lacks some is of no use. */
static int flush(lua_State *L, struct sink *sink)
{
    struct ab_err err;
    lua_getiuservalue(L, 1, SINK_FILE);
    int fd = abl_file_fd(L, -1);
    int rc = ab_fs_write_fd(fd, sink->out->data, sink->out->len, &err);
    if (sink->out->cap > KEEP_BYTES)
        ab_buf_fini(sink->out);
    else
        ab_buf_clear(sink->out);
    if (rc < 0)
        return abl_push_err(L, &err, "sink.write");
    lua_pushboolean(L, 1);
    return 1;
}

/* sink:put(value [, behind]): its JSON text on one line, and the text behind it. Raises
 * what JSON cannot say. */
static int l_put(lua_State *L)
{
    static const struct abl_json_format plain = {.max_bytes = MAX_BYTES};
    struct sink *sink = luaL_checkudata(L, 1, SINK_TYPE);
    struct ab_err err;
    size_t len;
    luaL_checkany(L, 2);
    const char *behind = luaL_optlstring(L, 3, "", &len);
    size_t before = sink->out->len;
    if (abl_json_encode(L, 2, &plain, sink->out, &err) < 0) {
        sink->out->len = before;
        abl_push_errvalue(L, &err, "sink.put");
        return lua_error(L);
    }
    ab_buf_put(sink->out, behind, len);
    if (sink->out->len >= FLUSH_BYTES)
        return flush(L, sink);
    lua_pushboolean(L, 1);
    return 1;
}

/* sink:flush(): all of it is the file's. */
static int l_flush(lua_State *L)
{
    return flush(L, luaL_checkudata(L, 1, SINK_TYPE));
}

int luaopen_agentbox_sys_sink(lua_State *L)
{
    static const luaL_Reg methods[] = {{"put", l_put}, {"flush", l_flush}, {NULL, NULL}};
    static const luaL_Reg lib[] = {{"new", l_new}, {NULL, NULL}};
    luaL_newmetatable(L, SINK_TYPE);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    luaL_newlib(L, lib);
    return 1;
}
