#include "lua/json_slice.h"

#include <string.h>

#include "base/json_index.h"
#include "base/json_scan.h"
#include "lua/buffer.h"
#include "lua/json_plan.h"
#include "lua/json_value.h"

static void push_string(lua_State *L, struct ab_json_slice text, struct ab_buf *scratch)
{
    struct ab_err err;
    const char *s = text.s + 1;
    size_t len = text.len < 2 ? 0 : text.len - 2, written = 0;
    if (!memchr(s, '\\', len)) {
        lua_pushlstring(L, s, len);
        return;
    }
    char *out = ab_buf_reserve(scratch, len);
    if (ab_json_unescape(s, s, s + len, out, &written, &err) < 0)
        lua_pushnil(L);
    else
        lua_pushlstring(L, out, written);
}

/* What is rare: an exponent, -0, more digits than an integer has. */
static void push_parsed(lua_State *L, struct ab_json_slice text)
{
    struct ab_err err;
    struct ab_json *doc = abl_json_take(L);
    int at = lua_gettop(L);
    if (ab_json_parse(doc, text.s, text.len, NULL, &err) < 0)
        lua_pushnil(L);
    else
        abl_json_push(L, at, at);
    abl_json_return(L, at);
    lua_remove(L, at);
}

static void push_number(lua_State *L, struct ab_json_slice text)
{
    bool negative = *text.s == '-';
    uint64_t u = 0;
    double v;
    size_t i = negative;
    for (; i < text.len && text.len < 19 && text.s[i] >= '0' && text.s[i] <= '9'; i++)
        u = u * 10 + (unsigned)(text.s[i] - '0');
    if (i == text.len && !(negative && u == 0))
        lua_pushinteger(L, negative ? -(lua_Integer)u : (lua_Integer)u);
    else if (memchr(text.s, '.', text.len) && ab_json_read_double(text.s, text.len, &v))
        lua_pushnumber(L, v);
    else
        push_parsed(L, text);
}

static const char *kind_of(struct ab_json_slice text)
{
    switch (*text.s) {
    case '{':
        return "object";
    case '[':
        return "array";
    case '"':
        return "string";
    case 'n':
        return "null";
    default:
        return *text.s == 't' || *text.s == 'f' ? "boolean" : "number";
    }
}

void abl_json_push_found(lua_State *L, struct ab_json_slice text, char mark,
                         struct ab_buf *scratch)
{
    if (!text.s || (mark == '$' && *text.s != '"') || (mark == '!' && *text.s == 'n'))
        lua_pushnil(L);
    else if (mark == '?')
        lua_pushstring(L, kind_of(text));
    else if (mark == '&' || mark == '!' || *text.s == '{' || *text.s == '[')
        lua_pushlstring(L, text.s, text.len);
    else if (*text.s == '"')
        push_string(L, text, scratch);
    else if (*text.s == 't' || *text.s == 'f')
        lua_pushboolean(L, *text.s == 't');
    else if (*text.s == 'n')
        lua_pushnil(L);
    else
        push_number(L, text);
}

static struct ab_json_slice check_text(lua_State *L)
{
    struct ab_json_slice text = abl_json_text_at(L, 1);
    luaL_argcheck(L, text.s, 1, "JSON text expected");
    return text;
}

/* upvalues: plan, its names */
static int l_split(lua_State *L)
{
    const struct abl_json_plan *plan = lua_touserdata(L, lua_upvalueindex(1));
    lua_settop(L, 1);
    luaL_checkstack(L, plan->columns + 8, NULL);
    struct ab_buf *found = abl_take_buf(L), *scratch = abl_push_buf(L);
    lua_Integer n = abl_json_take_all(L, plan, found);
    lua_settop(L, 3);
    if (n < 0) {
        abl_return_buf(L, 2);
        return 0;
    }
    lua_pushinteger(L, n);
    const struct ab_json_slice *slice = (const struct ab_json_slice *)found->data;
    for (int c = 0; c < plan->columns; c++) {
        lua_createtable(L, (int)n, 0);
        for (lua_Integer i = 0; i < n; i++) {
            abl_json_push_found(L, slice[i * plan->columns + c], plan->mark[c], scratch);
            lua_rawseti(L, -2, i + 1);
        }
    }
    ab_buf_fini(scratch);
    abl_return_buf(L, 2);
    return 1 + plan->columns;
}

/* upvalues: plan, its names */
static int l_pick(lua_State *L)
{
    const struct abl_json_plan *plan = lua_touserdata(L, lua_upvalueindex(1));
    struct ab_json_slice found[ABL_JSON_FIELDS] = {{0}};
    lua_settop(L, 1);
    struct ab_json_walk walk = abl_json_walk(check_text(L));
    if (!abl_json_look(plan, &walk, found))
        return 0;
    luaL_checkstack(L, plan->columns + 4, NULL);
    struct ab_buf *scratch = abl_take_buf(L);
    for (int c = 0; c < plan->columns; c++)
        abl_json_push_found(L, found[c], plan->mark[c], scratch);
    abl_return_buf(L, 2);
    return plan->columns;
}

int abl_json_split(lua_State *L)
{
    abl_json_push_plan(L);
    lua_pushcclosure(L, l_split, 2);
    return 1;
}

int abl_json_pick(lua_State *L)
{
    abl_json_push_plan(L);
    lua_pushcclosure(L, l_pick, 2);
    return 1;
}

int abl_json_entries(lua_State *L)
{
    struct ab_json_slice key;
    struct ab_json_walk walk = abl_json_walk(check_text(L));
    lua_settop(L, 1);
    if (!ab_json_open(&walk, '{'))
        return 0;
    struct ab_buf *scratch = abl_take_buf(L);
    lua_newtable(L);
    lua_newtable(L);
    for (lua_Integer n = 1; ab_json_next_key(&walk, &key); n++) {
        push_string(L, (struct ab_json_slice){key.s - 1, key.len + 2}, scratch);
        lua_rawseti(L, 3, n);
        struct ab_json_slice value = ab_json_value(&walk);
        lua_pushlstring(L, value.s, value.len);
        lua_rawseti(L, 4, n);
    }
    abl_return_buf(L, 2);
    return 2;
}

int abl_json_elements(lua_State *L)
{
    struct ab_json_walk walk = abl_json_walk(check_text(L));
    lua_settop(L, 1);
    if (!ab_json_open(&walk, '['))
        return 0;
    lua_newtable(L);
    for (lua_Integer n = 1; ab_json_next(&walk); n++) {
        struct ab_json_slice value = ab_json_value(&walk);
        if (value.len == 0)
            break;
        lua_pushlstring(L, value.s, value.len);
        lua_rawseti(L, 2, n);
    }
    return 1;
}
