/* pattern.h - string.find, match, gmatch and gsub with a budget of steps.
 *
 * A costly pattern raises an error value, code `limit`, instead of running for minutes:
 * what a model prints must not stop the other fibers. Everything else is as in Lua 5.4.
 */
#ifndef AB_LUA_PATTERN_H
#define AB_LUA_PATTERN_H

#include <lua.h>

/* The steps one call may take, beside those that grow with the length of its subject. */
#define ABL_PATTERN_STEPS 20000000

/* Replaces the four functions of the global table `string`. Call once, after the standard
 * libraries are open. */
void abl_pattern_install(lua_State *L);

#endif
