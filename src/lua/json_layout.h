/* json_layout.h - JSON laid out over lines (base/json_layout.h), with what Lua says of
 * it. */
#ifndef AB_LUA_JSON_LAYOUT_H
#define AB_LUA_JSON_LAYOUT_H

#include <lua.h>

#include "base/json_layout.h"

enum { ABL_JSON_RAW_NAMES = 24 };

/* Reads the option `raw` of the table at idx, up to ABL_JSON_RAW_NAMES names, and leaves
 * its list on the stack. The strings stay borrowed from it. */
size_t abl_json_read_names(lua_State *L, int idx, struct ab_json_name *names);

/* The same for (indent, ascii, { raw = names }) from idx on. */
struct ab_json_layout abl_json_read_layout(lua_State *L, int idx,
                                           struct ab_json_name *names);

/* lay_out(text, indent, ascii, { raw = names }) -> text | nil when it takes the values.
 * The containers of those members stay as they are. */
int abl_json_lay_out(lua_State *L);

#endif
