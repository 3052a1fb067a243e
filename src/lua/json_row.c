/* json_row.c - JSON whose names are known beforehand, and lists of texts. */
#include "lua/json_row.h"

#include <string.h>

#include "lua/buffer.h"
#include "lua/conv.h"
#include "lua/json_encode.h"

#define TEXTS_TYPE "agentbox.json.texts"

enum { MAX_NAMES = 32, MAX_BYTES = 1 << 30 };

static const struct abl_json_format plain = {.max_bytes = MAX_BYTES};

/* ---- shapes ---- */

/* Gives the object on top the shape of those of its names that have a value. */
static void set_partial_shape(lua_State *L, int n)
{
    abl_json_push_shape(L);
    for (int i = 1; i <= n; i++) {
        if (lua_isnil(L, i))
            continue;
        lua_pushvalue(L, lua_upvalueindex(i + 1));
        lua_insert(L, -2);
        if (!abl_json_next_shape(L, -2))
            AB_BUG("names that shape() took make no shape");
        lua_remove(L, -2);
    }
    lua_setmetatable(L, -2);
}

/* upvalues: the whole shape, its names */
static int l_make(lua_State *L)
{
    int n = (int)lua_rawlen(L, lua_upvalueindex(1));
    bool whole = true;
    lua_settop(L, n);
    lua_createtable(L, 0, n);
    for (int i = 1; i <= n; i++) {
        if (lua_isnil(L, i)) {
            whole = false;
            continue;
        }
        lua_pushvalue(L, lua_upvalueindex(i + 1));
        lua_pushvalue(L, i);
        lua_rawset(L, n + 1);
    }
    if (whole) {
        lua_pushvalue(L, lua_upvalueindex(1));
        lua_setmetatable(L, -2);
    } else {
        set_partial_shape(L, n);
    }
    return 1;
}

int abl_json_shape(lua_State *L)
{
    int n = lua_gettop(L);
    luaL_checkstack(L, n + 8, NULL);
    abl_json_push_shape(L);
    for (int i = 1; i <= n; i++) {
        luaL_checkstring(L, i);
        lua_pushvalue(L, i);
        lua_insert(L, -2);
        if (!abl_json_next_shape(L, -2))
            luaL_argerror(L, i,
                          "too many names, too long a name, or one that came twice");
        lua_remove(L, -2);
    }
    lua_insert(L, 1);
    lua_pushcclosure(L, l_make, n + 1);
    return 1;
}

/* ---- rows ---- */

struct name {
    uint32_t at, len; /* of `,"name":` in the upvalue's bytes */
    bool text;        /* its strings are JSON text */
};

struct row {
    int count;
    bool nulls; /* a nil is written as null, not left out */
    struct name names[MAX_NAMES];
};

/* Most values are texts, names and small numbers: those go without an encoder. */
static void put_value(lua_State *L, int idx, bool text, struct ab_buf *out)
{
    struct ab_err err;
    size_t len;
    if (lua_type(L, idx) == LUA_TSTRING) {
        const char *s = lua_tolstring(L, idx, &len);
        if (text)
            ab_buf_put(out, s, len);
        else if (ab_json_put_string(out, s, len, plain.style) < 0)
            AB_BUG("bytes are replaced, not refused");
    } else if (lua_isinteger(L, idx)) {
        ab_json_put_integer(out, lua_tointeger(L, idx));
    } else if (abl_json_encode(L, idx, &plain, out, &err) < 0) {
        abl_push_errvalue(L, &err, "json.row");
        lua_error(L);
    }
}

/* The value of name i is at stack index first + i. */
static void put_row(lua_State *L, const struct row *row, const char *names, int first,
                    struct ab_buf *out)
{
    size_t start = out->len + 1;
    ab_buf_putc(out, '{');
    for (int i = 0; i < row->count; i++) {
        bool nil = lua_isnil(L, first + i);
        if (nil && !row->nulls)
            continue;
        const struct name *name = &row->names[i];
        uint32_t comma = out->len == start;
        ab_buf_put(out, names + name->at + comma, name->len - comma);
        if (nil)
            ab_buf_put(out, "null", 4);
        else
            put_value(L, first + i, name->text, out);
    }
    ab_buf_putc(out, '}');
}

/* upvalues: struct row, the bytes of its names */
static int l_put(lua_State *L)
{
    const struct row *row = lua_touserdata(L, lua_upvalueindex(1));
    const char *names = lua_tostring(L, lua_upvalueindex(2));
    lua_settop(L, row->count);
    struct ab_buf *out = abl_take_buf(L);
    put_row(L, row, names, 1, out);
    lua_pushlstring(L, out->data, out->len);
    abl_return_buf(L, row->count + 1);
    return 1;
}

/* put(from, to, column, ...); upvalues as above. */
static int l_put_all(lua_State *L)
{
    const struct row *row = lua_touserdata(L, lua_upvalueindex(1));
    const char *names = lua_tostring(L, lua_upvalueindex(2));
    lua_Integer from = luaL_checkinteger(L, 1), to = luaL_checkinteger(L, 2);
    int columns = 3, buf = columns + row->count;
    lua_settop(L, buf - 1);
    luaL_checkstack(L, row->count + 8, NULL);
    struct ab_buf *out = abl_take_buf(L);
    ab_buf_putc(out, '[');
    for (lua_Integer at = from; at <= to; at++) {
        if (at > from)
            ab_buf_putc(out, ',');
        for (int i = 0; i < row->count; i++) {
            if (lua_istable(L, columns + i))
                lua_rawgeti(L, columns + i, at);
            else
                lua_pushvalue(L, columns + i);
        }
        put_row(L, row, names, buf + 1, out);
        lua_settop(L, buf);
    }
    ab_buf_putc(out, ']');
    lua_pushlstring(L, out->data, out->len);
    abl_return_buf(L, buf);
    return 1;
}

/* A function of the names at 1, of which those in the set at 2 have JSON text; at 3
 * whether nil is null. */
static int push_writer(lua_State *L, lua_CFunction put)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    bool nulls = lua_toboolean(L, 3);
    lua_settop(L, 2);
    lua_Integer n = (lua_Integer)lua_rawlen(L, 1);
    luaL_argcheck(L, n > 0 && n <= MAX_NAMES, 1, "1 to 32 names expected");
    struct row *row = lua_newuserdatauv(L, sizeof *row, 0);
    row->count = (int)n;
    row->nulls = nulls;
    struct ab_buf *bytes = abl_take_buf(L);
    for (int i = 0; i < row->count; i++) {
        size_t len, start = bytes->len;
        luaL_argcheck(L, lua_rawgeti(L, 1, i + 1) == LUA_TSTRING, 1,
                      "a list of names expected");
        const char *s = lua_tolstring(L, -1, &len);
        ab_buf_putc(bytes, ',');
        if (ab_json_put_string(bytes, s, len, 0) < 0)
            AB_BUG("bytes are replaced, not refused");
        ab_buf_putc(bytes, ':');
        row->names[i] =
            (struct name){.at = (uint32_t)start, .len = (uint32_t)(bytes->len - start)};
        if (lua_istable(L, 2)) {
            lua_rawget(L, 2);
            row->names[i].text = lua_toboolean(L, -1);
        }
        lua_settop(L, 4);
    }
    lua_pushlstring(L, bytes->data, bytes->len);
    abl_return_buf(L, 4);
    lua_remove(L, 4);
    lua_pushcclosure(L, put, 2);
    return 1;
}

int abl_json_row(lua_State *L)
{
    return push_writer(L, l_put);
}

int abl_json_rows(lua_State *L)
{
    return push_writer(L, l_put_all);
}

int abl_json_member(lua_State *L)
{
    size_t len;
    const char *object = luaL_checklstring(L, 1, &len);
    luaL_argcheck(L, len > 1 && object[len - 1] == '}', 1, "an object expected");
    luaL_checkstring(L, 2);
    luaL_checkany(L, 3);
    lua_settop(L, 3);
    struct ab_buf *out = abl_take_buf(L);
    ab_buf_put(out, object, len - 1);
    if (len > 2)
        ab_buf_putc(out, ',');
    put_value(L, 2, false, out);
    ab_buf_putc(out, ':');
    put_value(L, 3, false, out);
    ab_buf_putc(out, '}');
    lua_pushlstring(L, out->data, out->len);
    abl_return_buf(L, 4);
    return 1;
}

int abl_json_tuple(lua_State *L)
{
    int n = lua_gettop(L);
    struct ab_buf *out = abl_take_buf(L);
    ab_buf_putc(out, '[');
    for (int i = 1; i <= n; i++) {
        if (i > 1)
            ab_buf_putc(out, ',');
        put_value(L, i, false, out);
    }
    ab_buf_putc(out, ']');
    lua_pushlstring(L, out->data, out->len);
    abl_return_buf(L, n + 1);
    return 1;
}

/* ---- lists of texts ---- */

enum { UV_ELEMENTS = 1, UV_OPTS };

int abl_json_texts(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    lua_newuserdatauv(L, 0, 2);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, UV_ELEMENTS);
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, -2, UV_OPTS);
    luaL_setmetatable(L, TEXTS_TYPE);
    return 1;
}

bool abl_json_push_texts(lua_State *L, int idx)
{
    if (!luaL_testudata(L, idx, TEXTS_TYPE))
        return false;
    lua_getiuservalue(L, idx, UV_ELEMENTS);
    return true;
}

/* upvalue: decode */
static int l_texts_index(lua_State *L)
{
    luaL_checkudata(L, 1, TEXTS_TYPE);
    lua_settop(L, 2);
    lua_getiuservalue(L, 1, UV_ELEMENTS);
    if (!lua_isinteger(L, 2) || lua_rawgeti(L, 3, lua_tointeger(L, 2)) == LUA_TNIL)
        return 0;
    if (lua_type(L, 4) != LUA_TSTRING)
        return 1;
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 4);
    lua_getiuservalue(L, 1, UV_OPTS);
    lua_call(L, 2, 1);
    lua_pushvalue(L, 4);
    lua_rawseti(L, 3, lua_tointeger(L, 2));
    return 1;
}

static int l_texts_len(lua_State *L)
{
    luaL_checkudata(L, 1, TEXTS_TYPE);
    lua_getiuservalue(L, 1, UV_ELEMENTS);
    lua_pushinteger(L, (lua_Integer)lua_rawlen(L, -1));
    return 1;
}

/* The decoder is on top of the stack; pops it. */
void abl_json_register_texts(lua_State *L)
{
    luaL_newmetatable(L, TEXTS_TYPE);
    lua_insert(L, -2);
    lua_pushcclosure(L, l_texts_index, 1);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, l_texts_len);
    lua_setfield(L, -2, "__len");
    lua_pop(L, 1);
}
