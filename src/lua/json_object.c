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

#include <stdlib.h>
#include <string.h>

/* Integer keys of an object's metatable, beside the list of keys in 1..n. */
#define MT_TAG 0 /* a light userdata that nobody else has */
#define MT_PLACE                                                                        \
    (-1)              /* key -> its place in the list; only once the list is not shared \
                       */
#define MT_LIMIT (-2) /* the length of the list at which deleted keys are swept */
#define MT_NEXT  (-3) /* of a shape: key -> the shape with that key behind the others */

enum { SHAPE_KEYS = 64, SHAPE_KEY_BYTES = 64, SHAPE_COUNT = 1000 };

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
    if (n >= SHAPE_KEYS || lua_type(L, key) != LUA_TSTRING ||
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

struct key {
    const char *s; /* borrowed from the table's key */
    size_t len;
};

static int compare_keys(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    size_t n = x->len < y->len ? x->len : y->len;
    int c = n ? memcmp(x->s, y->s, n) : 0;
    return c ? c : (x->len > y->len) - (x->len < y->len);
}

/* Pushes a list of the string keys of the table at idx, sorted; -1 as below. */
static lua_Integer push_sorted_keys(lua_State *L, int idx)
{
    size_t n = 0, i = 0;
    for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING) {
            lua_pop(L, 2);
            return -1;
        }
        n++;
    }
    lua_createtable(L, (int)n, 0);
    struct key *keys = lua_newuserdatauv(L, (n ? n : 1) * sizeof *keys, 0);
    for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1), i++)
        keys[i].s = lua_tolstring(L, -2, &keys[i].len);
    qsort(keys, n, sizeof *keys, compare_keys);
    for (i = 0; i < n; i++) {
        lua_pushlstring(L, keys[i].s, keys[i].len);
        lua_rawseti(L, -3, (lua_Integer)i + 1);
    }
    lua_pop(L, 1);
    return (lua_Integer)n;
}

lua_Integer abl_json_push_keys(lua_State *L, int idx, bool sorted)
{
    idx = lua_absindex(L, idx);
    enum abl_json_type type = abl_json_type(L, idx);
    if (type != ABL_JSON_OBJECT || sorted) {
        if (type == ABL_JSON_OBJECT)
            lua_pop(L, 1);
        return push_sorted_keys(L, idx);
    }
    lua_Integer n = (lua_Integer)lua_rawlen(L, -1), live = 0;
    lua_createtable(L, (int)n, 0);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, -2, i);
        lua_pushvalue(L, -1);
        int has = lua_toboolean(L, -1) ? lua_rawget(L, idx) : LUA_TNIL;
        lua_pop(L, 1);
        if (has != LUA_TNIL && lua_type(L, -1) != LUA_TSTRING) {
            lua_pop(L, 3);
            return -1;
        }
        if (has != LUA_TNIL)
            lua_rawseti(L, -2, ++live);
        else
            lua_pop(L, 1);
    }
    lua_remove(L, -2);
    return live;
}

/* Appends the key on top to the list at `list` unless `seen` has it; pops it. */
static lua_Integer add_key(lua_State *L, int list, int seen, lua_Integer n)
{
    lua_pushvalue(L, -1);
    if (lua_rawget(L, seen) == LUA_TNIL) {
        lua_pushvalue(L, -2);
        lua_pushboolean(L, 1);
        lua_rawset(L, seen);
        lua_pushvalue(L, -2);
        lua_rawseti(L, list, ++n);
    }
    lua_pop(L, 2);
    return n;
}

/* Gives the table at idx the shape of its keys in sorted order; false if it cannot have
 * one. */
static bool take_shape(lua_State *L, int idx)
{
    struct key keys[SHAPE_KEYS];
    int places[SHAPE_KEYS], n = 0, top = lua_gettop(L);
    luaL_checkstack(L, SHAPE_KEYS + 8, NULL);
    for (lua_pushnil(L); lua_next(L, idx); n++) { /* the keys stay on the stack */
        lua_pop(L, 1);
        if (n == SHAPE_KEYS || lua_type(L, -1) != LUA_TSTRING) {
            lua_settop(L, top);
            return false;
        }
        struct key key;
        key.s = lua_tolstring(L, -1, &key.len);
        int i = n;
        for (; i > 0 && compare_keys(&keys[i - 1], &key) > 0; i--) {
            keys[i] = keys[i - 1];
            places[i] = places[i - 1];
        }
        keys[i] = key;
        places[i] = top + 1 + n;
        lua_pushvalue(L, -1);
    }
    abl_json_push_shape(L);
    bool ok = true;
    for (int i = 0; i < n && ok; i++)
        ok = abl_json_next_shape(L, places[i]);
    if (ok)
        lua_setmetatable(L, idx);
    lua_settop(L, top);
    return ok;
}

/* The same with its keys in the order of the list, if that has all of them. */
static bool take_listed_shape(lua_State *L, int idx, int list)
{
    int top = lua_gettop(L), missing = 0;
    bool ok = true;
    luaL_checkstack(L, 8, NULL);
    for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1))
        missing++;
    abl_json_push_shape(L);
    for (lua_Integer i = 1; ok && lua_rawgeti(L, list, i) != LUA_TNIL; i++) {
        ok = lua_type(L, -1) == LUA_TSTRING;
        lua_pushvalue(L, -1);
        bool there = lua_rawget(L, idx) != LUA_TNIL;
        lua_pop(L, 1);
        lua_insert(L, top + 1); /* below the shape */
        if (ok && there)
            ok = abl_json_next_shape(L, top + 1);
        missing -= there;
        lua_remove(L, top + 1);
    }
    lua_settop(L, top + 1);
    ok = ok && missing == 0;
    if (ok)
        lua_setmetatable(L, idx);
    lua_settop(L, top);
    return ok;
}

void abl_json_mark_object(lua_State *L, int idx, int first_idx)
{
    idx = lua_absindex(L, idx);
    if (first_idx ? take_listed_shape(L, idx, first_idx) : take_shape(L, idx))
        return;
    if (push_sorted_keys(L, idx) < 0)
        luaL_error(L, "an object's keys must be strings");
    int sorted = lua_gettop(L);
    lua_Integer n = 0, first = first_idx ? (lua_Integer)lua_rawlen(L, first_idx) : 0;
    lua_newtable(L);
    abl_json_push_object_mt(L, (int)lua_rawlen(L, sorted));
    for (lua_Integer i = 1; i <= first; i++) {
        if (lua_rawgeti(L, first_idx, i) != LUA_TSTRING)
            luaL_error(L, "an object's keys must be strings");
        n = add_key(L, sorted + 2, sorted + 1, n);
    }
    for (lua_Integer i = 1, m = (lua_Integer)lua_rawlen(L, sorted); i <= m; i++) {
        lua_rawgeti(L, sorted, i);
        n = add_key(L, sorted + 2, sorted + 1, n);
    }
    lua_setmetatable(L, idx);
    lua_settop(L, sorted - 1);
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
