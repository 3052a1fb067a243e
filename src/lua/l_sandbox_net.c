/* l_sandbox_net.c - what a sandbox with a list may reach, and what it was refused. */
#include <stdlib.h>
#include <string.h>

#include "lua/l_sandbox.h"

#define CONNECTIONS 64
#define BYTES       (UINT64_C(16) << 30)
#define IDLE_S      300

/* The texts at field `key` of the table on top; -1 at the first one that is wrong. */
static int take_rules(lua_State *L, struct ab_allow *a, struct ab_err *err)
{
    int rc = 0;
    lua_getfield(L, -1, "rules");
    luaL_checktype(L, -1, LUA_TTABLE);
    for (lua_Integer i = 1; rc == 0 && lua_rawgeti(L, -1, i) == LUA_TSTRING; i++) {
        size_t len;
        const char *rule = lua_tolstring(L, -1, &len);
        rc = strlen(rule) == len
                 ? ab_allow_add(a, rule, err)
                 : ab_err_set(err, AB_EBADARG, "'%.100s': has a zero byte", rule);
        lua_pop(L, 1);
    }
    lua_settop(L, lua_gettop(L) - (rc == 0 ? 2 : 1));
    return rc;
}

static int take_hosts(lua_State *L, struct ab_allow *a, struct ab_err *err)
{
    int rc = 0;
    if (lua_getfield(L, -1, "hosts") == LUA_TTABLE) {
        lua_pushnil(L);
        while (rc == 0 && lua_next(L, -2)) {
            if (lua_type(L, -2) == LUA_TSTRING && lua_type(L, -1) == LUA_TSTRING)
                rc = ab_allow_host(a, lua_tostring(L, -2), lua_tostring(L, -1), err);
            else
                rc = ab_err_set(err, AB_EBADARG, "hosts: names and addresses expected");
            lua_pop(L, 1);
        }
        if (rc < 0)
            lua_pop(L, 1); /* the key */
    }
    lua_pop(L, 1);
    return rc;
}

int abl_take_allow(lua_State *L, struct abl_sandbox *s, struct ab_sandbox_spec *spec,
                   struct ab_err *err)
{
    static const char *const keys[] = {"rules",          "hosts",  "max_connections",
                                       "idle_timeout_s", "max_mb", NULL};
    if (lua_getfield(L, 1, "allow") == LUA_TNIL) {
        lua_pop(L, 1);
        return 0;
    }
    int at = lua_gettop(L);
    luaL_checktype(L, at, LUA_TTABLE);
    abl_check_keys(L, at, keys);
    s->door_limits = (struct ab_door_limits){
        .connections = (unsigned)abl_opt_integer(L, at, "max_connections", CONNECTIONS),
        .bytes =
            (uint64_t)(abl_opt_number(L, at, "max_mb", (double)(BYTES >> 20)) * 1048576),
        .idle_ms = (uint64_t)(abl_opt_number(L, at, "idle_timeout_s", IDLE_S) * 1000),
    };
    s->allow = ab_allow_new();
    int rc = take_rules(L, s->allow, err);
    if (rc == 0)
        rc = take_hosts(L, s->allow, err);
    lua_settop(L, at - 1);
    spec->net_gate = true;
    spec->nports = (uint16_t)ab_allow_ports(s->allow, spec->ports);
    return rc;
}

void abl_open_door(struct ab_loop *loop, struct abl_sandbox *s)
{
    int fds[AB_WIRE_PORTS + 2];
    if (!s->allow)
        return;
    int n = ab_sandbox_take_gate(s->sb, fds);
    s->door = ab_door_open(loop, fds, n, s->allow, &s->door_limits);
    s->allow = NULL;
    s->listed = true;
}

void abl_close_door(struct abl_sandbox *s)
{
    if (s->door) {
        ab_door_stats(s->door, &s->traffic);
        s->traffic.open = 0;
        s->denials = ab_door_take_denials(s->door, &s->ndenials);
        ab_door_close(s->door);
        s->door = NULL;
    }
    ab_allow_free(s->allow);
    s->allow = NULL;
}

static void set_text(lua_State *L, const char *key, const char *text)
{
    lua_pushstring(L, text);
    lua_setfield(L, -2, key);
}

static void push_denial(lua_State *L, const struct ab_denial *d)
{
    char text[AB_ADDR_TEXT];
    lua_createtable(L, 0, 8);
    if (d->name[0])
        set_text(L, "name", d->name);
    if (d->has_addr) {
        ab_addr_text(&d->addr, text);
        set_text(L, "address", text);
    }
    if (d->port) {
        lua_pushinteger(L, d->port);
        lua_setfield(L, -2, "port");
    }
    set_text(L, "protocol", d->protocol);
    set_text(L, "why", ab_denied_name(d->why));
    lua_pushinteger(L, (lua_Integer)d->count);
    lua_setfield(L, -2, "count");
    lua_pushnumber(L, d->first);
    lua_setfield(L, -2, "at");
    lua_pushnumber(L, d->last);
    lua_setfield(L, -2, "last");
}

/* Sandbox:denied([from]): what it was refused, from number `from` on. */
static int l_denied(lua_State *L)
{
    const struct abl_sandbox *s = abl_check_sandbox(L, 1);
    lua_Integer from = luaL_optinteger(L, 2, 1);
    size_t count = s->ndenials;
    const struct ab_denial *list =
        s->door ? ab_door_denials(s->door, &count) : s->denials;
    lua_newtable(L);
    for (size_t i = from > 0 ? (size_t)from - 1 : 0; i < count; i++) {
        push_denial(L, &list[i]);
        lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    }
    return 1;
}

static void set_count(lua_State *L, const char *key, uint64_t n)
{
    lua_pushinteger(L, (lua_Integer)n);
    lua_setfield(L, -2, key);
}

/* Sandbox:traffic(): counters, or nil without a list. */
static int l_traffic(lua_State *L)
{
    const struct abl_sandbox *s = abl_check_sandbox(L, 1);
    struct ab_door_stats stats = s->traffic;
    if (!s->listed)
        return 0;
    if (s->door)
        ab_door_stats(s->door, &stats);
    lua_createtable(L, 0, 6);
    set_count(L, "connections", stats.connections);
    set_count(L, "failed", stats.failed);
    set_count(L, "open", stats.open);
    set_count(L, "denied", stats.denied);
    set_count(L, "bytes", stats.bytes);
    set_count(L, "questions", stats.questions);
    return 1;
}

/* check_allow{rules=, hosts=}: true, or nil, err. */
static int l_check_allow(lua_State *L)
{
    struct ab_err err;
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    struct ab_allow *a = ab_allow_new();
    int rc = take_rules(L, a, &err);
    if (rc == 0)
        rc = take_hosts(L, a, &err);
    ab_allow_free(a);
    if (rc < 0)
        return abl_push_err(L, &err, NULL);
    lua_pushboolean(L, 1);
    return 1;
}

void abl_sandbox_net_methods(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"denied", l_denied}, {"traffic", l_traffic}, {NULL, NULL}};
    luaL_setfuncs(L, methods, 0);
}

void abl_sandbox_net_functions(lua_State *L)
{
    lua_pushcfunction(L, l_check_allow);
    lua_setfield(L, -2, "check_allow");
}
