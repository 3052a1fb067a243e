#include "lua/json_slice.h"

#include <string.h>

#include "base/json_index.h"
#include "base/json_scan.h"
#include "lua/buffer.h"
#include "lua/json_plan.h"
#include "lua/json_value.h"

enum { MAX_FIELDS = ABL_JSON_FIELDS, MAX_ELEMENTS = 1 << 24 };

/* ---- the plan ---- */

static struct abl_json_field *add_field(lua_State *L, struct abl_json_plan *plan,
                                        int object, struct ab_json_slice name)
{
    luaL_argcheck(L, plan->fields < MAX_FIELDS && name.len > 0, 1,
                  "1 to 32 names expected");
    struct abl_json_field *f = &plan->field[plan->fields++];
    *f = (struct abl_json_field){name.s, name.len, object, -1, -1, 0};
    if (name.len == 3 && name.s[0] == '[' && name.s[1] > '0' && name.s[1] <= '9') {
        f->element = name.s[1] - '0';
        plan->elements[object] = true;
    }
    return f;
}

/* The object that a step of a path leads to. */
static int object_inside(lua_State *L, struct abl_json_plan *plan, int object,
                         struct ab_json_slice name)
{
    for (int i = 0; i < plan->fields; i++) {
        const struct abl_json_field *f = &plan->field[i];
        if (f->object == object && f->inside >= 0 && f->len == name.len &&
            memcmp(f->name, name.s, name.len) == 0)
            return f->inside;
    }
    return add_field(L, plan, object, name)->inside = ++plan->objects;
}

static void add_path(lua_State *L, struct abl_json_plan *plan, const char *path)
{
    int object = 0;
    char mark = *path && strchr("&!$?", *path) ? *path++ : 0;
    for (const char *dot; (dot = strchr(path, '.')); path = dot + 1)
        object = object_inside(L, plan, object,
                               (struct ab_json_slice){path, (size_t)(dot - path)});
    struct ab_json_slice name = {path, strlen(path)};
    add_field(L, plan, object, name)->column = plan->columns;
    plan->mark[plan->columns++] = mark;
}

/* Puts the fields of each object together. */
static void sort_fields(struct abl_json_plan *plan)
{
    struct abl_json_field sorted[MAX_FIELDS];
    int n = 0;
    for (int object = 0; object <= plan->objects; object++) {
        plan->first[object] = n;
        for (int i = 0; i < plan->fields; i++) {
            if (plan->field[i].object == object)
                sorted[n++] = plan->field[i];
        }
    }
    plan->first[plan->objects + 1] = n;
    memcpy(plan->field, sorted, sizeof sorted[0] * (size_t)n);
}

void abl_json_push_plan(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    struct abl_json_plan *plan = lua_newuserdatauv(L, sizeof *plan, 0);
    *plan = (struct abl_json_plan){0};
    lua_newtable(L);
    for (lua_Integer i = 1; lua_rawgeti(L, 1, i) == LUA_TSTRING; i++) {
        luaL_argcheck(L, plan->columns < MAX_FIELDS, 1, "1 to 32 names expected");
        add_path(L, plan, lua_tostring(L, -1));
        lua_rawseti(L, 3, i);
    }
    lua_pop(L, 1);
    sort_fields(plan);
}

/* ---- looking ---- */

/* Nothing is found of an object any more: its key came again. */
static void forget(const struct abl_json_plan *plan, int object,
                   struct ab_json_slice *found)
{
    for (int i = plan->first[object]; i < plan->first[object + 1]; i++) {
        const struct abl_json_field *f = &plan->field[i];
        if (f->column >= 0)
            found[f->column].s = NULL;
        if (f->inside >= 0)
            forget(plan, f->inside, found);
    }
}

static bool look(const struct abl_json_plan *plan, int object, struct ab_json_walk *walk,
                 struct ab_json_slice *found);

/* The fields that a key is the name of, or an element the number. */
struct match {
    int column[MAX_FIELDS], columns;
    int inside; /* or -1 */
};

static void add_match(struct match *m, const struct abl_json_field *f)
{
    if (f->column >= 0)
        m->column[m->columns++] = f->column;
    if (f->inside >= 0)
        m->inside = f->inside;
}

static void find_fields(const struct abl_json_plan *plan, int object,
                        struct ab_json_slice key, bool escaped, struct match *m)
{
    for (int i = plan->first[object]; i < plan->first[object + 1]; i++) {
        const struct abl_json_field *f = &plan->field[i];
        bool same = escaped ? ab_json_is_key(key, f->name, f->len)
                            : f->len == key.len && *f->name == *key.s &&
                                  memcmp(f->name, key.s, key.len) == 0;
        if (same && f->element == 0)
            add_match(m, f);
    }
}

/* The value that the walk is at, for the fields that it was found to be of; false when
 * there is none. */
static bool take_value(const struct abl_json_plan *plan, const struct match *m,
                       struct ab_json_walk *walk, struct ab_json_slice *found)
{
    struct ab_json_slice value = {walk->p, 0};
    if (m->inside >= 0)
        forget(plan, m->inside, found);
    if (m->inside >= 0 && look(plan, m->inside, walk, found))
        value.len = (size_t)(walk->p - value.s);
    else
        value = ab_json_value(walk);
    for (int i = 0; i < m->columns && value.len > 0; i++)
        found[m->column[i]] = value;
    return value.len > 0;
}

static void look_at_members(const struct abl_json_plan *plan, int object,
                            struct ab_json_walk *walk, struct ab_json_slice *found)
{
    struct ab_json_slice key;
    while (ab_json_next_key(walk, &key)) {
        struct match m;
        m.columns = 0;
        m.inside = -1;
        find_fields(plan, object, key, false, &m);
        if (m.columns == 0 && m.inside < 0 && memchr(key.s, '\\', key.len))
            find_fields(plan, object, key, true, &m);
        take_value(plan, &m, walk, found);
    }
}

static void look_at_elements(const struct abl_json_plan *plan, int object,
                             struct ab_json_walk *walk, struct ab_json_slice *found)
{
    for (int n = 1; ab_json_next(walk); n++) {
        struct match m;
        m.columns = 0;
        m.inside = -1;
        for (int i = plan->first[object]; i < plan->first[object + 1]; i++) {
            if (plan->field[i].element == n)
                add_match(&m, &plan->field[i]);
        }
        if (!take_value(plan, &m, walk, found))
            break;
    }
}

/* Fills in what is found of the members of the object that the walk is at, or of the list
 * whose elements are wanted. Recursion is as deep as the paths. */
static bool look(const struct abl_json_plan *plan, int object, struct ab_json_walk *walk,
                 struct ab_json_slice *found)
{
    if (ab_json_open(walk, '{')) {
        look_at_members(plan, object, walk, found);
        return true;
    }
    if (!plan->elements[object] || !ab_json_open(walk, '['))
        return false;
    look_at_elements(plan, object, walk, found);
    return true;
}

/* ---- what was found, as Lua values ---- */

static void push_string(lua_State *L, struct ab_json_slice text, struct ab_buf *scratch)
{
    struct ab_err err;
    const char *s = text.s + 1;
    size_t len = text.len < 2 ? 0 : text.len - 2, written = 0;
    if (!memchr(s, '\\', len)) {
        lua_pushlstring(L, s, len);
        return;
    }
    struct ab_json_scan scan = {.src = text.s, .err = &err};
    char *out = ab_buf_reserve(scratch, len);
    if (ab_json_unescape(scan, s, s + len, out, &written) < 0)
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

static struct ab_json_slice text_at(lua_State *L, int idx)
{
    struct ab_json_slice text = {0};
    if (lua_type(L, idx) == LUA_TSTRING)
        text.s = lua_tolstring(L, idx, &text.len);
    else if (abl_json_type(L, idx) == ABL_JSON_RAW)
        text.s = abl_json_value_text(L, idx, &text.len);
    return text;
}

static struct ab_json_slice check_text(lua_State *L)
{
    struct ab_json_slice text = text_at(L, 1);
    luaL_argcheck(L, text.s, 1, "JSON text expected");
    return text;
}

static struct ab_json_walk walk_of(struct ab_json_slice text)
{
    return (struct ab_json_walk){text.s, text.s + text.len};
}

/* Looks at one more element; its findings are the last ones in `found`. */
static bool take(const struct abl_json_plan *plan, struct ab_json_walk *walk,
                 struct ab_buf *found)
{
    size_t bytes = (size_t)plan->columns * sizeof(struct ab_json_slice);
    void *room = ab_buf_reserve(found, bytes);
    memset(room, 0, bytes);
    ab_buf_advance(found, bytes);
    return look(plan, 0, walk, room);
}

static lua_Integer take_texts(lua_State *L, const struct abl_json_plan *plan,
                              struct ab_buf *found)
{
    lua_Integer n = 0;
    for (; n < MAX_ELEMENTS && lua_rawgeti(L, 1, n + 1) != LUA_TNIL; n++) {
        struct ab_json_slice text = text_at(L, -1); /* the table keeps it */
        struct ab_json_walk walk = walk_of(text);
        if (!text.s || !take(plan, &walk, found))
            return -1;
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return n;
}

lua_Integer abl_json_take_list(struct ab_json_slice list,
                               const struct abl_json_plan *plan, struct ab_buf *found)
{
    struct ab_json_walk walk = walk_of(list);
    lua_Integer n = 0;
    if (!ab_json_open(&walk, '['))
        return -1;
    for (; n < MAX_ELEMENTS && ab_json_next(&walk); n++) {
        if (!take(plan, &walk, found))
            return -1;
    }
    return n;
}

lua_Integer abl_json_take_all(lua_State *L, const struct abl_json_plan *plan,
                              struct ab_buf *found)
{
    if (lua_istable(L, 1))
        return take_texts(L, plan, found);
    return abl_json_take_list(check_text(L), plan, found);
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
    struct ab_json_slice found[MAX_FIELDS] = {{0}};
    lua_settop(L, 1);
    struct ab_json_walk walk = walk_of(check_text(L));
    if (!look(plan, 0, &walk, found))
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
    struct ab_json_walk walk = walk_of(check_text(L));
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
    struct ab_json_walk walk = walk_of(check_text(L));
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
