/* json_row.c - JSON whose names are known beforehand, and lists of texts. */
#include "lua/json_row.h"

#include <string.h>

#include "lua/buffer.h"
#include "lua/conv.h"
#include "lua/json_encode.h"
#include "lua/json_plan.h"
#include "lua/json_sheet.h"

#define TEXTS_TYPE "agentbox.json.texts"

enum { MAX_STEPS = 48, MAX_BYTES = 1 << 30 };

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

enum step_kind {
    MEMBER, /* of a value that is given */
    FIXED,  /* with its text */
    OPEN,   /* an object inside: its members follow */
    CLOSE,
};

struct step {
    enum step_kind kind;
    uint32_t at, len; /* of `,"name":`, and of a fixed text, in the upvalue's bytes */
    bool text;        /* its strings are JSON text */
};

struct row {
    int steps, count; /* count: of values */
    bool nulls;       /* a nil is written as null, not left out */
    struct step step[MAX_STEPS];
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

/* The name of a step; no value ends with an opening brace, so that what is behind one is
 * the first member. */
static void put_name(const struct step *step, const char *names, struct ab_buf *out)
{
    uint32_t comma = out->data[out->len - 1] == '{';
    ab_buf_put(out, names + step->at + comma, step->len - comma);
}

/* Value i is the slice, or where there is none what is at stack index first + i. */
static void put_row(lua_State *L, const struct row *row, const char *names, int first,
                    const struct ab_json_slice *slices, struct ab_buf *out)
{
    int i = -1;
    ab_buf_putc(out, '{');
    for (const struct step *step = row->step; step < row->step + row->steps; step++) {
        if (step->kind == CLOSE) {
            ab_buf_putc(out, '}');
            continue;
        }
        bool value = step->kind == MEMBER;
        i += value;
        bool slice = value && slices && slices[i].s;
        bool nil = value && !slice && lua_isnil(L, first + i);
        if (nil && !row->nulls)
            continue;
        put_name(step, names, out);
        if (step->kind == OPEN)
            ab_buf_putc(out, '{');
        else if (nil)
            ab_buf_put(out, "null", 4);
        else if (slice)
            ab_buf_put(out, slices[i].s, slices[i].len);
        else if (value)
            put_value(L, first + i, step->text, out);
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
    put_row(L, row, names, 1, NULL, out);
    lua_pushlstring(L, out->data, out->len);
    abl_return_buf(L, row->count + 1);
    return 1;
}

/* Where the values of a column come from. */
struct column {
    int idx;
    bool table;
    const struct abl_json_cells *cells; /* or NULL; then at the indices: */
    int instead, at;                    /* 0 for none */
};

static void open_columns(lua_State *L, int first, int n, struct column *columns)
{
    for (int i = 0; i < n; i++) {
        struct column *c = &columns[i];
        *c = (struct column){.idx = first + i, .table = lua_istable(L, first + i)};
        if (!c->table && (c->cells = abl_json_open_cells(L, first + i))) {
            int top = lua_gettop(L);
            c->instead = lua_istable(L, top - 1) ? top - 1 : 0;
            c->at = lua_istable(L, top) ? top : 0;
        }
    }
}

/* Pushes element i, or nil and it is a slice. */
static struct ab_json_slice push_element(lua_State *L, const struct column *c,
                                         lua_Integer i)
{
    if (!c->cells) {
        if (c->table)
            lua_rawgeti(L, c->idx, i);
        else
            lua_pushvalue(L, c->idx);
        return (struct ab_json_slice){0};
    }
    if (c->at) {
        lua_rawgeti(L, c->at, i);
        i = lua_tointeger(L, -1);
        lua_pop(L, 1);
    }
    if (c->instead && lua_rawgeti(L, c->instead, i) != LUA_TNIL)
        return (struct ab_json_slice){0};
    if (!c->instead)
        lua_pushnil(L);
    return abl_json_cell(c->cells, i);
}

/* put(from, to, column, ...); upvalues as above. */
static int l_put_all(lua_State *L)
{
    const struct row *row = lua_touserdata(L, lua_upvalueindex(1));
    const char *names = lua_tostring(L, lua_upvalueindex(2));
    struct column columns[MAX_STEPS];
    struct ab_json_slice slices[MAX_STEPS];
    lua_Integer from = luaL_checkinteger(L, 1), to = luaL_checkinteger(L, 2);
    int buf = 3 + row->count;
    lua_settop(L, buf - 1);
    luaL_checkstack(L, 3 * row->count + 8, NULL);
    struct ab_buf *out = abl_take_buf(L);
    open_columns(L, 3, row->count, columns);
    int top = lua_gettop(L);
    ab_buf_putc(out, '[');
    for (lua_Integer at = from; at <= to; at++) {
        if (at > from)
            ab_buf_putc(out, ',');
        for (int i = 0; i < row->count; i++)
            slices[i] = push_element(L, &columns[i], at);
        put_row(L, row, names, top + 1, slices, out);
        lua_settop(L, top);
    }
    ab_buf_putc(out, ']');
    lua_pushlstring(L, out->data, out->len);
    abl_return_buf(L, buf);
    return 1;
}

int abl_json_list(lua_State *L)
{
    lua_Integer from = luaL_checkinteger(L, 1), to = luaL_checkinteger(L, 2);
    struct column column;
    lua_settop(L, 3);
    struct ab_buf *out = abl_take_buf(L);
    open_columns(L, 3, 1, &column);
    int top = lua_gettop(L);
    ab_buf_putc(out, '[');
    for (lua_Integer at = from; at <= to; at++) {
        struct ab_json_slice text = push_element(L, &column, at);
        if (!text.s)
            text.s = lua_tolstring(L, -1, &text.len);
        luaL_argcheck(L, text.s, 3, "a text for each element expected");
        if (at > from)
            ab_buf_putc(out, ',');
        ab_buf_put(out, text.s, text.len);
        lua_settop(L, top);
    }
    ab_buf_putc(out, ']');
    lua_pushlstring(L, out->data, out->len);
    abl_return_buf(L, 4);
    return 1;
}

/* ---- what a row looks like ---- */

static struct step *add_step(lua_State *L, struct row *row, enum step_kind kind)
{
    luaL_argcheck(L, row->steps < MAX_STEPS, 1, "too many names");
    struct step *step = &row->step[row->steps++];
    *step = (struct step){.kind = kind};
    return step;
}

/* The name on top; pops it. */
static void add_name(lua_State *L, struct step *step, struct ab_buf *bytes)
{
    size_t len;
    luaL_argcheck(L, lua_type(L, -1) == LUA_TSTRING, 1, "a list of names expected");
    const char *s = lua_tolstring(L, -1, &len);
    step->at = (uint32_t)bytes->len;
    ab_buf_putc(bytes, ',');
    if (ab_json_put_string(bytes, s, len, 0) < 0)
        AB_BUG("bytes are replaced, not refused");
    ab_buf_putc(bytes, ':');
    step->len = (uint32_t)bytes->len - step->at;
    lua_pop(L, 1);
}

static void add_names(lua_State *L, int list, struct row *row, struct ab_buf *bytes);

/* { name, names } or { name, text }, on top; pops it. */
static void add_pair(lua_State *L, struct row *row, struct ab_buf *bytes)
{
    int pair = lua_gettop(L);
    struct step *step = add_step(L, row, OPEN);
    lua_rawgeti(L, pair, 1);
    add_name(L, step, bytes);
    if (lua_rawgeti(L, pair, 2) == LUA_TTABLE) {
        add_names(L, pair + 1, row, bytes);
        add_step(L, row, CLOSE);
    } else {
        size_t len;
        const char *s = luaL_checklstring(L, -1, &len);
        ab_buf_put(bytes, s, len);
        step->kind = FIXED;
        step->len += (uint32_t)len;
    }
    lua_settop(L, pair - 1);
}

static void add_names(lua_State *L, int list, struct row *row, struct ab_buf *bytes)
{
    lua_Integer n = (lua_Integer)lua_rawlen(L, list);
    luaL_argcheck(L, n > 0, 1, "a list of names expected");
    luaL_checkstack(L, 8, "names");
    for (lua_Integer i = 1; i <= n; i++) {
        if (lua_rawgeti(L, list, i) == LUA_TTABLE) {
            add_pair(L, row, bytes);
            continue;
        }
        struct step *step = add_step(L, row, MEMBER);
        row->count++;
        if (lua_istable(L, 2)) {
            lua_pushvalue(L, -1);
            lua_rawget(L, 2);
            step->text = lua_toboolean(L, -1);
            lua_pop(L, 1);
        }
        add_name(L, step, bytes);
    }
}

/* Pushes the row of the names at 1, of which those in the set at 2 have JSON text, and
 * the bytes of its names. */
static struct row *push_row(lua_State *L, bool nulls)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    struct row *row = lua_newuserdatauv(L, sizeof *row, 0);
    *row = (struct row){.nulls = nulls};
    struct ab_buf *bytes = abl_take_buf(L);
    int buf = lua_gettop(L);
    add_names(L, 1, row, bytes);
    lua_pushlstring(L, bytes->data, bytes->len);
    abl_return_buf(L, buf);
    lua_remove(L, buf);
    return row;
}

/* A function of the names at 1; at 3 whether nil is null. */
static int push_writer(lua_State *L, lua_CFunction put)
{
    bool nulls = lua_toboolean(L, 3);
    lua_settop(L, 2);
    push_row(L, nulls);
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

/* ---- lists written again ---- */

/* Appends the list as the row writes its objects; false when it is no list of objects, or
 * has none. */
static bool put_again(lua_State *L, const struct row *row, const char *names,
                      const struct abl_json_plan *plan, struct ab_json_slice list,
                      struct ab_buf *found, struct ab_buf *out)
{
    int nil = lua_gettop(L);
    ab_buf_clear(found);
    lua_Integer n = abl_json_take_list(list, plan, found);
    if (n < 1)
        return false;
    luaL_checkstack(L, row->count + 4, NULL);
    for (int i = 0; i < row->count; i++)
        lua_pushnil(L);
    const struct ab_json_slice *slices = (const void *)found->data;
    for (lua_Integer i = 0; i < n; i++) {
        ab_buf_putc(out, i ? ',' : '[');
        put_row(L, row, names, nil + 1, slices + i * plan->columns, out);
    }
    ab_buf_putc(out, ']');
    lua_settop(L, nil);
    return true;
}

/* upvalues: struct row, its names, the plan, what keeps its names */
static int l_recast(lua_State *L)
{
    const struct row *row = lua_touserdata(L, lua_upvalueindex(1));
    const char *names = lua_tostring(L, lua_upvalueindex(2));
    const struct abl_json_plan *plan = lua_touserdata(L, lua_upvalueindex(3));
    lua_settop(L, 1);
    const struct abl_json_cells *cells = abl_json_open_cells(L, 1);
    luaL_argcheck(L, cells, 1, "cells expected");
    lua_settop(L, 1);
    lua_newtable(L);
    struct ab_buf *out = abl_take_buf(L), *found = abl_push_buf(L);
    for (lua_Integer i = 1; i <= cells->n; i++) {
        struct ab_json_slice list = abl_json_cell(cells, i);
        ab_buf_clear(out);
        if (!list.s || !put_again(L, row, names, plan, list, found, out))
            continue;
        lua_pushlstring(L, out->data, out->len);
        lua_rawseti(L, 2, i);
    }
    ab_buf_fini(found);
    abl_return_buf(L, 3);
    lua_settop(L, 2);
    return 1;
}

static int l_plan(lua_State *L)
{
    abl_json_push_plan(L);
    return 2;
}

int abl_json_recast(lua_State *L)
{
    luaL_checktype(L, 2, LUA_TTABLE);
    bool nulls = lua_toboolean(L, 3);
    lua_settop(L, 2);
    const struct row *row = push_row(L, nulls);
    lua_pushcfunction(L, l_plan);
    lua_pushvalue(L, 2);
    lua_call(L, 1, 2);
    const struct abl_json_plan *plan = lua_touserdata(L, -2);
    luaL_argcheck(L, plan->columns == row->count, 2, "a path for each value expected");
    lua_pushcclosure(L, l_recast, 4);
    return 1;
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
