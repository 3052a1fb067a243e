/* json_amend.c - JSON objects with other values for some of their members. */
#include "lua/json_amend.h"

#include <lauxlib.h>
#include <string.h>

#include "base/json.h"
#include "lua/buffer.h"
#include "lua/json_plan.h"

enum { MAX_NAMES = 32, FEW = 16 };

/* Of the closure: the names in their order, their numbers by name, and how many lead. */
enum { UP_NAMES = 1, UP_NUMBERS, UP_LEADING };

/* The stack of a call: the object, and the texts up to FIRST + MAX_NAMES; then these. */
enum { OBJECT = 1, TEXTS, OUT = TEXTS + MAX_NAMES, PARTS, SEEN };

/* A member of the object. */
struct part {
    struct ab_json_slice key, value; /* the key with its quotes */
    int number;                      /* of its name, 0 for none */
};

/* Those of an object, mostly few; more of them are in the buffer at PARTS. */
struct parts {
    struct part few[FEW];
    struct ab_buf *many; /* borrowed, or NULL */
    size_t n;
};

static struct part *part_at(struct parts *parts, size_t i)
{
    return parts->many ? (struct part *)(void *)parts->many->data + i : &parts->few[i];
}

static void add_part(lua_State *L, struct parts *parts, struct part part)
{
    if (parts->n == FEW) {
        parts->many = abl_push_buf(L);
        lua_replace(L, PARTS);
        ab_buf_put(parts->many, parts->few, sizeof parts->few);
    }
    if (parts->many)
        ab_buf_put(parts->many, &part, sizeof part);
    else
        parts->few[parts->n] = part;
    parts->n++;
}

static void put_key(struct ab_buf *out, const char *key, size_t len, bool quoted)
{
    ab_buf_putc(out, out->len ? ',' : '{');
    if (quoted)
        ab_buf_put(out, key, len);
    else if (ab_json_put_string(out, key, len, 0) < 0)
        AB_BUG("bytes are replaced, not refused");
    ab_buf_putc(out, ':');
}

/* The text for a name, empty when none was given. */
static struct ab_json_slice text_for(lua_State *L, int number)
{
    struct ab_json_slice text = {0};
    if (number > 0 && !lua_isnil(L, TEXTS - 1 + number))
        text.s = luaL_checklstring(L, TEXTS - 1 + number, &text.len);
    return text;
}

static void put_named(lua_State *L, struct ab_buf *out, int number)
{
    struct ab_json_slice text = text_for(L, number);
    if (!text.s)
        return;
    size_t len;
    lua_rawgeti(L, lua_upvalueindex(UP_NAMES), number);
    const char *name = lua_tolstring(L, -1, &len);
    put_key(out, name, len, false);
    ab_buf_put(out, text.s, text.len);
    lua_pop(L, 1);
}

/* Notes a member whose key, unescaped, is on top, or that its value came again; pops the
 * key. */
static void note(lua_State *L, struct part part, struct parts *parts)
{
    lua_pushvalue(L, -1);
    if (lua_rawget(L, SEEN) != LUA_TNIL) {
        part_at(parts, (size_t)lua_tointeger(L, -1))->value = part.value;
    } else {
        lua_pushvalue(L, -2);
        lua_pushinteger(L, (lua_Integer)parts->n);
        lua_rawset(L, SEEN);
        add_part(L, parts, part);
    }
    lua_pop(L, 2);
}

/* Of scratch only the room behind its bytes is used. */
static void take_parts(lua_State *L, int leading, struct parts *parts,
                       struct ab_buf *scratch)
{
    struct ab_json_slice object, key;
    object.s = luaL_checklstring(L, OBJECT, &object.len);
    struct ab_json_walk walk = {object.s, object.s + object.len};
    luaL_argcheck(L, ab_json_open(&walk, '{'), 1, "the JSON text of an object expected");
    while (ab_json_next_key(&walk, &key)) {
        struct part part = {.key = {key.s - 1, key.len + 2}};
        part.value = ab_json_value(&walk);
        abl_json_push_found(L, part.key, '$', scratch);
        if (lua_isnil(L, -1)) { /* no valid text */
            lua_pop(L, 1);
            continue;
        }
        lua_pushvalue(L, -1);
        lua_rawget(L, lua_upvalueindex(UP_NUMBERS));
        part.number = (int)lua_tointeger(L, -1);
        lua_pop(L, 1);
        if (part.number > 0 && part.number <= leading)
            lua_pop(L, 1);
        else
            note(L, part, parts);
    }
}

static void put_part(lua_State *L, const struct part *part, struct ab_buf *out)
{
    struct ab_json_slice text = text_for(L, part->number);
    if (!text.s)
        text = part->value;
    if (memchr(part->key.s, '\\', part->key.len)) {
        size_t len;
        abl_json_push_found(L, part->key, '$', out); /* in the room behind its bytes */
        const char *key = lua_tolstring(L, -1, &len);
        put_key(out, key, len, false);
        lua_pop(L, 1);
    } else {
        put_key(out, part->key.s, part->key.len, true);
    }
    ab_buf_put(out, text.s, text.len);
}

static int l_amend(lua_State *L)
{
    int leading = (int)lua_tointeger(L, lua_upvalueindex(UP_LEADING));
    int names = (int)lua_rawlen(L, lua_upvalueindex(UP_NAMES));
    bool used[MAX_NAMES + 1] = {false};
    lua_settop(L, 1 + names);
    luaL_checkstack(L, MAX_NAMES + 10, NULL);
    lua_settop(L, OUT - 1);
    struct ab_buf *out = abl_take_buf(L);
    struct parts parts;
    parts.many = NULL;
    parts.n = 0;
    lua_settop(L, PARTS);
    lua_createtable(L, 0, 8);
    take_parts(L, leading, &parts, out);
    for (int i = 1; i <= leading; i++)
        put_named(L, out, i);
    for (size_t i = 0; i < parts.n; i++) {
        const struct part *part = part_at(&parts, i);
        put_part(L, part, out);
        used[part->number] = true;
    }
    for (int i = leading + 1; i <= names; i++) {
        if (!used[i])
            put_named(L, out, i);
    }
    if (out->len == 0)
        ab_buf_putc(out, '{');
    ab_buf_putc(out, '}');
    lua_pushlstring(L, out->data, out->len);
    if (parts.many)
        ab_buf_fini(parts.many);
    abl_return_buf(L, OUT);
    return 1;
}

int abl_json_amend(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    lua_Integer leading = (lua_Integer)lua_rawlen(L, 1), n = 0;
    lua_newtable(L);
    lua_newtable(L);
    for (int list = 1; list <= 2; list++) {
        for (lua_Integer i = 1; lua_rawgeti(L, list, i) == LUA_TSTRING; i++) {
            luaL_argcheck(L, n < MAX_NAMES, list, "up to 32 names expected");
            lua_pushvalue(L, -1);
            lua_rawseti(L, 3, ++n);
            lua_pushinteger(L, n);
            lua_rawset(L, 4);
        }
        lua_pop(L, 1);
    }
    lua_pushinteger(L, leading);
    lua_pushcclosure(L, l_amend, 3);
    return 1;
}
