/* core.h - the list of primitives, each one file l_<name>.c: agentbox.sys.<name>. */
#ifndef AB_LUA_CORE_H
#define AB_LUA_CORE_H

#include <lua.h>

/* Puts every primitive, and cjson, into package.preload. */
void abl_core_preload(lua_State *L);

int luaopen_agentbox_sys_log(lua_State *L);
int luaopen_agentbox_sys_os(lua_State *L);

#endif
