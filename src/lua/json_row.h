/* json_row.h - what an object looks like whose names are known beforehand: a list of
 * names, each of which is a name of a value that is given, or { name, names } for an
 * object inside, or { name, text } for a member that is always the same JSON text. Values
 * are counted through all of it, in its order.
 */
#ifndef AB_LUA_JSON_ROW_H
#define AB_LUA_JSON_ROW_H

#include <lua.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/json_slice.h"

enum { ABL_JSON_STEPS = 48 };

struct abl_json_row;

/* Pushes the row of the list at 1, and the bytes of its names; a string for a name that
 * is in the set at 2 is JSON text itself, and is not checked. nulls: a nil is written as
 * null, and not left out. Borrowed from the value. */
const struct abl_json_row *abl_json_push_row(lua_State *L, bool nulls);

/* How many values it has. */
int abl_json_row_values(const struct abl_json_row *row);

/* Appends the object. Value i is the slice, or where there is none what is at stack index
 * first + i; a slice of text at NULL is none, and so are all when slices is. */
void abl_json_put_row(lua_State *L, const struct abl_json_row *row, const char *names,
                      int first, const struct ab_json_slice *slices, struct ab_buf *out);

/* Appends the value at idx as a row does. text: a string is JSON text. Raises the error
 * of what JSON cannot say. */
void abl_json_put_value(lua_State *L, int idx, bool text, struct ab_buf *out);

#endif
