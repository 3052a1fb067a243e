#include "lua/loader.h"

#include <lauxlib.h>
#include <string.h>
#include <unistd.h>

#include "lua/buffer.h"
#include "lua/embed.h"
#include "lua/fiber.h"
#include "rt/digest.h"
#include "rt/fs.h"

/* Its address is the registry key of { script =, overlays =, records =, foreign =, own =
 * }; foreign has the records of modules that did not come with the engine. */
static const char state_key = 0;

static void push_state(lua_State *L, const char *field)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &state_key);
    if (field) {
        lua_getfield(L, -1, field);
        lua_remove(L, -2);
    }
}

static bool is_sealed(const char *name)
{
    return strncmp(name, "agentbox.sys.", 13) == 0 ||
           strcmp(name, "agentbox.loader") == 0 || strcmp(name, "agentbox.strict") == 0;
}

/* What is embedded besides modules (the pages' style and script) has a '/' in its name.
 */
static bool is_asset(const char *name)
{
    return strchr(name, '/') != NULL;
}

static const struct ab_embed *find_any(const char *name)
{
    for (const struct ab_embed *e = ab_embedded; e->module; e++)
        if (strcmp(e->module, name) == 0)
            return e;
    return NULL;
}

static const struct ab_embed *find_embedded(const char *name)
{
    return is_asset(name) ? NULL : find_any(name);
}

/* ---- built-in ---- */

/* "agentbox.tools.bash" is shown as agentbox/tools/bash.lua, "agentbox" as
 * agentbox/init.lua. */
static void push_chunk_name(lua_State *L, const char *module)
{
    if (strcmp(module, "agentbox") == 0) {
        lua_pushliteral(L, "@agentbox/init.lua");
        return;
    }
    luaL_gsub(L, module, ".", "/");
    lua_pushfstring(L, "@%s.lua", lua_tostring(L, -1));
    lua_remove(L, -2);
}

static void load_embedded(lua_State *L, const struct ab_embed *e)
{
    if (!e)
        AB_BUG("a module of the library is missing");
    push_chunk_name(L, e->module);
    if (luaL_loadbufferx(L, e->text, e->size, lua_tostring(L, -1), "t") != LUA_OK)
        lua_error(L);
    lua_remove(L, -2);
}

/* Built-in chunks see the globals through a table that refuses undefined names. */
static void set_strict_env(lua_State *L)
{
    push_state(L, "strict");
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        load_embedded(L, find_embedded("agentbox.strict"));
        lua_call(L, 0, 1);
        push_state(L, NULL);
        lua_pushvalue(L, -2);
        lua_setfield(L, -2, "strict");
        lua_pop(L, 1);
    }
    lua_setupvalue(L, -2, 1);
}

static void record(lua_State *L, const char *name, const char *from, const char *hash)
{
    push_state(L, "records");
    lua_createtable(L, 0, 2);
    lua_pushstring(L, from);
    lua_setfield(L, -2, "from");
    lua_pushstring(L, hash);
    lua_setfield(L, -2, "sha256");
    push_state(L, "foreign");
    if (strcmp(from, "builtin") == 0)
        lua_pushnil(L);
    else
        lua_pushvalue(L, -2);
    lua_setfield(L, -2, name);
    lua_pop(L, 1);
    lua_setfield(L, -2, name);
    lua_pop(L, 1);
}

static int l_search_embedded(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    const struct ab_embed *e = find_embedded(name);
    if (!e) {
        lua_pushfstring(L, "no built-in module '%s'", name);
        return 1;
    }
    load_embedded(L, e);
    set_strict_env(L);
    record(L, name, "builtin", NULL);
    lua_pushliteral(L, "builtin");
    return 2;
}

/* ---- files ---- */

/* A directory of that name is none, and a FIFO would be waited for. */
static bool is_readable(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, R_OK) == 0;
}

/* Pushes DIR/a/b.lua or DIR/a/b/init.lua, whichever is there; or nothing. */
static bool find_in(lua_State *L, const char *dir, const char *name)
{
    static const char *const forms[] = {"%s/%s.lua", "%s/%s/init.lua"};
    const char *rel = luaL_gsub(L, name, ".", "/");
    for (int i = 0; i < 2; i++) {
        const char *path = lua_pushfstring(L, forms[i], dir, rel);
        if (is_readable(path)) {
            lua_remove(L, -2);
            return true;
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return false;
}

/* Searches the script's folder, then the overlays. */
static bool find_file(lua_State *L, const char *name)
{
    push_state(L, "script");
    bool found = lua_isstring(L, -1) && find_in(L, lua_tostring(L, -1), name);
    if (found) {
        lua_remove(L, -2);
        return true;
    }
    lua_pop(L, 1);
    push_state(L, "overlays");
    lua_Integer n = (lua_Integer)lua_rawlen(L, -1);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, -1, i);
        if (find_in(L, lua_tostring(L, -1), name)) {
            lua_replace(L, -3);
            lua_pop(L, 1);
            return true;
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return false;
}

/* Pushes the file's bytes. */
static void read_text(lua_State *L, const char *path)
{
    struct ab_buf *buf = abl_push_buf(L);
    struct ab_err err;
    if (ab_fs_read(path, buf, &err) < 0)
        luaL_error(L, "%s", err.msg);
    lua_pushlstring(L, buf->data ? buf->data : "", buf->len);
    lua_replace(L, -2);
}

static int l_search_files(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    if (!find_file(L, name)) {
        lua_pushfstring(L, "no file for '%s' beside the script or in an overlay", name);
        return 1;
    }
    const char *path = lua_tostring(L, -1);
    read_text(L, path);
    size_t len;
    const char *text = lua_tolstring(L, -1, &len);
    char hash[AB_SHA256_HEX];
    struct ab_err err;
    if (ab_sha256(text, len, hash, &err) < 0)
        luaL_error(L, "%s", err.msg);
    lua_pushfstring(L, "@%s", path);
    if (luaL_loadbufferx(L, text, len, lua_tostring(L, -1), "t") != LUA_OK)
        luaL_error(L, "error loading module '%s' from file '%s':\n\t%s", name, path,
                   lua_tostring(L, -1));
    record(L, name, path, hash);
    lua_pushstring(L, path);
    return 2;
}

/* ---- sealed ---- */

static int l_search_sealed(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    if (!is_sealed(name)) {
        lua_pushfstring(L, "'%s' is not a primitive", name);
        return 1;
    }
    if (find_file(L, name))
        luaL_error(L, "'%s' is in the way of the sealed module '%s'; rename the file",
                   lua_tostring(L, -1), name);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    if (lua_getfield(L, -1, name) == LUA_TNIL)
        return l_search_embedded(L);
    lua_pushliteral(L, "sealed");
    return 2;
}

/* ---- agentbox.loader ---- */

/* builtins(): the names of the library's modules, sorted. */
static int l_builtins(lua_State *L)
{
    lua_newtable(L);
    lua_Integer n = 0;
    for (const struct ab_embed *e = ab_embedded; e->module; e++) {
        if (is_asset(e->module))
            continue;
        lua_pushstring(L, e->module);
        lua_rawseti(L, -2, ++n);
    }
    lua_getglobal(L, "table");
    lua_getfield(L, -1, "sort");
    lua_pushvalue(L, -3);
    lua_call(L, 1, 0);
    lua_pop(L, 1);
    return 1;
}

static int l_builtin_source(lua_State *L)
{
    const struct ab_embed *e = find_embedded(luaL_checkstring(L, 1));
    if (!e)
        return 0;
    lua_pushlstring(L, e->text, e->size);
    return 1;
}

/* asset("pages/page.css"): a file of the library that is no module, or nothing. */
static int l_asset(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    const struct ab_embed *e = is_asset(name) ? find_any(name) : NULL;
    if (!e)
        return 0;
    lua_pushlstring(L, e->text, e->size);
    return 1;
}

/* builtin(name): the shipped module, never an overlay's; has its own cache, so that an
 * override may call what it overrides. */
static int l_builtin(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    push_state(L, "own");
    if (lua_getfield(L, -1, name) != LUA_TNIL)
        return 1;
    lua_pop(L, 1);
    const struct ab_embed *e = find_embedded(name);
    if (!e)
        luaL_error(L, "no built-in module '%s'", name);
    load_embedded(L, e);
    set_strict_env(L);
    lua_pushvalue(L, 1);
    lua_pushliteral(L, "builtin");
    lua_call(L, 2, 1);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, name);
    return 1;
}

static int l_overlays(lua_State *L)
{
    push_state(L, "overlays");
    lua_Integer n = (lua_Integer)lua_rawlen(L, -1);
    lua_createtable(L, (int)n, 0);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, -2, i);
        lua_rawseti(L, -2, i);
    }
    return 1;
}

/* set_overlays(dirs): leftmost wins. */
static int l_set_overlays(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_Integer n = (lua_Integer)lua_rawlen(L, 1);
    lua_createtable(L, (int)n, 0);
    for (lua_Integer i = 1; i <= n; i++) {
        if (lua_rawgeti(L, 1, i) != LUA_TSTRING)
            luaL_argerror(L, 1, "a list of folders expected");
        lua_rawseti(L, -2, i);
    }
    push_state(L, NULL);
    lua_insert(L, -2);
    lua_setfield(L, -2, "overlays");
    return 0;
}

/* set_script_dir(dir | nil): the folder of the script that runs. */
static int l_set_script_dir(lua_State *L)
{
    if (!lua_isnoneornil(L, 1))
        luaL_checkstring(L, 1);
    lua_settop(L, 1);
    push_state(L, NULL);
    lua_insert(L, 1);
    lua_setfield(L, 1, "script");
    return 0;
}

/* Completes the copy on top of the stack of a record: hash and contract version. */
static void complete_record(lua_State *L, const char *name)
{
    lua_pushstring(L, name);
    lua_setfield(L, -2, "name");
    if (lua_getfield(L, -1, "sha256") == LUA_TNIL) {
        const struct ab_embed *e = find_embedded(name);
        if (!e)
            AB_BUG("no hash for %s", name);
        char hash[AB_SHA256_HEX];
        struct ab_err err;
        if (ab_sha256(e->text, e->size, hash, &err) < 0)
            luaL_error(L, "%s", err.msg);
        lua_pushstring(L, hash);
        lua_setfield(L, -3, "sha256");
    }
    lua_pop(L, 1);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    if (lua_getfield(L, -1, name) == LUA_TTABLE) {
        lua_pushliteral(L, "api");
        if (lua_rawget(L, -2) == LUA_TNUMBER) {
            lua_setfield(L, -4, "api");
            lua_pushnil(L);
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
}

/* modules([foreign]): { name, from, sha256, api } of every module loaded so far, sorted
 * by name; foreign leaves out what came with the engine. */
static int l_modules(lua_State *L)
{
    push_state(L, lua_toboolean(L, 1) ? "foreign" : "records");
    lua_newtable(L);
    int records = lua_gettop(L) - 1, names = records + 1;
    lua_Integer n = 0;
    for (lua_pushnil(L); lua_next(L, records); lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        lua_rawseti(L, names, ++n);
    }
    lua_getglobal(L, "table");
    lua_getfield(L, -1, "sort");
    lua_pushvalue(L, names);
    lua_call(L, 1, 0);
    lua_createtable(L, (int)n, 0);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, names, i);
        const char *name = lua_tostring(L, -1);
        lua_getfield(L, records, name);
        complete_record(L, name); /* the record itself: the hash is worth keeping */
        lua_rawseti(L, -3, i);
        lua_pop(L, 1);
    }
    return 1;
}

int luaopen_agentbox_loader(lua_State *L)
{
    static const luaL_Reg lib[] = {
        {"builtins", l_builtins},
        {"builtin_source", l_builtin_source},
        {"asset", l_asset},
        {"builtin", l_builtin},
        {"overlays", l_overlays},
        {"set_overlays", l_set_overlays},
        {"set_script_dir", l_set_script_dir},
        {"modules", l_modules},
        {NULL, NULL},
    };
    luaL_newlib(L, lib);
    return 1;
}

/* ---- install ---- */

static void drop_current_folder(lua_State *L, const char *field,
                                const char *const forms[])
{
    lua_getfield(L, -1, field);
    for (; *forms; forms++) {
        luaL_gsub(L, lua_tostring(L, -1), *forms, "");
        lua_remove(L, -2);
    }
    lua_setfield(L, -2, field);
}

void abl_loader_install(lua_State *L)
{
    static const lua_CFunction searchers[] = {l_search_sealed, NULL, l_search_files,
                                              l_search_embedded};
    static const char *const here[] = {";./?.lua", ";./?/init.lua", NULL};
    static const char *const here_c[] = {";./?.so", NULL};
    lua_newtable(L);
    static const char *const tables[] = {"overlays", "records", "foreign", "own"};
    for (int i = 0; i < 4; i++) {
        lua_newtable(L);
        lua_setfield(L, -2, tables[i]);
    }
    lua_rawsetp(L, LUA_REGISTRYINDEX, &state_key);

    lua_getglobal(L, "package");
    drop_current_folder(L, "path", here);
    drop_current_folder(L, "cpath", here_c);
    lua_getfield(L, -1, "searchers"); /* preload, Lua, C, all-in-one C */
    lua_createtable(L, 7, 0);
    for (int i = 0; i < 4; i++) {
        if (searchers[i])
            lua_pushcfunction(L, searchers[i]);
        else
            lua_rawgeti(L, -2, 1);
        lua_rawseti(L, -2, i + 1);
    }
    for (int i = 2; i <= 4; i++) {
        lua_rawgeti(L, -2, i);
        lua_rawseti(L, -2, i + 3);
    }
    /* `require` reads the field at each call and the stock searchers keep their upvalue.
     */
    lua_setfield(L, -3, "searchers");
    lua_pop(L, 2);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_pushcfunction(L, luaopen_agentbox_loader);
    lua_setfield(L, -2, "agentbox.loader");
    lua_pop(L, 1);
}
