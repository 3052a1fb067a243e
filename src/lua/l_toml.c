/* l_toml.c - agentbox.sys.toml */
#include <stdlib.h>

#include "base/toml.h"
#include "lua/buffer.h"
#include "lua/conv.h"

int luaopen_agentbox_sys_toml(lua_State *L);

static int push_failure(lua_State *L, const struct ab_toml_problem *problem)
{
    struct ab_err err;
    ab_err_set(&err, AB_EPARSE, "line %zu, column %zu: %s", problem->line,
               problem->column, problem->why);
    abl_push_err(L, &err, "toml.decode");
    lua_pushinteger(L, (lua_Integer)problem->line);
    lua_setfield(L, -2, "line");
    lua_pushinteger(L, (lua_Integer)problem->column);
    lua_setfield(L, -2, "column");
    return 2;
}

/* to_json(text) -> JSON text | nil, err with line and column */
static int l_to_json(lua_State *L)
{
    size_t len, out_len = 0;
    struct ab_toml_problem problem;
    const char *text = luaL_checklstring(L, 1, &len);
    if (len > AB_TOML_MAX_BYTES) {
        struct ab_err err;
        ab_err_set(&err, AB_ETOOBIG, "longer than %u bytes", AB_TOML_MAX_BYTES);
        return abl_push_err(L, &err, "toml.decode");
    }
    struct ab_buf *buf = abl_push_buf(L);
    char *json = ab_toml_to_json(text, len, &out_len, &problem);
    if (!json)
        return push_failure(L, &problem);
    ab_buf_put(buf, json, out_len);
    free(json);
    lua_pushlstring(L, buf->data, buf->len);
    ab_buf_fini(buf);
    return 1;
}

int luaopen_agentbox_sys_toml(lua_State *L)
{
    static const luaL_Reg lib[] = {
        {"to_json", l_to_json},
        {NULL, NULL},
    };
    luaL_newlib(L, lib);
    return 1;
}
