/* l_time.c - agentbox.sys.time */
#include "lua/l_time.h"

#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

int luaopen_agentbox_sys_time(lua_State *L);

#define MAX_SECONDS 1e9

static double seconds(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double abl_monotonic(void)
{
    return seconds(CLOCK_MONOTONIC);
}

uint64_t abl_check_ms(lua_State *L, int arg)
{
    lua_Number s = luaL_checknumber(L, arg);
    luaL_argcheck(L, s >= 0, arg, "seconds must not be negative");
    return (uint64_t)ceil((s < MAX_SECONDS ? s : MAX_SECONDS) * 1000);
}

static int l_monotonic(lua_State *L)
{
    lua_pushnumber(L, abl_monotonic());
    return 1;
}

/* The time of day as it was when the engine started, and what has passed since: a clock
 * that is set meanwhile must not make the times of a record run backwards, or a command
 * take a year. */
static int l_now(lua_State *L)
{
    lua_Number started = lua_tonumber(L, lua_upvalueindex(1));
    lua_pushnumber(L, started + seconds(CLOCK_BOOTTIME));
    return 1;
}

/* Splits a unix time into whole seconds and microseconds, rounded down. */
static time_t split(lua_State *L, int arg, long *micros)
{
    lua_Number t = luaL_checknumber(L, arg);
    luaL_argcheck(L, t > -6e10 && t < 2e11, arg, "time out of range");
    lua_Number whole = floor(t);
    *micros = (long)floor((t - whole) * 1e6 + 0.5);
    if (*micros >= 1000000) {
        *micros -= 1000000;
        whole += 1;
    }
    return (time_t)whole;
}

/* iso(t): "2026-01-02T03:04:05.000001Z" */
static int l_iso(lua_State *L)
{
    long micros;
    time_t t = split(L, 1, &micros);
    struct tm tm;
    gmtime_r(&t, &tm);
    char buf[64];
    size_t n = strftime(buf, sizeof buf, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(buf + n, sizeof buf - n, ".%06ldZ", micros);
    lua_pushstring(L, buf);
    return 1;
}

/* local_date(t): "2026-01-02 03:04:05" in the machine's zone */
static int l_local_date(lua_State *L)
{
    long micros;
    time_t t = split(L, 1, &micros);
    struct tm tm;
    localtime_r(&t, &tm);
    char buf[64];
    strftime(buf, sizeof buf, "%Y-%m-%d %H:%M:%S", &tm);
    lua_pushstring(L, buf);
    return 1;
}

int luaopen_agentbox_sys_time(lua_State *L)
{
    static const luaL_Reg lib[] = {
        {"monotonic", l_monotonic},   {"now", l_now}, {"iso", l_iso},
        {"local_date", l_local_date}, {NULL, NULL},
    };
    luaL_newlibtable(L, lib);
    lua_pushnumber(L, seconds(CLOCK_REALTIME) - seconds(CLOCK_BOOTTIME));
    luaL_setfuncs(L, lib, 1);
    return 1;
}
