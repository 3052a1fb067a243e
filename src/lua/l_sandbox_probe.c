/* l_sandbox_probe.c - what this machine can do, and what dead engines left behind. */
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lua/l_sandbox.h"

/* probe(): facts that cost nothing to find; whether a sandbox works is told by making one. */
static int l_probe(lua_State *L)
{
    struct utsname u;
    const struct ab_cgroup_info *info = ab_cgroup_probe();
    uname(&u);
    lua_createtable(L, 0, 5);
    lua_pushstring(L, u.release);
    lua_setfield(L, -2, "kernel");
    lua_pushboolean(L, geteuid() == 0);
    lua_setfield(L, -2, "root");
    lua_createtable(L, 0, 6);
    lua_pushstring(L, ab_cgroup_level_name(info->level));
    lua_setfield(L, -2, "level");
    lua_pushboolean(L, info->memory);
    lua_setfield(L, -2, "memory");
    lua_pushboolean(L, info->pids);
    lua_setfield(L, -2, "pids");
    lua_pushboolean(L, info->cpu);
    lua_setfield(L, -2, "cpu");
    lua_pushboolean(L, info->kill);
    lua_setfield(L, -2, "kill");
    if (info->why[0]) {
        lua_pushstring(L, info->why);
        lua_setfield(L, -2, "why");
    }
    lua_setfield(L, -2, "cgroup");
    return 1;
}

/* sweep([dry]): how many sandboxes of dead engines were removed, or would be. */
static int l_sweep(lua_State *L)
{
    lua_pushinteger(L, ab_cgroup_sweep(lua_toboolean(L, 1)));
    return 1;
}

void abl_sandbox_probe_functions(lua_State *L)
{
    static const luaL_Reg functions[] = {{"probe", l_probe}, {"sweep", l_sweep}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
