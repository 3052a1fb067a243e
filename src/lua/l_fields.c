/* l_fields.c - agentbox.sys.fields: whether a table has the fields that it should have.
 * Only what is right is dealt with here, fast; what is wrong, and words for it, are the
 * caller's.
 *
 * A plan is { fields, defaults, required, count }: the first is the rules by name, the
 * second a table of values, the third a list of names; the fourth how many fields the
 * last copy had, so that the next is made in one piece. A rule is a set of kinds, or a
 * list of such a set, and what else a value must be: { kinds, fields = plan, of = rule,
 * enum = list, min =, max = }.
 */
#include <lauxlib.h>
#include <string.h>

#include "lua/conv.h"
#include "lua/json_value.h"

int luaopen_agentbox_sys_fields(lua_State *L);

enum kind {
    STRING = 1,
    TEXT = 2, /* a string without a zero byte */
    BOOLEAN = 4,
    FUNCTION = 8,
    NUMBER = 16,
    INTEGER = 32,
    LIST = 64,
    MAP = 128,
    TABLE = 256,
    ANY = 512,
    NUMERAL = 1024, /* of a rule: a string that is a number counts as one */
};

enum { MAX_DEPTH = 16 };

static bool push_record(lua_State *L, int value, int plan, int depth);
static bool push_checked(lua_State *L, int value, int rule, int depth);

/* Keys 1..n and nothing else; an empty plain table is one. */
static bool is_sequence(lua_State *L, int idx)
{
    lua_Unsigned count = 0;
    for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1))
        count++;
    return count == lua_rawlen(L, idx);
}

static lua_Integer kinds_of_table(lua_State *L, int idx)
{
    int top = lua_gettop(L);
    enum abl_json_type type = abl_json_type(L, idx);
    lua_settop(L, top);
    if (type == ABL_JSON_ARRAY)
        return LIST | TABLE;
    lua_Integer kinds = TABLE;
    if (lua_rawlen(L, idx) == 0)
        kinds |= MAP;
    if (type != ABL_JSON_OBJECT && is_sequence(L, idx))
        kinds |= LIST;
    return kinds;
}

static lua_Integer kinds_of_string(lua_State *L, int idx)
{
    size_t len;
    const char *s = lua_tolstring(L, idx, &len);
    return memchr(s, '\0', len) ? STRING : STRING | TEXT;
}

/* What a value is. A string that stands for a number is only a string. */
static lua_Integer kinds_of(lua_State *L, int idx)
{
    switch (lua_type(L, idx)) {
    case LUA_TSTRING:
        return kinds_of_string(L, idx);
    case LUA_TBOOLEAN:
        return BOOLEAN;
    case LUA_TFUNCTION:
        return FUNCTION;
    case LUA_TNUMBER:
        return lua_isinteger(L, idx) ? NUMBER | INTEGER : NUMBER;
    case LUA_TTABLE:
        return kinds_of_table(L, idx);
    default:
        return 0;
    }
}

static bool is_null(lua_State *L, int idx)
{
    return lua_isuserdata(L, idx) && abl_json_type(L, idx) == ABL_JSON_NULL;
}

/* out[key] = the value on top; the key is at its index, and all from there on goes. */
static void set_on_top(lua_State *L, int out, int key)
{
    lua_insert(L, key + 1);
    lua_settop(L, key + 1);
    lua_rawset(L, out);
}

/* What pairs() shows of it is what it holds. */
static bool is_plain(lua_State *L, int idx)
{
    int top = lua_gettop(L);
    bool plain = abl_json_type(L, idx) != ABL_JSON_OTHER ||
                 luaL_getmetafield(L, idx, "__pairs") == LUA_TNIL;
    lua_settop(L, top);
    return plain;
}

/* Pushes the list's elements, each as `rule` wants it, or the map's. */
static bool push_all(lua_State *L, int value, int rule, bool list, int depth)
{
    if (depth > MAX_DEPTH || !is_plain(L, value))
        return false;
    luaL_checkstack(L, 20, "fields");
    lua_newtable(L);
    int out = lua_gettop(L);
    if (list)
        abl_json_mark_array(L, out);
    for (lua_pushnil(L); lua_next(L, value); lua_settop(L, out + 1)) {
        if (!list && lua_type(L, out + 1) != LUA_TSTRING)
            return false;
        lua_pushvalue(L, out + 1);
        if (!push_checked(L, out + 2, rule, depth + 1))
            return false;
        set_on_top(L, out, out + 3);
    }
    return true;
}

static bool is_one_of(lua_State *L, int value, int list)
{
    bool found = false;
    for (lua_Integer i = 1; !found && lua_rawgeti(L, list, i) != LUA_TNIL; i++) {
        found = lua_compare(L, -1, value, LUA_OPEQ);
        lua_pop(L, 1);
    }
    return found;
}

/* Whether a rule's bound, on top, is kept by the value, which is no number or at the
 * right side of it. Pops it. */
static bool is_within(lua_State *L, int value, bool below)
{
    bool ok = lua_isnil(L, -1) || lua_type(L, value) != LUA_TNUMBER ||
              lua_compare(L, below ? value : -1, below ? -1 : value, LUA_OPLE);
    lua_pop(L, 1);
    return ok;
}

/* The value, which is of these kinds, as the fields, elements or bounds of the rule, a
 * table, want it. */
static bool push_inside(lua_State *L, int value, lua_Integer kinds, lua_Integer wanted,
                        int rule, int depth)
{
    bool ok = true;
    if ((kinds & TABLE) && lua_getfield(L, rule, "enum") != LUA_TNIL)
        return false;
    if ((kinds & MAP) && lua_getfield(L, rule, "fields") == LUA_TTABLE)
        return push_record(L, value, lua_gettop(L), depth + 1);
    if ((kinds & TABLE) && lua_getfield(L, rule, "of") != LUA_TNIL) {
        bool list = (kinds & LIST) && !((kinds & MAP) && wanted == MAP);
        return push_all(L, value, lua_gettop(L), list, depth);
    }
    if (lua_getfield(L, rule, "enum") == LUA_TTABLE)
        ok = is_one_of(L, value, lua_gettop(L));
    lua_getfield(L, rule, "min");
    ok = ok && is_within(L, value, false);
    lua_getfield(L, rule, "max");
    ok = ok && is_within(L, value, true);
    lua_pushvalue(L, value);
    return ok;
}

/* Pushes the value as the rule wants it, which may be a copy; false for one that does not
 * fit, or takes a closer look: numbers that are written as text or with a fraction of
 * nothing, and NaN. */
static bool push_checked(lua_State *L, int value, int rule, int depth)
{
    bool plain = lua_isinteger(L, rule);
    lua_Integer kinds = kinds_of(L, value), wanted;
    if (plain) {
        wanted = lua_tointeger(L, rule);
    } else {
        lua_rawgeti(L, rule, 1);
        wanted = lua_tointeger(L, -1);
        lua_pop(L, 1);
    }
    if (!(wanted & (kinds | ANY)))
        return false;
    if ((kinds & STRING) && (wanted & NUMERAL))
        return false;
    if (kinds == NUMBER &&
        ((wanted & INTEGER) || !lua_compare(L, value, value, LUA_OPEQ)))
        return false;
    if (plain) {
        lua_pushvalue(L, value);
        return true;
    }
    return push_inside(L, value, kinds, wanted, rule, depth);
}

/* Whether the table at `out` has the names in the list. */
static bool has_all(lua_State *L, int out, int names)
{
    bool all = true;
    for (lua_Integer i = 1; all && lua_rawgeti(L, names, i) != LUA_TNIL; i++) {
        all = lua_rawget(L, out) != LUA_TNIL;
        lua_pop(L, 1);
    }
    return all;
}

/* Pushes a copy of the map at `value` with its defaults. */
static bool push_record(lua_State *L, int value, int plan, int depth)
{
    if (depth > MAX_DEPTH || !is_plain(L, value))
        return false;
    luaL_checkstack(L, 20, "fields");
    int out = lua_gettop(L) + 1, fields = out + 1, key = out + 2, given = out + 3;
    lua_rawgeti(L, plan, 4);
    lua_Integer last = lua_tointeger(L, -1), count = 0;
    lua_createtable(L, 0, (int)last);
    lua_replace(L, out);
    lua_rawgeti(L, plan, 2);
    for (lua_pushnil(L); lua_next(L, fields); lua_pop(L, 1), count++) {
        lua_pushvalue(L, key);
        lua_pushvalue(L, given);
        lua_rawset(L, out);
    }
    lua_rawgeti(L, plan, 1);
    lua_replace(L, fields);
    for (lua_pushnil(L); lua_next(L, value); lua_settop(L, key)) {
        lua_pushvalue(L, key);
        if (lua_rawget(L, fields) == LUA_TNIL)
            return false;
        if (is_null(L, given))
            continue;
        lua_pushvalue(L, key);
        if (!push_checked(L, given, given + 1, depth))
            return false;
        set_on_top(L, out, given + 2);
        count++;
    }
    if (count != last) {
        lua_pushinteger(L, count);
        lua_rawseti(L, plan, 4);
    }
    lua_rawgeti(L, plan, 3);
    lua_replace(L, fields);
    bool whole = has_all(L, out, fields);
    lua_settop(L, out);
    return whole;
}

/* check(map, plan) -> a copy with its defaults, or nil when it is not certain that all is
 * right */
static int l_check(lua_State *L)
{
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    if (!lua_istable(L, 1) || !(kinds_of_table(L, 1) & MAP) || !push_record(L, 1, 2, 0))
        lua_pushnil(L);
    return 1;
}

int luaopen_agentbox_sys_fields(lua_State *L)
{
    static const luaL_Reg lib[] = {{"check", l_check}, {NULL, NULL}};
    static const struct {
        const char *name;
        enum kind kind;
    } kinds[] = {
        {"string", STRING},     {"text", TEXT},     {"boolean", BOOLEAN},
        {"function", FUNCTION}, {"number", NUMBER}, {"integer", INTEGER},
        {"list", LIST},         {"map", MAP},       {"record", MAP},
        {"table", TABLE},       {"any", ANY},       {"numeral", NUMERAL},
    };
    luaL_newlib(L, lib);
    lua_newtable(L);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        lua_pushinteger(L, kinds[i].kind);
        lua_setfield(L, -2, kinds[i].name);
    }
    lua_setfield(L, -2, "KINDS");
    return 1;
}
