#include "lua/json_encode.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lua/json_raw.h"
#include "lua/json_texts.h"

struct encoder {
    lua_State *L;
    const struct abl_json_format *format;
    struct ab_buf *out;
    struct ab_err *err;
    int depth;
    char path[120]; /* to the value that failed, put together on the way back */
};

static int put_value(struct encoder *e, int idx);

static int refuse(struct encoder *e, enum ab_errcode code, const char *what)
{
    return ab_err_set(e->err, code, "%s", what);
}

/* Puts one step before the path; a path too long keeps its end. */
static void add_step(struct encoder *e, const char *name, lua_Integer i)
{
    char step[48], rest[sizeof e->path];
    if (name)
        snprintf(step, sizeof step, ".%s", name);
    else
        snprintf(step, sizeof step, "[%lld]", (long long)i);
    memcpy(rest, e->path, sizeof rest);
    if (strlen(step) + strlen(rest) < sizeof e->path)
        snprintf(e->path, sizeof e->path, "%.47s%.*s", step, (int)sizeof rest - 48, rest);
}

static void put_break(struct encoder *e)
{
    if (e->format->indent == 0)
        return;
    ab_buf_putc(e->out, '\n');
    size_t n = (size_t)(e->format->indent * e->depth);
    memset(ab_buf_reserve(e->out, n), ' ', n);
    ab_buf_advance(e->out, n);
}

static int put_string(struct encoder *e, int idx)
{
    size_t len;
    const char *s = lua_tolstring(e->L, idx, &len);
    if (ab_json_put_string(e->out, s, len, e->format->style) < 0)
        return refuse(e, AB_EBADARG, "a string that is not UTF-8");
    return 0;
}

static int put_number(struct encoder *e, int idx)
{
    if (lua_isinteger(e->L, idx)) {
        ab_json_put_integer(e->out, lua_tointeger(e->L, idx));
        return 0;
    }
    double v = lua_tonumber(e->L, idx);
    if (isfinite(v))
        ab_json_put_double(e->out, v);
    else if (e->format->nonfinite_null)
        ab_buf_put(e->out, "null", 4);
    else
        return refuse(e, AB_EBADARG,
                      isnan(v) ? "NaN is not JSON" : "infinity is not JSON");
    return 0;
}

/* One member: the key is at -2, the value at -1; pops both. */
static int put_member(struct encoder *e, bool first)
{
    int key = lua_gettop(e->L) - 1;
    if (!first)
        ab_buf_putc(e->out, ',');
    put_break(e);
    int rc = put_string(e, key);
    ab_buf_putc(e->out, ':');
    if (e->format->indent)
        ab_buf_putc(e->out, ' ');
    if (rc == 0)
        rc = put_value(e, key + 1);
    if (rc < 0)
        add_step(e, lua_tostring(e->L, key), 0);
    lua_settop(e->L, key - 1);
    return rc;
}

/* The keys are the list on top; `false` in it is a hole. Pops the list. */
static int put_members(struct encoder *e, int idx)
{
    lua_State *L = e->L;
    bool first = true;
    ab_buf_putc(e->out, '{');
    e->depth++;
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
        if (!lua_toboolean(L, -1)) {
            lua_pop(L, 1);
            continue;
        }
        lua_pushvalue(L, -1);
        if (lua_rawget(L, idx) == LUA_TNIL) {
            lua_pop(L, 2);
            continue;
        }
        if (lua_type(L, -2) != LUA_TSTRING)
            return refuse(e, AB_EBADARG, "an object's keys must be strings");
        if (put_member(e, first) < 0)
            return -1;
        first = false;
    }
    lua_pop(L, 2);
    e->depth--;
    if (!first)
        put_break(e);
    ab_buf_putc(e->out, '}');
    return 0;
}

/* Whether the table at idx has nothing but the elements 1..n: `next` gives the list part
 * first, so usually nothing follows n. */
static bool is_list(lua_State *L, int idx, lua_Integer n)
{
    lua_pushinteger(L, n);
    if (n > 0 && !lua_next(L, idx))
        return true;
    lua_pop(L, n > 0 ? 2 : 1);
    lua_Integer seen = 0;
    for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1)) {
        lua_Integer i = lua_isinteger(L, -2) ? lua_tointeger(L, -2) : 0;
        if (i < 1 || i > n) {
            lua_pop(L, 2);
            return false;
        }
        seen++;
    }
    return seen == n;
}

/* Between two elements of a list, where nobody looks back at what is there. */
static int drain(struct encoder *e)
{
    enum { MUCH = 128 << 10 };
    struct abl_json_drain *drain = e->format->drain;
    if (!drain || e->out->len < MUCH)
        return 0;
    drain->taken += e->out->len;
    if (drain->taken > e->format->max_bytes)
        return refuse(e, AB_ETOOBIG, "the JSON text is too long");
    return drain->take(drain, e->out, e->err);
}

/* The elements 1..n of the table at idx. Of texts strings are JSON text. */
static int put_elements(struct encoder *e, int idx, lua_Integer n, bool texts)
{
    lua_State *L = e->L;
    int element = lua_gettop(L) + 1;
    ab_buf_putc(e->out, '[');
    e->depth++;
    for (lua_Integer i = 1; i <= n; i++) {
        if (i > 1)
            ab_buf_putc(e->out, ',');
        put_break(e);
        int type = lua_rawgeti(L, idx, i), rc = 0;
        if (type == LUA_TNIL)
            rc = refuse(e, AB_EBADARG, "a list with holes");
        else if (texts && type == LUA_TSTRING)
            ab_json_put_raw(e->out, lua_tostring(L, element), lua_rawlen(L, element),
                            e->format->style);
        else
            rc = put_value(e, element);
        if (rc < 0)
            return add_step(e, NULL, i), -1;
        lua_settop(L, element - 1);
        if (drain(e) < 0)
            return -1;
    }
    e->depth--;
    if (n > 0)
        put_break(e);
    ab_buf_putc(e->out, ']');
    return 0;
}

static int put_array(struct encoder *e, int idx)
{
    lua_Integer n = (lua_Integer)lua_rawlen(e->L, idx);
    if (!is_list(e->L, idx, n))
        return refuse(e, AB_EBADARG, "a list with holes or with named members");
    return put_elements(e, idx, n, false);
}

static int put_table(struct encoder *e, int idx)
{
    lua_State *L = e->L;
    if (e->depth >= AB_JSON_MAX_DEPTH)
        return refuse(e, AB_EBADARG, "a cycle, or nested too deeply");
    if (e->out->len > e->format->max_bytes)
        return refuse(e, AB_ETOOBIG, "the JSON text is too long");
    luaL_checkstack(L, 12, "JSON nesting");
    enum abl_json_type type = abl_json_type(L, idx);
    if (type == ABL_JSON_ARRAY)
        return put_array(e, idx);
    if (type == ABL_JSON_OBJECT && !e->format->sorted)
        return put_members(e, idx);
    if (type == ABL_JSON_OBJECT)
        lua_pop(L, 1);
    else if (lua_rawlen(L, idx) > 0)
        return put_array(e, idx);
    if (abl_json_push_keys(L, idx, true) < 0)
        return refuse(e, AB_EBADARG, "an object's keys must be strings");
    return put_members(e, idx);
}

/* A list of texts, on top: what nobody looked at is copied. Pops it. */
static int put_texts(struct encoder *e)
{
    int list = lua_gettop(e->L);
    luaL_checkstack(e->L, 12, "JSON nesting");
    int rc = put_elements(e, list, (lua_Integer)lua_rawlen(e->L, list), true);
    lua_settop(e->L, list - 1);
    return rc;
}

/* Of raw text that has not been written yet, straight into the output where the style
 * leaves it as it is. */
static void put_raw(struct encoder *e, int idx)
{
    size_t len, start = e->out->len;
    if (!(e->format->style & AB_JSON_ASCII) && abl_json_write_later(e->L, idx, e->out)) {
        if (!e->format->keeps_space)
            ab_json_join_lines(e->out, start);
        return;
    }
    const char *s = abl_json_value_text(e->L, idx, &len);
    ab_json_put_raw(e->out, s, len, e->format->style);
}

/* Userdata: our own kinds; and NULL, which is lua-cjson's null. */
static int put_userdata(struct encoder *e, int idx)
{
    size_t len;
    const char *s;
    switch (abl_json_type(e->L, idx)) {
    case ABL_JSON_NULL:
        ab_buf_put(e->out, "null", 4);
        return 0;
    case ABL_JSON_NUMBER:
        s = abl_json_value_text(e->L, idx, &len);
        ab_buf_put(e->out, s, len);
        return 0;
    case ABL_JSON_RAW:
        put_raw(e, idx);
        return 0;
    default:
        if (abl_json_push_texts(e->L, idx))
            return put_texts(e);
        return refuse(e, AB_EBADARG, "a userdata has no JSON form");
    }
}

/* On failure values may be left on the stack: the caller of abl_json_encode resets it. */
static int put_value(struct encoder *e, int idx)
{
    switch (lua_type(e->L, idx)) {
    case LUA_TSTRING:
        return put_string(e, idx);
    case LUA_TNUMBER:
        return put_number(e, idx);
    case LUA_TBOOLEAN:
        if (lua_toboolean(e->L, idx))
            ab_buf_put(e->out, "true", 4);
        else
            ab_buf_put(e->out, "false", 5);
        return 0;
    case LUA_TTABLE:
        return put_table(e, idx);
    case LUA_TUSERDATA:
    case LUA_TLIGHTUSERDATA:
        return put_userdata(e, idx);
    case LUA_TNIL:
        return refuse(e, AB_EBADARG, "nil has no JSON form (use json.null)");
    case LUA_TFUNCTION:
        return refuse(e, AB_EBADARG, "a function has no JSON form");
    default:
        return refuse(e, AB_EBADARG, "a thread has no JSON form");
    }
}

int abl_json_encode(lua_State *L, int idx, const struct abl_json_format *format,
                    struct ab_buf *out, struct ab_err *err)
{
    struct encoder e;
    e.L = L;
    e.format = format;
    e.out = out;
    e.err = err;
    e.depth = 0;
    e.path[0] = '\0'; /* the rest of it stays as it is: most values are a few bytes */
    int top = lua_gettop(L);
    int rc = put_value(&e, lua_absindex(L, idx));
    if (rc == 0 && out->len > format->max_bytes)
        rc = refuse(&e, AB_ETOOBIG, "the JSON text is too long");
    lua_settop(L, top);
    return rc < 0 && e.path[0] ? ab_err_wrap(err, "at %s", e.path) : rc;
}
