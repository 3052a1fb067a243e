/* json_shape.h - objects whose names are known beforehand: those made by one function
 * share their order, so that no key is noted for each of them. */
#ifndef AB_LUA_JSON_SHAPE_H
#define AB_LUA_JSON_SHAPE_H

#include <lua.h>

/* shape(name, ...) -> make(value, ...) -> an object with these names, in this order; a
 * nil leaves its name out. */
int abl_json_shape(lua_State *L);

#endif
