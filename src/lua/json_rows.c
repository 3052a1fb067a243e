#include "lua/json_rows.h"

#include <lauxlib.h>

#include "lua/buffer.h"
#include "lua/json_plan.h"
#include "lua/json_row.h"
#include "lua/json_sheet.h"
#include "lua/json_writer.h"

/* upvalues: struct row, the bytes of its names */
static int l_put(lua_State *L)
{
    const struct abl_json_row *row = lua_touserdata(L, lua_upvalueindex(1));
    const char *names = lua_tostring(L, lua_upvalueindex(2));
    int buf = abl_json_row_values(row) + 1;
    struct ab_buf *out = abl_json_begin(L, buf);
    abl_json_put_row(L, row, names, 1, NULL, out);
    return abl_json_end(L, buf, out);
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
    const struct abl_json_row *row = lua_touserdata(L, lua_upvalueindex(1));
    const char *names = lua_tostring(L, lua_upvalueindex(2));
    struct column columns[ABL_JSON_STEPS];
    struct ab_json_slice slices[ABL_JSON_STEPS];
    lua_Integer from = luaL_checkinteger(L, 1), to = luaL_checkinteger(L, 2);
    int count = abl_json_row_values(row), buf = 3 + count;
    luaL_checkstack(L, 3 * count + 8, NULL);
    struct ab_buf *out = abl_json_begin(L, buf);
    open_columns(L, 3, count, columns);
    int top = lua_gettop(L);
    ab_buf_putc(out, '[');
    for (lua_Integer at = from; at <= to; at++) {
        if (at > from)
            ab_buf_putc(out, ',');
        for (int i = 0; i < count; i++)
            slices[i] = push_element(L, &columns[i], at);
        abl_json_put_row(L, row, names, top + 1, slices, out);
        lua_settop(L, top);
    }
    ab_buf_putc(out, ']');
    return abl_json_end(L, buf, out);
}

int abl_json_list(lua_State *L)
{
    lua_Integer from = luaL_checkinteger(L, 1), to = luaL_checkinteger(L, 2);
    struct column column;
    struct ab_buf *out = abl_json_begin(L, 4);
    open_columns(L, 3, 1, &column);
    int top = lua_gettop(L);
    ab_buf_putc(out, '[');
    for (lua_Integer at = from; at <= to; at++) {
        struct ab_json_slice text = push_element(L, &column, at);
        if (!text.s && lua_type(L, -1) == LUA_TSTRING)
            text.s = lua_tolstring(L, -1, &text.len);
        luaL_argcheck(L, text.s || !lua_isnil(L, -1), 3, "a text for each expected");
        if (at > from)
            ab_buf_putc(out, ',');
        if (text.s)
            ab_buf_put(out, text.s, text.len);
        else
            abl_json_put_value(L, top + 1, true, out);
        lua_settop(L, top);
    }
    ab_buf_putc(out, ']');
    return abl_json_end(L, 4, out);
}

/* A function of the names at 1; at 3 whether nil is null. */
static int push_writer(lua_State *L, lua_CFunction put)
{
    bool nulls = lua_toboolean(L, 3);
    lua_settop(L, 2);
    abl_json_push_row(L, nulls);
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
static bool put_again(lua_State *L, const struct abl_json_row *row, const char *names,
                      const struct abl_json_plan *plan, struct ab_json_slice list,
                      struct ab_buf *found, struct ab_buf *out)
{
    int nil = lua_gettop(L);
    ab_buf_clear(found);
    lua_Integer n = abl_json_take_list(list, plan, found);
    if (n < 1)
        return false;
    int count = abl_json_row_values(row);
    luaL_checkstack(L, count + 4, NULL);
    for (int i = 0; i < count; i++)
        lua_pushnil(L);
    const struct ab_json_slice *slices = (const void *)found->data;
    for (lua_Integer i = 0; i < n; i++) {
        ab_buf_putc(out, i ? ',' : '[');
        abl_json_put_row(L, row, names, nil + 1, slices + i * plan->columns, out);
    }
    ab_buf_putc(out, ']');
    lua_settop(L, nil);
    return true;
}

/* upvalues: struct row, its names, the plan, what keeps its names */
static int l_recast(lua_State *L)
{
    const struct abl_json_row *row = lua_touserdata(L, lua_upvalueindex(1));
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
    const struct abl_json_row *row = abl_json_push_row(L, nulls);
    lua_pushcfunction(L, l_plan);
    lua_pushvalue(L, 2);
    lua_call(L, 1, 2);
    const struct abl_json_plan *plan = lua_touserdata(L, -2);
    luaL_argcheck(L, plan->columns == abl_json_row_values(row), 2,
                  "a path for each value expected");
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
    struct ab_buf *out = abl_json_begin(L, 4);
    ab_buf_put(out, object, len - 1);
    if (len > 2)
        ab_buf_putc(out, ',');
    abl_json_put_value(L, 2, false, out);
    ab_buf_putc(out, ':');
    abl_json_put_value(L, 3, false, out);
    ab_buf_putc(out, '}');
    return abl_json_end(L, 4, out);
}

int abl_json_tuple(lua_State *L)
{
    int n = lua_gettop(L) - lua_islightuserdata(L, -1);
    struct ab_buf *out = abl_json_begin(L, n + 1);
    ab_buf_putc(out, '[');
    for (int i = 1; i <= n; i++) {
        if (i > 1)
            ab_buf_putc(out, ',');
        abl_json_put_value(L, i, false, out);
    }
    ab_buf_putc(out, ']');
    return abl_json_end(L, n + 1, out);
}
