/* json_sheet.c - a list of objects by columns that are made when they are asked for. */
#include "lua/json_sheet.h"

#include <lauxlib.h>
#include <string.h>

#include "lua/buffer.h"
#include "lua/json_plan.h"

#define CELLS_TYPE "agentbox.json.cells"

/* Keys of a sheet and of its metatable. */
#define SLICES  "slices"
#define COLUMNS "columns"

/* What a sheet holds below SLICES; the text that it points into and the plan are
 * its user values. */
struct slices {
    const struct abl_json_plan *plan;
    lua_Integer n;
    struct ab_json_slice found[];
};

enum { CELLS_SHEET = 1, CELLS_INSTEAD, CELLS_AT };

static const struct slices *slices_of(lua_State *L, int idx)
{
    lua_pushliteral(L, SLICES);
    lua_rawget(L, idx);
    const struct slices *s = lua_touserdata(L, -1);
    lua_pop(L, 1); /* the sheet keeps it */
    return s;
}

/* upvalues: plan, its names, the numbers of the columns by name */
static int l_sheet_index(lua_State *L)
{
    lua_settop(L, 2);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(3)) == LUA_TNIL)
        return 0;
    int c = (int)lua_tointeger(L, -1);
    const struct slices *s = slices_of(L, 1);
    struct ab_buf *scratch = abl_take_buf(L);
    int buf = lua_gettop(L);
    lua_pushvalue(L, 2);
    lua_createtable(L, (int)s->n, 0);
    for (lua_Integer i = 0; i < s->n; i++) {
        abl_json_push_found(L, s->found[i * s->plan->columns + c], s->plan->mark[c],
                            scratch);
        lua_rawseti(L, -2, i + 1);
    }
    lua_pushvalue(L, -1);
    lua_insert(L, buf + 1);
    lua_rawset(L, 1);
    abl_return_buf(L, buf);
    return 1;
}

/* Of a Lua list its copy: the texts have to stay, whatever becomes of the list. */
static void push_source(lua_State *L, lua_Integer n)
{
    if (!lua_istable(L, 1)) {
        lua_pushvalue(L, 1);
        return;
    }
    lua_createtable(L, (int)n, 0);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, 1, i);
        lua_rawseti(L, -2, i);
    }
}

/* Pushes a sheet with the slices at idx, and the metatable at mt. */
static void push_sheet(lua_State *L, int idx, int mt)
{
    const struct slices *s = lua_touserdata(L, idx);
    lua_createtable(L, 0, 8);
    lua_pushliteral(L, SLICES);
    lua_pushvalue(L, idx);
    lua_rawset(L, -3);
    lua_pushinteger(L, s->n);
    lua_setfield(L, -2, "n");
    lua_pushvalue(L, mt);
    lua_setmetatable(L, -2);
}

/* The lists in a column, one behind the other; pushes where each begins. What is no list
 * of objects is an empty one. */
static lua_Integer take_cells(lua_State *L, const struct abl_json_cells *cells,
                              const struct abl_json_plan *plan, struct ab_buf *found)
{
    lua_Integer total = 0;
    lua_createtable(L, (int)cells->n + 1, 0);
    for (lua_Integer i = 1; i <= cells->n; i++) {
        lua_pushinteger(L, total + 1);
        lua_rawseti(L, -2, i);
        struct ab_json_slice list = abl_json_cell(cells, i);
        size_t before = found->len;
        lua_Integer n = list.s ? abl_json_take_list(list, plan, found) : 0;
        if (n < 0)
            found->len = before;
        else
            total += n;
    }
    lua_pushinteger(L, total + 1);
    lua_rawseti(L, -2, cells->n + 1);
    return total;
}

/* upvalues: plan, the metatable */
static int l_make_sheet(lua_State *L)
{
    const struct abl_json_plan *plan = lua_touserdata(L, lua_upvalueindex(1));
    lua_settop(L, 1);
    struct ab_buf *found = abl_take_buf(L);
    const struct abl_json_cells *cells = luaL_testudata(L, 1, CELLS_TYPE);
    lua_Integer n;
    if (cells)
        n = take_cells(L, cells, plan, found);
    else
        n = abl_json_take_all(L, plan, found);
    lua_settop(L, 3);
    if (n < 0) {
        abl_return_buf(L, 2);
        return 0;
    }
    struct slices *s = lua_newuserdatauv(L, sizeof *s + found->len, 2);
    s->plan = plan;
    s->n = n;
    if (found->len > 0)
        memcpy(s->found, found->data, found->len);
    push_source(L, n);
    lua_setiuservalue(L, 4, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_setiuservalue(L, 4, 2);
    abl_return_buf(L, 2);
    push_sheet(L, 4, lua_upvalueindex(2));
    if (cells) {
        lua_pushvalue(L, 3);
        lua_setfield(L, -2, "from");
    }
    return 1;
}

/* Replaces the paths by name at 1 by a list of the paths, with the numbers of the columns
 * by name below COLUMNS. */
static void number_columns(lua_State *L)
{
    lua_Integer n = 0;
    lua_newtable(L);
    lua_newtable(L);
    for (lua_pushnil(L); lua_next(L, 1); n++) {
        lua_rawseti(L, 2, n + 1);
        lua_pushvalue(L, -1);
        lua_pushinteger(L, n);
        lua_rawset(L, 3);
    }
    lua_setfield(L, 2, COLUMNS);
    lua_replace(L, 1);
}

int abl_json_sheet(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    number_columns(L);
    abl_json_push_plan(L);
    lua_newtable(L);
    lua_getfield(L, 1, COLUMNS);
    lua_setfield(L, 4, COLUMNS);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, 3);
    lua_getfield(L, 1, COLUMNS);
    lua_pushcclosure(L, l_sheet_index, 3);
    lua_setfield(L, 4, "__index");
    lua_remove(L, 3); /* the other closure keeps it */
    lua_pushcclosure(L, l_make_sheet, 2);
    return 1;
}

/* Pushes the metatable of the sheet at 1 and its slices. */
static const struct slices *check_sheet(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    const struct slices *s = slices_of(L, 1);
    luaL_argcheck(L, s && lua_getmetatable(L, 1), 1, "a sheet expected");
    lua_pushliteral(L, SLICES);
    lua_rawget(L, 1);
    return s;
}

int abl_json_again(lua_State *L)
{
    lua_settop(L, 1);
    check_sheet(L);
    push_sheet(L, 3, 2);
    return 1;
}

int abl_json_cells(lua_State *L)
{
    luaL_checkstring(L, 2);
    lua_settop(L, 4);
    const struct slices *s = check_sheet(L);
    lua_getfield(L, 5, COLUMNS);
    lua_pushvalue(L, 2);
    luaL_argcheck(L, lua_rawget(L, -2) == LUA_TNUMBER, 2, "the sheet has no such column");
    int c = (int)lua_tointeger(L, -1);
    struct abl_json_cells *cells = lua_newuserdatauv(L, sizeof *cells, CELLS_AT);
    *cells = (struct abl_json_cells){
        .first = s->found + c,
        .stride = s->plan->columns,
        .n = s->n,
        .skips_null = s->plan->mark[c] == '!',
    };
    lua_pushvalue(L, 6);
    lua_setiuservalue(L, -2, CELLS_SHEET);
    lua_pushvalue(L, 3);
    lua_setiuservalue(L, -2, CELLS_INSTEAD);
    lua_pushvalue(L, 4);
    lua_setiuservalue(L, -2, CELLS_AT);
    luaL_setmetatable(L, CELLS_TYPE);
    return 1;
}

const struct abl_json_cells *abl_json_open_cells(lua_State *L, int idx)
{
    const struct abl_json_cells *cells = luaL_testudata(L, idx, CELLS_TYPE);
    if (!cells)
        return NULL;
    idx = lua_absindex(L, idx);
    lua_getiuservalue(L, idx, CELLS_INSTEAD);
    lua_getiuservalue(L, idx, CELLS_AT);
    return cells;
}

struct ab_json_slice abl_json_cell(const struct abl_json_cells *cells, lua_Integer i)
{
    struct ab_json_slice text = {0};
    if (i >= 1 && i <= cells->n)
        text = cells->first[(i - 1) * cells->stride];
    if (text.s && *text.s == 'n' && cells->skips_null)
        text.s = NULL;
    return text;
}

void abl_json_register_sheet(lua_State *L)
{
    luaL_newmetatable(L, CELLS_TYPE);
    lua_pop(L, 1);
}
