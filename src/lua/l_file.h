/* l_file.h - open files of agentbox.sys.fs: append_open and lock. */
#ifndef AB_LUA_L_FILE_H
#define AB_LUA_L_FILE_H

#include <lua.h>

/* The descriptor of the open file at idx, which is one of append_open; raises when it is
 * none. Borrowed. */
int abl_file_fd(lua_State *L, int idx);

/* Adds append_open and lock to the table on top of the stack. */
void abl_file_register(lua_State *L);

#endif
