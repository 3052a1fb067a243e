/* json_keys.c - the keys of a table in the order of their bytes, and tables that become
 * objects: their keys get an order. */
#include <stdlib.h>
#include <string.h>

#include "lua/json_value.h"

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
    struct key keys[ABL_JSON_SHAPE_KEYS];
    int places[ABL_JSON_SHAPE_KEYS], n = 0, top = lua_gettop(L);
    luaL_checkstack(L, ABL_JSON_SHAPE_KEYS + 8, NULL);
    for (lua_pushnil(L); lua_next(L, idx); n++) { /* the keys stay on the stack */
        lua_pop(L, 1);
        if (n == ABL_JSON_SHAPE_KEYS || lua_type(L, -1) != LUA_TSTRING) {
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
