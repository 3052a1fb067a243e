/* json_object.c - tables that remember the order of their keys.
 *
 * The order is the array part of the metatable. A new key fires __newindex, because the
 * table has no value for it; a deleted key stays in the list and is passed over, until
 * the list has grown to its limit and is swept.
 *
 * Most objects have a few keys that many others have too, in the same order. Those share
 * a metatable, their shape; a new key moves an object on to the next shape. Shapes are a
 * tree whose root has no keys. An object that is not of that kind has a list of its own.
 */
#include "lua/json_value.h"

/* Integer keys of an object's metatable, beside the list of keys in 1..n. */
#define MT_TAG   0    /* a light userdata that nobody else has */
#define MT_PLACE (-1) /* key -> its place in the list; only once that is not shared */
#define MT_LIMIT (-2) /* the length of the list at which deleted keys are swept */
#define MT_NEXT  (-3) /* of a shape: key -> the shape with that key behind the others */

enum { SHAPE_KEY_BYTES = 64, SHAPE_COUNT = 1000 };

/* Their addresses are unique. */
static const char next_key, tag, root_key, count_key;

bool abl_json_is_object_mt(lua_State *L, int idx)
{
    lua_rawgeti(L, idx, MT_TAG);
    bool yes = lua_touserdata(L, -1) == (const void *)&tag;
    lua_pop(L, 1);
    return yes;
}

void abl_json_push_object_mt(lua_State *L, int keys)
{
    lua_createtable(L, keys, 4);
    lua_pushlightuserdata(L, (void *)(uintptr_t)&tag);
    lua_rawseti(L, -2, MT_TAG);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &next_key);
    lua_rawgeti(L, -1, 1);
    lua_setfield(L, -3, "__pairs");
    lua_rawgeti(L, -1, 2);
    lua_setfield(L, -3, "__newindex");
    lua_pop(L, 1);
    lua_pushliteral(L, "agentbox.json.object");
    lua_setfield(L, -2, "__name");
}

static int l_next(lua_State *L)
{
    /* upvalues: the object, its list of keys, the place reached */
    lua_Integer i = lua_tointeger(L, lua_upvalueindex(3));
    for (;;) {
        i++;
        if (lua_rawgeti(L, lua_upvalueindex(2), i) == LUA_TNIL)
            return 1;
        if (lua_toboolean(L, -1)) {
            lua_pushvalue(L, -1);
            if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
                break;
            lua_pop(L, 1);
        }
        lua_pop(L, 1);
    }
    lua_pushinteger(L, i);
    lua_replace(L, lua_upvalueindex(3));
    return 2;
}

static int l_pairs(lua_State *L)
{
    lua_settop(L, 1);
    if (abl_json_type(L, 1) != ABL_JSON_OBJECT)
        return luaL_argerror(L, 1, "not an object");
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, l_next, 3);
    return 1;
}

/* ---- shapes ---- */

static void new_shape(lua_State *L, int keys)
{
    abl_json_push_object_mt(L, keys);
    lua_newtable(L);
    lua_rawseti(L, -2, MT_NEXT);
}

void abl_json_push_shape(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &root_key) != LUA_TNIL)
        return;
    lua_pop(L, 1);
    new_shape(L, 0);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &root_key);
}

/* Counts one more shape. Whoever makes objects with ever new keys must not fill the
 * memory: the tree is then planted anew, and the old shapes live as long as their
 * objects. */
static void count_shape(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &count_key);
    lua_Integer count = lua_tointeger(L, -1) + 1;
    lua_pop(L, 1);
    if (count > SHAPE_COUNT) {
        count = 0;
        lua_pushnil(L);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &root_key);
    }
    lua_pushinteger(L, count);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &count_key);
}

static bool may_follow(lua_State *L, int shape, int key, lua_Integer n)
{
    if (n >= ABL_JSON_SHAPE_KEYS || lua_type(L, key) != LUA_TSTRING ||
        lua_rawlen(L, key) > SHAPE_KEY_BYTES)
        return false;
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, shape, i);
        bool same = lua_rawequal(L, -1, key);
        lua_pop(L, 1);
        if (same)
            return false;
    }
    return true;
}

bool abl_json_next_shape(lua_State *L, int key)
{
    int shape = lua_gettop(L);
    key = lua_absindex(L, key);
    if (lua_rawgeti(L, shape, MT_NEXT) == LUA_TNIL) {
        lua_settop(L, shape);
        return false;
    }
    lua_pushvalue(L, key);
    if (lua_rawget(L, shape + 1) == LUA_TNIL) {
        lua_Integer n = (lua_Integer)lua_rawlen(L, shape);
        lua_settop(L, shape + 1);
        if (!may_follow(L, shape, key, n)) {
            lua_settop(L, shape);
            return false;
        }
        new_shape(L, (int)n + 1);
        for (lua_Integer i = 1; i <= n; i++) {
            lua_rawgeti(L, shape, i);
            lua_rawseti(L, shape + 2, i);
        }
        lua_pushvalue(L, key);
        lua_rawseti(L, shape + 2, n + 1);
        lua_pushvalue(L, key);
        lua_pushvalue(L, shape + 2);
        lua_rawset(L, shape + 1);
        count_shape(L);
    }
    lua_replace(L, shape);
    lua_settop(L, shape);
    return true;
}

/* ---- lists of one's own ---- */

/* Gives the object a list of its own, without deleted keys. Stack: object at 1, list on
 * top; replaces the list on top. */
static void own_list(lua_State *L)
{
    lua_Integer n = (lua_Integer)lua_rawlen(L, -1), live = 0;
    int old = lua_gettop(L);
    abl_json_push_object_mt(L, (int)n + 1);
    lua_createtable(L, 0, (int)n + 1);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, old, i);
        lua_pushvalue(L, -1);
        if (lua_toboolean(L, -1) && lua_rawget(L, 1) != LUA_TNIL) {
            lua_pushvalue(L, -2);
            lua_rawseti(L, old + 1, ++live);
            lua_pushvalue(L, -2);
            lua_pushinteger(L, live);
            lua_rawset(L, old + 2);
        }
        lua_settop(L, old + 2);
    }
    lua_rawseti(L, old + 1, MT_PLACE);
    lua_pushinteger(L, live * 2 + 16);
    lua_rawseti(L, old + 1, MT_LIMIT);
    lua_pushvalue(L, -1);
    lua_setmetatable(L, 1);
    lua_remove(L, old);
}

/* t[k] = v for a key that has no value now: it goes last. */
static int l_newindex(lua_State *L)
{
    lua_settop(L, 3);
    if (lua_isnil(L, 3))
        return 0;
    lua_pushvalue(L, 2);
    lua_pushvalue(L, 3);
    if (abl_json_type(L, 1) != ABL_JSON_OBJECT)
        return luaL_argerror(L, 1, "not an object");
    if (abl_json_next_shape(L, 2)) { /* object, k, v, k, v, shape */
        lua_insert(L, 4);
        lua_rawset(L, 1);
        lua_setmetatable(L, 1);
        return 0;
    }
    lua_insert(L, 4); /* object, k, v, list, k, v */
    lua_Integer n = (lua_Integer)lua_rawlen(L, 4);
    bool owned = lua_rawgeti(L, 4, MT_LIMIT) != LUA_TNIL;
    bool full = owned && n >= lua_tointeger(L, -1);
    lua_pop(L, 1);
    if (!owned || full) {
        lua_pushvalue(L, 4);
        own_list(L);
        lua_replace(L, 4);
        n = (lua_Integer)lua_rawlen(L, 4);
    }
    lua_rawset(L, 1); /* raises on a NaN key, before the list knows it */
    lua_rawgeti(L, 4, MT_PLACE);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, -2) != LUA_TNIL) {
        lua_pushboolean(L, 0);
        lua_rawseti(L, 4, lua_tointeger(L, -2)); /* it was deleted: leave a hole */
    }
    lua_pop(L, 1);
    lua_pushvalue(L, 2);
    lua_pushinteger(L, n + 1);
    lua_rawset(L, -3);
    lua_pushvalue(L, 2);
    lua_rawseti(L, 4, n + 1);
    return 0;
}

void abl_json_register_object(lua_State *L)
{
    lua_createtable(L, 2, 0);
    lua_pushcfunction(L, l_pairs);
    lua_rawseti(L, -2, 1);
    lua_pushcfunction(L, l_newindex);
    lua_rawseti(L, -2, 2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &next_key);
}
