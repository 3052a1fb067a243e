/* buffer.h - bytes in the making that the collector frees should anything raise before
 * they are released. */
#ifndef AB_LUA_BUFFER_H
#define AB_LUA_BUFFER_H

#include <lua.h>

#include "base/buf.h"

/* Pushes an empty buffer without a cap. Borrowed: it lives as long as the value on the
 * stack; ab_buf_fini() may be called early. */
struct ab_buf *abl_push_buf(lua_State *L);

/* The same, but its memory comes from the last one that was given back. For what is made
 * and copied into a string at once: idx is where it was pushed. */
struct ab_buf *abl_take_buf(lua_State *L);
void abl_return_buf(lua_State *L, int idx);

#endif
