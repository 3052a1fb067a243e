/* json_raw.h - JSON text as a value: encode copies it as it is. A slice of a text that
 * was read, or what a writer (json_writer.h) will have made when somebody asks.
 */
#ifndef AB_LUA_JSON_RAW_H
#define AB_LUA_JSON_RAW_H

#include <lauxlib.h>
#include <stdbool.h>

#include "base/buf.h"

/* s points into the string at src_idx. */
void abl_json_push_raw(lua_State *L, int src_idx, const char *s, size_t len);

/* Replaces the writer at idx (json_writer.h), and all that is above it, which are its
 * arguments, by a raw value whose text it makes when somebody asks for it. */
void abl_json_push_later(lua_State *L, int idx);

/* Whether the value at idx is raw and its text has not been made: then it is appended to
 * out, which must be anchored, and is not kept. Line breaks between tokens are. */
bool abl_json_write_later(lua_State *L, int idx, struct ab_buf *out);

/* The text of the raw value at idx; raises when it is none. Borrowed from the value. */
const char *abl_json_raw_text(lua_State *L, int idx, size_t *len);

/* For json_value.c: registers a type whose metatable is also found by an address, which
 * is faster than by its name; whether the metatable on top is the one of that address;
 * and whether it is that of raw values. */
void abl_json_new_type(lua_State *L, const char *name, const void *key,
                       const luaL_Reg *methods);
bool abl_json_is_mt(lua_State *L, const void *key);
bool abl_json_is_raw_mt(lua_State *L);
void abl_json_register_raw(lua_State *L);

#endif
