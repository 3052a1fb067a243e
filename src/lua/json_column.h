/* json_column.h - the binding of base/json_column.h, a member of agentbox.sys.json. */
#ifndef AB_LUA_JSON_COLUMN_H
#define AB_LUA_JSON_COLUMN_H

#include <lua.h>

/* column(raw, inside, name) -> Raw, n | nil: the list of one member of the objects of a
 * list. */
int abl_json_column(lua_State *L);

#endif
