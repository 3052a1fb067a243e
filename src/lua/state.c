#include "lua/state.h"

#include <lualib.h>
#include <stdio.h>

#include "lua/conv.h"
#include "lua/core.h"
#include "lua/loader.h"

static int open_all(lua_State *L)
{
    luaL_openlibs(L);
    abl_register(L);
    abl_conv_register(L);
    abl_loader_install(L);
    abl_core_preload(L);
    return 0;
}

int ab_state_init(struct ab_state *s, struct ab_err *err)
{
    *s = (struct ab_state){0};
    if (ab_loop_init(&s->loop, err) < 0)
        return -1;
    s->L = luaL_newstate();
    ab_sched_init(&s->sched, s->L, &s->loop);
    lua_pushcfunction(s->L, open_all);
    if (lua_pcall(s->L, 0, 0, 0) != LUA_OK)
        return ab_err_set(err, AB_ENOMEM, "%s", lua_tostring(s->L, -1));
    return 0;
}

/* (argv table) -> exit status, kept in the registry under "agentbox.status". */
static const char boot[] = "local argv = ... return function()\n"
                           "  local status = require('agentbox.cli').main(argv)\n"
                           "  debug.getregistry()['agentbox.status'] = status\n"
                           "end\n";

static int start_main(lua_State *L)
{
    int argc = (int)lua_tointeger(L, 1);
    char **argv = lua_touserdata(L, 2);
    if (luaL_loadstring(L, boot) != LUA_OK)
        return lua_error(L);
    lua_createtable(L, argc, 1);
    for (int i = 0; i < argc; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i);
    }
    lua_call(L, 1, 1);
    lua_pushlightuserdata(L, abl_fiber_new(L, -1));
    return 1;
}

int ab_state_main(struct ab_state *s, int argc, char **argv)
{
    lua_pushcfunction(s->L, start_main);
    lua_pushinteger(s->L, argc);
    lua_pushlightuserdata(s->L, argv);
    if (lua_pcall(s->L, 2, 1, 0) != LUA_OK) {
        fprintf(stderr, "agentbox: %s\n", lua_tostring(s->L, -1));
        return 70;
    }
    struct ab_fiber *main = lua_touserdata(s->L, -1);
    ab_sched_run(&s->sched);
    ab_fiber_free(main);
    lua_getfield(s->L, LUA_REGISTRYINDEX, "agentbox.status");
    return lua_isinteger(s->L, -1) ? (int)lua_tointeger(s->L, -1) : 70;
}

void ab_state_fini(struct ab_state *s)
{
    lua_close(s->L);
    ab_loop_fini(&s->loop);
}
