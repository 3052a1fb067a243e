/* l_time.h - seconds, for other bindings. */
#ifndef AB_LUA_L_TIME_H
#define AB_LUA_L_TIME_H

#include <lua.h>
#include <stdint.h>

/* Seconds of the monotonic clock. */
double abl_monotonic(void);

/* Argument arg, seconds >= 0, as milliseconds rounded up. */
uint64_t abl_check_ms(lua_State *L, int arg);

#endif
