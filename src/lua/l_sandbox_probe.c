/* l_sandbox_probe.c - what this machine can do, and what dead engines left behind. */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lua/l_sandbox.h"

static long read_number(const char *path, long missing)
{
    FILE *f = fopen(path, "re");
    long value = missing;
    if (f && fscanf(f, "%ld", &value) != 1)
        value = missing;
    if (f)
        fclose(f);
    return value;
}

struct check {
    const char *name;
    bool ok, optional;
    char detail[200];
    const char *hint; /* or NULL */
};

static void push_check(lua_State *L, const struct check *c)
{
    lua_createtable(L, 0, 5);
    lua_pushstring(L, c->name);
    lua_setfield(L, -2, "name");
    lua_pushboolean(L, c->ok);
    lua_setfield(L, -2, "ok");
    lua_pushboolean(L, c->optional);
    lua_setfield(L, -2, "optional");
    lua_pushstring(L, c->detail);
    lua_setfield(L, -2, "detail");
    lua_pushstring(L, c->hint);
    lua_setfield(L, -2, "hint");
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

static void check_kernel(lua_State *L)
{
    struct utsname u;
    unsigned major = 0, minor = 0;
    uname(&u);
    sscanf(u.release, "%u.%u", &major, &minor);
    struct check c = {.name = "kernel", .ok = major > 5 || (major == 5 && minor >= 19),
                      .hint = "the native sandbox needs Linux 5.19 or later"};
    snprintf(c.detail, sizeof c.detail, "%s", u.release);
    push_check(L, &c);
}

static void check_userns(lua_State *L)
{
    long max = read_number("/proc/sys/user/max_user_namespaces", 0);
    bool debian = read_number("/proc/sys/kernel/unprivileged_userns_clone", 1) == 0;
    bool ubuntu = read_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0) == 1;
    bool root = geteuid() == 0;
    struct check c = {.name = "namespaces", .ok = max > 0 && (root || (!debian && !ubuntu))};
    snprintf(c.detail, sizeof c.detail, "%s, up to %ld user namespaces", root ? "root" : "ordinary user", max);
    c.hint = max <= 0 ? "sysctl user.max_user_namespaces=65536"
             : debian ? "sysctl kernel.unprivileged_userns_clone=1"
                      : "install the AppArmor profile of the agentbox package, or "
                        "sysctl kernel.apparmor_restrict_unprivileged_userns=0";
    push_check(L, &c);
}

static void check_limits(lua_State *L)
{
    const struct ab_cgroup_info *info = ab_cgroup_probe();
    struct check c = {.name = "limits", .ok = info->memory && info->pids && info->cpu, .optional = true,
                      .hint = info->why};
    snprintf(c.detail, sizeof c.detail, "cgroups: %s; memory by %s, processes by %s, CPU %s",
             ab_cgroup_level_name(info->level), info->memory ? "cgroup" : "RLIMIT_DATA of each process",
             info->pids ? "cgroup" : "RLIMIT_NPROC", info->cpu ? "by cgroup" : "not limited");
    push_check(L, &c);
}

static void check_network(lua_State *L)
{
    bool there = access("/usr/bin/pasta", X_OK) == 0 || access("/usr/local/bin/pasta", X_OK) == 0;
    struct check c = {.name = "network", .ok = there, .optional = true,
                      .hint = "network = \"full\" needs pasta: apt-get install passt"};
    snprintf(c.detail, sizeof c.detail, "%s", there ? "pasta" : "no pasta: sandboxes have no network");
    push_check(L, &c);
}

/* probe(): a list of { name, ok, optional, detail, hint }. Costs nothing; whether a sandbox works is
 * told by making one. */
static int l_probe(lua_State *L)
{
    lua_newtable(L);
    check_kernel(L);
    check_userns(L);
    check_limits(L);
    check_network(L);
    return 1;
}

/* sweep{dry=}: { removed = N }, the sandboxes of dead engines. */
static int l_sweep(lua_State *L)
{
    static const char *const keys[] = {"dry", NULL};
    abl_check_keys(L, 1, keys);
    int n = ab_cgroup_sweep(abl_opt_boolean(L, 1, "dry", false));
    lua_createtable(L, 0, 1);
    lua_pushinteger(L, n);
    lua_setfield(L, -2, "removed");
    return 1;
}

void abl_sandbox_probe_functions(lua_State *L)
{
    static const luaL_Reg functions[] = {{"probe", l_probe}, {"sweep", l_sweep}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
