/* count.h - counts the instructions that Lua executes, for tests that something does not
 * grow: they count the same on any machine. Only builds with failure points count. */
#ifndef AB_LUA_COUNT_H
#define AB_LUA_COUNT_H

#include <lua.h>

/* To be called before co is resumed. */
#ifdef AB_FAULTS
void ab_count_begin(lua_State *co);
#else
static inline void ab_count_begin(lua_State *co)
{
    (void)co;
}
#endif

#endif
