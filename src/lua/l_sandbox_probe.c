/* l_sandbox_probe.c - what this machine can do, and what dead engines left behind. */
#include <sys/utsname.h>
#include <unistd.h>

#include "lua/l_sandbox.h"
#include "sandbox/guest.h"
#include "sandbox/zygote.h"

static void set_flag(lua_State *L, const char *key, bool value)
{
    lua_pushboolean(L, value);
    lua_setfield(L, -2, key);
}

static void set_text(lua_State *L, const char *key, const char *value)
{
    lua_pushstring(L, value);
    lua_setfield(L, -2, key);
}

/* Which fallbacks the zygote took; all false before the first sandbox. */
static void push_ways(lua_State *L)
{
    uint32_t facts = ab_zygote_facts();
    lua_createtable(L, 0, 5);
    set_flag(L, "attached_trees", facts & AB_WIRE_OLD_MOUNTS);
    set_flag(L, "usr_unmapped", facts & AB_WIRE_USR_UNMAPPED);
    set_flag(L, "image_unmapped", facts & AB_WIRE_IMAGE_UNMAPPED);
    set_flag(L, "skeleton_per_range", facts & AB_WIRE_SKEL_COPIED);
    set_flag(L, "copied_root", facts & AB_WIRE_NO_XATTR);
    lua_setfield(L, -2, "ways");
}

/* probe(): { kernel, root, cgroup = { level, memory, pids, cpu, kill, why },
 * ways = { attached_trees, usr_unmapped, image_unmapped, skeleton_per_range,
 * copied_root } }. Costs nothing to find; whether a sandbox works is told by making
 * one. */
static int l_probe(lua_State *L)
{
    struct utsname u;
    const struct ab_cgroup_info *info = ab_cgroup_probe();
    uname(&u);
    lua_createtable(L, 0, 3);
    set_text(L, "kernel", u.release);
    set_flag(L, "root", geteuid() == 0);
    lua_createtable(L, 0, 6);
    set_text(L, "level", ab_cgroup_level_name(info->level));
    set_flag(L, "memory", info->memory);
    set_flag(L, "pids", info->pids);
    set_flag(L, "cpu", info->cpu);
    set_flag(L, "kill", info->kill);
    if (info->why[0])
        set_text(L, "why", info->why);
    lua_setfield(L, -2, "cgroup");
    push_ways(L);
    return 1;
}

/* sweep([dry]): how many sandboxes of dead engines were removed, or would be. */
static int l_sweep(lua_State *L)
{
    lua_pushinteger(L, ab_cgroup_sweep(lua_toboolean(L, 1)));
    return 1;
}

/* forget(): removes what is kept of sandboxes that are gone, for those to come. */
static int l_forget(lua_State *L)
{
    (void)L;
    ab_cgroup_empty_stock();
    return 0;
}

/* guest(): the program that containers of other engines start. */
static int l_guest(lua_State *L)
{
    lua_pushlstring(L, (const char *)ab_guest_program,
                    (size_t)(ab_guest_program_end - ab_guest_program));
    return 1;
}

void abl_sandbox_probe_functions(lua_State *L)
{
    static const luaL_Reg functions[] = {{"probe", l_probe},
                                         {"sweep", l_sweep},
                                         {"forget", l_forget},
                                         {"guest", l_guest},
                                         {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
