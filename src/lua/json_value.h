/* json_value.h - the Lua shape of JSON-like data, shared by the json and yaml primitives.
 *
 * null is one userdata; an array is a table with one shared metatable; an object is a
 * table whose metatable holds its keys in order. Objects of the same shape share a
 * metatable. A number that neither int64 nor double holds is a userdata with its text,
 * and so is a subtree that was kept raw.
 */
#ifndef AB_LUA_JSON_VALUE_H
#define AB_LUA_JSON_VALUE_H

#include "base/json.h"
#include "lua/fiber.h"

/* Creates the metatables. Call once per state, from whichever primitive loads first. */
void abl_json_register(lua_State *L);

/* Pushes a parser owned by the collector, taken from a cache when possible: give it back
 * with abl_json_return once the values are built (after an error the collector frees it).
 */
struct ab_json *abl_json_take(lua_State *L);
void abl_json_return(lua_State *L, int idx);

/* Pushes the value of the whole document held by the parser at idx. Raw subtrees refer to
 * the string at src_idx, which must be the parsed text. */
void abl_json_push(lua_State *L, int idx, int src_idx);
void abl_json_register_push(lua_State *L);

enum abl_json_type {
    ABL_JSON_OTHER, /* not ours: nil, a number, a plain table, ... */
    ABL_JSON_NULL,
    ABL_JSON_ARRAY,
    ABL_JSON_OBJECT,
    ABL_JSON_NUMBER,
    ABL_JSON_RAW,
};

/* For ABL_JSON_OBJECT also pushes its metatable, whose array part is the list of keys:
 * `false` marks a hole, and a key without a value was deleted. */
enum abl_json_type abl_json_type(lua_State *L, int idx);

/* The text of a number or raw value. Borrowed from the value. */
const char *abl_json_value_text(lua_State *L, int idx, size_t *len);

void abl_json_push_null(lua_State *L);
void abl_json_push_number(lua_State *L, const char *s, size_t len);

/* Marks the table at idx; its present keys are ordered bytewise, after those in the list
 * at first_idx (0 for none). */
void abl_json_mark_array(lua_State *L, int idx);
void abl_json_mark_object(lua_State *L, int idx, int first_idx);

/* Pushes the keys of the table at idx that have a value, as a list: in order for an
 * object, else the string keys sorted bytewise. Returns their number, or -1 (and pushes
 * nothing) when some key is not a string. */
lua_Integer abl_json_push_keys(lua_State *L, int idx, bool sorted);

enum { ABL_JSON_SHAPE_KEYS = 64 }; /* the most that a shape has */

/* Pushes the shape of an object without keys. A shape is a metatable for setmetatable. */
void abl_json_push_shape(lua_State *L);

/* Replaces the shape on top by the one with the key at idx behind the others. False, and
 * nothing changes, when there is none: what is on top is no shape, has that key or too
 * many, or the key is long or no string. */
bool abl_json_next_shape(lua_State *L, int key);

/* For json_push.c: pushes an object's metatable without keys, with room for some. */
void abl_json_push_object_mt(lua_State *L, int keys);
bool abl_json_is_object_mt(lua_State *L, int idx);
void abl_json_register_object(lua_State *L);

#endif
