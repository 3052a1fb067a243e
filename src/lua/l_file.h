/* l_file.h - open files of agentbox.sys.fs: append_open and lock. */
#ifndef AB_LUA_L_FILE_H
#define AB_LUA_L_FILE_H

#include <lua.h>

/* Adds append_open and lock to the table on top of the stack. */
void abl_file_register(lua_State *L);

#endif
