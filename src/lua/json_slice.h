/* json_slice.h - parts of JSON text, without making values of the rest. */
#ifndef AB_LUA_JSON_SLICE_H
#define AB_LUA_JSON_SLICE_H

#include <lua.h>

/* All of these are for text that is known to be valid JSON, a string or a raw value: a
 * member of a parsed document, or what our own encoder wrote.
 *
 * A name is a path ("m.role": role inside m; "t.[2]": the second element of the list t,
 * of which the first nine can be named). Its value is nil when it is absent or null, a
 * Lua value when it is a scalar, and JSON text when it is a container. With `&` before
 * the path it is JSON text whatever it is, "null" too, and nil when it is absent; with
 * `!` the same, but nil when it is null; with `$` it is a string, and nil when it is
 * anything else; with `?` it is what kind of value is there: "object", "array", "string",
 * "number", "boolean" or "null". Of repeated keys the last wins.
 */

/* split(names) -> split(list) -> n, column, ...: a list of objects, as JSON text or as a
 * Lua list of JSON texts, by columns; nil when something in it is no object. */
int abl_json_split(lua_State *L);

/* pick(names) -> pick(object) -> value, ...; nothing when it is no object. */
int abl_json_pick(lua_State *L);

/* entries(object) -> keys, texts: its members in their order | nil */
int abl_json_entries(lua_State *L);

/* elements(array) -> texts | nil */
int abl_json_elements(lua_State *L);

#endif
