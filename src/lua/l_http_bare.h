/* l_http_bare.h - connections that agentbox.sys.http hands over. */
#ifndef AB_LUA_L_HTTP_BARE_H
#define AB_LUA_L_HTTP_BARE_H

#include <lua.h>

#include "rt/http.h"

/* Takes *t, which is connected, and leaves NULL, unless it raises for lack of memory.
 * Pushes the connection, or nil, err; gives how many. */
int abl_push_bare(lua_State *L, struct ab_http_transfer **t);

void abl_bare_register(lua_State *L); /* leaves nothing on the stack */

#endif
