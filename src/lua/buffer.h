/* buffer.h - an ab_buf that the collector frees should anything raise before it is
 * released. */
#ifndef AB_LUA_BUFFER_H
#define AB_LUA_BUFFER_H

#include <lua.h>

#include "base/buf.h"

/* Pushes an empty buffer without a cap. Borrowed: it lives as long as the value on the
 * stack; ab_buf_fini() may be called early. */
struct ab_buf *abl_push_buf(lua_State *L);

#endif
