/* core.h - the list of primitives, each one file l_<name>.c: agentbox.sys.<name>. */
#ifndef AB_LUA_CORE_H
#define AB_LUA_CORE_H

#include <lua.h>

/* Opens in L what the library needs: primitives, loader, and the pcall and coroutine
 * functions that fibers need. The scheduler must be tied to L already. */
void abl_open_engine(lua_State *L);

int luaopen_agentbox_sys_log(lua_State *L);
int luaopen_agentbox_sys_os(lua_State *L);

#endif
