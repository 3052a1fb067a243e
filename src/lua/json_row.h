/* json_row.h - JSON whose names are known beforehand, and lists of texts. */
#ifndef AB_LUA_JSON_ROW_H
#define AB_LUA_JSON_ROW_H

#include "lua/json_value.h"

/* shape(name, ...) -> make(value, ...) -> an object with these names, in this order; a
 * nil leaves its name out. */
int abl_json_shape(lua_State *L);

/* What an object looks like is a list of names: a name of a value that is given, or
 * { name, names } for an object inside, or { name, text } for a member that is always the
 * same JSON text. Values are counted through all of it, in its order.
 *
 * row(names, texts [, nulls]) -> put(value, ...) -> the JSON text of an object with these
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

/* texts(list [, opts]) -> a list whose elements are the JSON texts in `list` until
 * somebody looks: then they are decoded, with opts, once. encode writes it back. */
int abl_json_texts(lua_State *L);

/* Whether the value at idx came from texts(); then also pushes its elements, strings or
 * what has been decoded. */
bool abl_json_push_texts(lua_State *L, int idx);

void abl_json_register_texts(lua_State *L);

#endif
