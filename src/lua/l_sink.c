/* l_sink.c - agentbox.sys.sink: JSON values written to a file, one behind the other.
 *
 * What a value is made of is copied once, into the sink's own memory, and from there to
 * the kernel: no string is made of it. */
#include <lauxlib.h>

#include "lua/buffer.h"
#include "lua/conv.h"
#include "lua/json_encode.h"
#include "lua/json_layout.h"
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
    struct abl_json_drain drain; /* first: who is called with it finds the sink */
    struct ab_buf *out;          /* borrowed from the user value */
    int fd;                      /* of the file, while it is written to */
};

int luaopen_agentbox_sys_sink(lua_State *L);

/* Of an error it says only that something is missing: then the file is of no use. */
static int take(struct abl_json_drain *drain, struct ab_buf *out, struct ab_err *err)
{
    const struct sink *sink = (const struct sink *)drain;
    int rc = ab_fs_write_fd(sink->fd, out->data, out->len, err);
    if (out->cap > KEEP_BYTES)
        ab_buf_fini(out);
    else
        ab_buf_clear(out);
    return rc;
}

/* new([file]) -> Sink; the file is one of fs.append_open, and stays its owner's. */
static int l_new(lua_State *L)
{
    lua_settop(L, 1);
    if (!lua_isnil(L, 1))
        abl_file_fd(L, 1);
    struct sink *sink = lua_newuserdatauv(L, sizeof *sink, SINK_BUFFER);
    *sink = (struct sink){.drain = {.take = take}, .fd = -1};
    sink->out = abl_push_buf(L);
    lua_setiuservalue(L, 2, SINK_BUFFER);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, 2, SINK_FILE);
    luaL_setmetatable(L, SINK_TYPE);
    return 1;
}

static struct sink *check_sink(lua_State *L)
{
    struct sink *sink = luaL_checkudata(L, 1, SINK_TYPE);
    lua_getiuservalue(L, 1, SINK_FILE);
    sink->fd = abl_file_fd(L, -1);
    lua_pop(L, 1);
    return sink;
}

static int flush(lua_State *L, struct sink *sink)
{
    struct ab_err err;
    if (take(&sink->drain, sink->out, &err) < 0)
        return abl_push_err(L, &err, "sink.write");
    lua_pushboolean(L, 1);
    return 1;
}

/* sink:put(value [, behind]): its JSON text on one line, and the text behind it; true, or
 * nil and the error. Raises what JSON cannot say. After either the file is of no use. */
static int l_put(lua_State *L)
{
    struct sink *sink = check_sink(L);
    const struct abl_json_format plain = {.max_bytes = MAX_BYTES, .drain = &sink->drain};
    struct ab_err err;
    size_t len;
    luaL_checkany(L, 2);
    const char *behind = luaL_optlstring(L, 3, "", &len);
    sink->drain.taken = 0;
    if (abl_json_encode(L, 2, &plain, sink->out, &err) < 0) {
        if (err.code != AB_EBADARG && err.code != AB_ETOOBIG)
            return abl_push_err(L, &err, "sink.write");
        abl_push_errvalue(L, &err, "sink.put");
        return lua_error(L);
    }
    ab_buf_put(sink->out, behind, len);
    if (sink->out->len >= FLUSH_BYTES)
        return flush(L, sink);
    lua_pushboolean(L, 1);
    return 1;
}

/* sink:aim(file): what is put from now on is that file's. What was put before must have
 * been flushed. */
static int l_aim(lua_State *L)
{
    const struct sink *sink = luaL_checkudata(L, 1, SINK_TYPE);
    abl_file_fd(L, 2);
    luaL_argcheck(L, sink->out->len == 0, 1, "what was put is not flushed");
    lua_settop(L, 2);
    lua_setiuservalue(L, 1, SINK_FILE);
    return 0;
}

/* sink:lay_out(value, indent, ascii, { raw = names }): its JSON text laid out over lines,
 * as json.lay_out does it; true, false when that takes the values, or nil and the error
 * of writing. Raises what JSON cannot say. After an error the file is of no use. */
static int l_lay_out(lua_State *L)
{
    static const struct abl_json_format plain = {.max_bytes = MAX_BYTES,
                                                 .keeps_space = true};
    struct ab_json_name names[ABL_JSON_RAW_NAMES];
    struct ab_err err;
    lua_settop(L, 5);
    struct sink *sink = check_sink(L);
    struct ab_json_layout layout = abl_json_read_layout(L, 3, names);
    struct ab_buf *text = abl_take_buf(L);
    int buf = lua_gettop(L);
    if (abl_json_encode(L, 2, &plain, text, &err) < 0) {
        abl_return_buf(L, buf);
        abl_push_errvalue(L, &err, "sink.lay_out");
        return lua_error(L);
    }
    size_t before = sink->out->len;
    bool laid_out = ab_json_lay_out(sink->out, text->data, text->len, &layout);
    abl_return_buf(L, buf);
    if (!laid_out)
        sink->out->len = before;
    if (sink->out->len >= FLUSH_BYTES)
        return flush(L, sink);
    lua_pushboolean(L, laid_out);
    return 1;
}

/* sink:flush(): all of it is the file's. */
static int l_flush(lua_State *L)
{
    return flush(L, check_sink(L));
}

int luaopen_agentbox_sys_sink(lua_State *L)
{
    static const luaL_Reg methods[] = {{"put", l_put},
                                       {"lay_out", l_lay_out},
                                       {"aim", l_aim},
                                       {"flush", l_flush},
                                       {NULL, NULL}};
    static const luaL_Reg lib[] = {{"new", l_new}, {NULL, NULL}};
    luaL_newmetatable(L, SINK_TYPE);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    luaL_newlib(L, lib);
    return 1;
}
