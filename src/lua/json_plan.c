#include "lua/json_plan.h"

#include <lauxlib.h>
#include <string.h>

#include "lua/json_raw.h"
#include "lua/json_value.h"

enum { MAX_FIELDS = ABL_JSON_FIELDS, MAX_ELEMENTS = 1 << 24 };

static struct abl_json_field *add_field(lua_State *L, struct abl_json_plan *plan,
                                        int object, struct ab_json_slice name)
{
    luaL_argcheck(L, plan->fields < MAX_FIELDS && name.len > 0, 1,
                  "1 to 40 names expected");
    struct abl_json_field *f = &plan->field[plan->fields++];
    *f = (struct abl_json_field){name.s, name.len, object, -1, -1, 0, -1};
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

/* Records have names enough that comparing a key with all that are looked for takes
 * longer than finding its end. */
static unsigned hash_of(struct ab_json_slice name)
{
    unsigned first = (unsigned char)*name.s, last = (unsigned char)name.s[name.len - 1];
    return (first + 5 * last + 11 * (unsigned)name.len) % ABL_JSON_HASHES;
}

/* Those of one object and one hash in the order of the fields. */
static void hash_fields(struct abl_json_plan *plan)
{
    memset(plan->at, -1, sizeof plan->at);
    for (int i = plan->fields - 1; i >= 0; i--) {
        struct abl_json_field *f = &plan->field[i];
        signed char *at =
            &plan->at[f->object][hash_of((struct ab_json_slice){f->name, f->len})];
        f->next = *at;
        *at = (signed char)i;
    }
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
        luaL_argcheck(L, plan->columns < MAX_FIELDS, 1, "1 to 40 names expected");
        add_path(L, plan, lua_tostring(L, -1));
        lua_rawseti(L, 3, i);
    }
    lua_pop(L, 1);
    sort_fields(plan);
    hash_fields(plan);
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
                        struct ab_json_slice key, struct match *m)
{
    for (int i = plan->at[object][hash_of(key)]; i >= 0; i = plan->field[i].next) {
        const struct abl_json_field *f = &plan->field[i];
        if (f->len == key.len && memcmp(f->name, key.s, key.len) == 0 && f->element == 0)
            add_match(m, f);
    }
}

/* The same for a key with escapes, which may be another's spelling of a name. */
static void find_escaped(const struct abl_json_plan *plan, int object,
                         struct ab_json_slice key, struct match *m)
{
    for (int i = plan->first[object]; i < plan->first[object + 1]; i++) {
        const struct abl_json_field *f = &plan->field[i];
        if (f->element == 0 && ab_json_is_key(key, f->name, f->len))
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
        if (key.len > 0)
            find_fields(plan, object, key, &m);
        if (m.columns == 0 && m.inside < 0 && memchr(key.s, '\\', key.len))
            find_escaped(plan, object, key, &m);
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

struct ab_json_slice abl_json_text_at(lua_State *L, int idx)
{
    struct ab_json_slice text = {0};
    if (lua_type(L, idx) == LUA_TSTRING)
        text.s = lua_tolstring(L, idx, &text.len);
    else if (abl_json_type(L, idx) == ABL_JSON_RAW)
        text.s = abl_json_raw_text(L, idx, &text.len);
    return text;
}

struct ab_json_walk abl_json_walk(struct ab_json_slice text)
{
    return (struct ab_json_walk){text.s, text.s + text.len};
}

bool abl_json_look(const struct abl_json_plan *plan, struct ab_json_walk *walk,
                   struct ab_json_slice *found)
{
    return look(plan, 0, walk, found);
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
        struct ab_json_slice text = abl_json_text_at(L, -1); /* the table keeps it */
        struct ab_json_walk walk = abl_json_walk(text);
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
    struct ab_json_walk walk = abl_json_walk(list);
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
    struct ab_json_slice text = abl_json_text_at(L, 1);
    luaL_argcheck(L, text.s, 1, "JSON text expected");
    return abl_json_take_list(text, plan, found);
}
