/* l_yaml.c - agentbox.sys.yaml */
#include "base/yaml.h"
#include "lua/conv.h"
#include "lua/json_value.h"

int luaopen_agentbox_sys_yaml(lua_State *L);

static int push_failure(lua_State *L, const struct ab_err *err,
                        const struct ab_yaml_mark *mark)
{
    abl_push_err(L, err, "yaml.decode");
    if (mark->line > 0) {
        lua_pushinteger(L, (lua_Integer)mark->line);
        lua_setfield(L, -2, "line");
        lua_pushinteger(L, (lua_Integer)mark->column);
        lua_setfield(L, -2, "column");
    }
    return 2;
}

/* decode(text) -> value | nil, err with line and column */
static int l_decode(lua_State *L)
{
    size_t len;
    struct ab_err err;
    struct ab_yaml_mark mark;
    const char *text = luaL_checklstring(L, 1, &len);
    lua_settop(L, 1);
    struct ab_json *doc = abl_json_take(L);
    int rc = ab_yaml_parse(doc, text, len, &mark, &err);
    if (rc == 0)
        abl_json_push(L, 2, 1);
    abl_json_return(L, 2);
    return rc == 0 ? 1 : push_failure(L, &err, &mark);
}

/* is_plain(text) -> whether it reads back as this string without quotes */
static int l_is_plain(lua_State *L)
{
    size_t len;
    const char *s = luaL_checklstring(L, 1, &len);
    lua_pushboolean(L, ab_yaml_is_plain(s, len));
    return 1;
}

int luaopen_agentbox_sys_yaml(lua_State *L)
{
    static const luaL_Reg lib[] = {
        {"decode", l_decode},
        {"is_plain", l_is_plain},
        {NULL, NULL},
    };
    abl_json_register(L);
    luaL_newlib(L, lib);
    return 1;
}
