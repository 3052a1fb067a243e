/* json_sheet.h - a list of objects by columns, each of which is made when somebody asks
 * for it; and those columns for row writers, which copy the text and make nothing. */
#ifndef AB_LUA_JSON_SHEET_H
#define AB_LUA_JSON_SHEET_H

#include <lua.h>

#include "base/json_slice.h"

/* sheet { name = path } -> make(list) -> sheet | nil when something in the list is no
 * object. The paths are those of split(), the list too. sheet.n is the number of objects,
 * sheet.NAME the column of that name: a table, made at first sight. The sheet keeps the
 * text.
 *
 * Made of cells it is of the lists in a column, one behind the other: sheet.from[i] is
 * where the objects of list i begin, which go up to from[i + 1]. What is no list of
 * objects there has none. */
int abl_json_sheet(lua_State *L);

/* again(sheet) -> a sheet of the same objects, whose columns are its own: for who alters
 * them */
int abl_json_again(lua_State *L);

/* cells(sheet, name [, instead [, at]]) -> a column for rows(), of the JSON texts as they
 * stand in the list, whatever the path's mark; with `!` before the path null counts as
 * nothing. What the table `instead` has for an object, by its place from 1, goes before.
 * With the list `at` element i is that of place at[i]. */
int abl_json_cells(lua_State *L);

struct abl_json_cells {
    const struct ab_json_slice *first; /* borrowed from the value */
    int stride;
    lua_Integer n;
    bool skips_null;
};

/* NULL when it is none. Else pushes its `instead` and its `at`, nil where there is none.
 */
const struct abl_json_cells *abl_json_open_cells(lua_State *L, int idx);

/* The text of place i; empty for nothing. */
struct ab_json_slice abl_json_cell(const struct abl_json_cells *cells, lua_Integer i);

void abl_json_register_sheet(lua_State *L);

#endif
