/* json_rows.h - functions that write the JSON text of objects whose names are known
 * beforehand, as json_row.h says them. All are writers, for sys.later (json_writer.h).
 */
#ifndef AB_LUA_JSON_ROWS_H
#define AB_LUA_JSON_ROWS_H

#include <lua.h>

/* row(names, texts [, nulls]) -> put(value, ...) -> the JSON text of an object with these
 * names; a nil leaves its name out. A string for a name that is in the set `texts` is
 * JSON text itself, and is not checked. */
int abl_json_row(lua_State *L);

/* rows(names, texts [, nulls]) -> put(from, to, column, ...) -> the JSON text of a list
 * of such objects, from the elements from..to of a table for each name, or from the
 * cells of a sheet (json_sheet.h), which are copied as they stand; a value that is
 * neither is the same in all of them. */
int abl_json_rows(lua_State *L);

/* list(from, to, column) -> the list of the JSON texts from..to of a column, as those of
 * rows() are */
int abl_json_list(lua_State *L);

/* recast(names, paths [, nulls]) -> recast(cells) -> texts: each list of objects in a
 * column, written again with these names; a path of split() for each value, whose text is
 * copied. By its place; nothing of what is no list of objects, or has none. */
int abl_json_recast(lua_State *L);

/* member(text, name, value) -> the text of an object, as row() writes it, with one more
 * member behind the others */
int abl_json_member(lua_State *L);

/* tuple(value, ...) -> the JSON text of the list of them */
int abl_json_tuple(lua_State *L);

#endif
