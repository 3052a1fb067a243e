/* traceback.h - debug.traceback for stacks of any depth.
 *
 * That of Lua walks the whole stack many times over, which for a recursion without end (a
 * million frames) takes seconds in one call that nothing can interrupt.
 */
#ifndef AB_LUA_TRACEBACK_H
#define AB_LUA_TRACEBACK_H

#include <lua.h>

/* As luaL_traceback; of a deep stack it shows the innermost frames alone. Pushes the
 * text. */
void abl_traceback(lua_State *L, lua_State *co, const char *msg, int level);

/* Replaces debug.traceback. */
void abl_traceback_install(lua_State *L);

#endif
