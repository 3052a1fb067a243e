/* json_texts.h - lists of JSON texts of which those that somebody looks at are decoded.
 */
#ifndef AB_LUA_JSON_TEXTS_H
#define AB_LUA_JSON_TEXTS_H

#include <lua.h>
#include <stdbool.h>

/* texts(list [, opts]) -> a list whose elements are the JSON texts, strings or raw ones,
 * in `list` until
 * somebody looks: then they are decoded, with opts, once. encode writes it back. */
int abl_json_texts(lua_State *L);

/* Whether the value at idx came from texts(); then also pushes its elements, strings or
 * what has been decoded. */
bool abl_json_push_texts(lua_State *L, int idx);

/* Call once per state, with the decoder on top of the stack; pops it. */
void abl_json_register_texts(lua_State *L);

#endif
