/* json_push.c - a parsed document to Lua values. */
#include <stdlib.h>
#include <string.h>

#include "lua/json_raw.h"
#include "lua/json_value.h"

#define SHAPES_TYPE "agentbox.json.shapes"

/* A parent with more children than this makes no more that can be found again: a map from
 * ids to things would search a long list for nothing. */
#define MAX_CHILDREN 8

/* Objects with more keys than this do not share with those of other documents. */
#define MAX_COMMON 16

/* A small document has no more shapes than this, and its builder needs no memory. */
#define FEW_SHAPES 16

/* Shapes are a tree: a shape is its parent's keys and one more. Shape 0 has no keys. */
struct shape {
    uint32_t parent, child, sibling; /* 0 stands for none */
    uint32_t recent;                 /* the child that matched last */
    uint32_t children, keys;
    size_t key;  /* node of the last key */
    bool seen;   /* an object had it */
    bool shared; /* its metatable is in the table of metatables, at this shape's number */
};

struct builder {
    lua_State *L;
    const struct ab_json *doc;
    size_t next; /* node */
    struct shape *shapes;
    uint32_t count, cap;
    struct shape few[FEW_SHAPES];
    int owner;           /* stack index: nil, or the userdata that owns the shapes */
    int metatables, src; /* stack indices; nil until a shape comes again */
};

static int l_shapes_gc(lua_State *L)
{
    struct shape **shapes = luaL_checkudata(L, 1, SHAPES_TYPE);
    free(*shapes);
    *shapes = NULL;
    return 0;
}

static void grow_shapes(struct builder *b)
{
    lua_State *L = b->L;
    struct shape **owned = lua_touserdata(L, b->owner);
    if (!owned) {
        owned = lua_newuserdatauv(L, sizeof(struct shape *), 0);
        *owned = NULL;
        luaL_setmetatable(L, SHAPES_TYPE);
        lua_replace(L, b->owner);
    }
    struct shape *before = *owned;
    b->cap *= 2;
    *owned = ab_xrealloc(before, b->cap * sizeof **owned);
    if (!before)
        memcpy(*owned, b->few, sizeof b->few);
    b->shapes = *owned;
}

static uint32_t add_shape(struct builder *b, uint32_t parent, size_t key)
{
    if (b->count == b->cap)
        grow_shapes(b);
    uint32_t keys = b->count ? b->shapes[parent].keys + 1 : 0;
    b->shapes[b->count] = (struct shape){.parent = parent, .key = key, .keys = keys};
    return b->count++;
}

static bool same_key(const struct ab_json *doc, size_t a, size_t b)
{
    const struct ab_json_node *x = &doc->nodes[a], *y = &doc->nodes[b];
    return x->len == y->len &&
           memcmp(ab_json_text(doc, x), ab_json_text(doc, y), x->len) == 0;
}

/* The shape with one more key, the one at node `key`. */
static uint32_t extend(struct builder *b, uint32_t at, size_t key)
{
    uint32_t c = b->shapes[at].recent;
    if (c && same_key(b->doc, b->shapes[c].key, key))
        return c;
    for (c = b->shapes[at].child; c; c = b->shapes[c].sibling) {
        if (same_key(b->doc, b->shapes[c].key, key)) {
            b->shapes[at].recent = c;
            return c;
        }
    }
    c = add_shape(b, at, key);
    struct shape *parent = &b->shapes[at];
    if (parent->children < MAX_CHILDREN) {
        parent->children++;
        b->shapes[c].sibling = parent->child;
        parent->child = parent->recent = c;
    }
    return c;
}

static void push_text(struct builder *b, const struct ab_json_node *node)
{
    lua_pushlstring(b->L, ab_json_text(b->doc, node), node->len);
}

/* With a key that came twice the list on top is longer than the object below it. */
static void drop_repeats(struct builder *b, uint32_t keys)
{
    lua_State *L = b->L;
    int mt = lua_gettop(L);
    uint32_t n = 0;
    for (lua_pushnil(L); lua_next(L, mt - 1); lua_pop(L, 1))
        n++;
    if (n == keys)
        return;
    lua_newtable(L);
    n = 0;
    for (uint32_t i = 1; i <= keys; i++) {
        lua_rawgeti(L, mt, i);
        lua_pushvalue(L, -1);
        if (lua_rawget(L, mt + 1) == LUA_TNIL) {
            lua_pushvalue(L, -2);
            lua_rawseti(L, mt, ++n);
            lua_pushvalue(L, -2);
            lua_pushboolean(L, 1);
            lua_rawset(L, mt + 1);
        }
        lua_settop(L, mt + 1);
    }
    for (uint32_t i = keys; i > n; i--) {
        lua_pushnil(L);
        lua_rawseti(L, mt, i);
    }
    lua_settop(L, mt);
}

/* Pushes the metatable that objects of a few keys have, wherever they come from. */
static bool push_common(struct builder *b, uint32_t shape)
{
    lua_State *L = b->L;
    const struct shape *list = b->shapes;
    size_t keys[MAX_COMMON];
    uint32_t n = list[shape].keys;
    if (n > MAX_COMMON)
        return false;
    for (uint32_t at = shape, i = n; i > 0; i--, at = list[at].parent)
        keys[i - 1] = list[at].key;
    abl_json_push_shape(L);
    for (uint32_t i = 0; i < n; i++) {
        push_text(b, &b->doc->nodes[keys[i]]);
        lua_insert(L, -2);
        bool ok = abl_json_next_shape(L, -2);
        lua_remove(L, -2);
        if (!ok) {
            lua_pop(L, 1);
            return false;
        }
    }
    return true;
}

/* Keeps the metatable on top for the other objects of its shape. */
static void share_metatable(struct builder *b, uint32_t shape)
{
    lua_State *L = b->L;
    if (lua_isnil(L, b->metatables)) {
        lua_newtable(L);
        lua_replace(L, b->metatables);
    }
    lua_pushvalue(L, -1);
    lua_rawseti(L, b->metatables, shape);
    b->shapes[shape].shared = true;
}

/* Gives the object on top the metatable of its shape. */
static void set_shape(struct builder *b, uint32_t shape)
{
    lua_State *L = b->L;
    struct shape *list = b->shapes;
    if (list[shape].shared) {
        lua_rawgeti(L, b->metatables, shape);
        lua_setmetatable(L, -2);
        return;
    }
    uint32_t keys = list[shape].keys;
    if (!push_common(b, shape)) {
        abl_json_push_object_mt(L, (int)keys);
        for (uint32_t at = shape, i = keys; i > 0; i--, at = list[at].parent) {
            push_text(b, &b->doc->nodes[list[at].key]);
            lua_rawseti(L, -2, i);
        }
        drop_repeats(b, keys);
    }
    if (list[shape].seen)
        share_metatable(b, shape);
    list[shape].seen = true;
    lua_setmetatable(L, -2);
}

static void push_value(struct builder *b);

static void push_object(struct builder *b, uint32_t members)
{
    lua_State *L = b->L;
    uint32_t shape = 0;
    lua_createtable(L, 0, (int)members);
    for (uint32_t i = 0; i < members; i++) {
        push_text(b, &b->doc->nodes[b->next]);
        shape = extend(b, shape, b->next);
        b->next++;
        push_value(b);
        lua_rawset(L, -3);
    }
    set_shape(b, shape);
}

static void push_array(struct builder *b, uint32_t elements)
{
    lua_State *L = b->L;
    lua_createtable(L, (int)elements, 0);
    for (uint32_t i = 1; i <= elements; i++) {
        push_value(b);
        lua_rawseti(L, -2, i);
    }
    abl_json_mark_array(L, -1);
}

/* Recursion is bounded by AB_JSON_MAX_DEPTH. */
static void push_value(struct builder *b)
{
    lua_State *L = b->L;
    const struct ab_json_node *node = &b->doc->nodes[b->next++];
    switch ((enum ab_json_kind)node->kind) {
    case AB_JSON_NULL:
        abl_json_push_null(L);
        break;
    case AB_JSON_FALSE:
    case AB_JSON_TRUE:
        lua_pushboolean(L, node->kind == AB_JSON_TRUE);
        break;
    case AB_JSON_INT:
        lua_pushinteger(L, node->integer);
        break;
    case AB_JSON_FLOAT:
        lua_pushnumber(L, node->number);
        break;
    case AB_JSON_NUMBER:
        abl_json_push_number(L, ab_json_text(b->doc, node), node->len);
        break;
    case AB_JSON_STRING:
        push_text(b, node);
        break;
    case AB_JSON_RAW:
        abl_json_push_raw(L, b->src, ab_json_text(b->doc, node), node->len);
        break;
    case AB_JSON_ARRAY:
        luaL_checkstack(L, 10, "JSON nesting");
        push_array(b, node->len);
        break;
    case AB_JSON_OBJECT:
        luaL_checkstack(L, 10, "JSON nesting");
        push_object(b, node->len);
        break;
    }
}

void abl_json_register_push(lua_State *L)
{
    luaL_newmetatable(L, SHAPES_TYPE);
    lua_pushcfunction(L, l_shapes_gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
}

void abl_json_push(lua_State *L, int idx, int src_idx)
{
    struct builder b;
    b.L = L;
    b.src = lua_absindex(L, src_idx);
    b.doc = lua_touserdata(L, idx);
    b.next = 0;
    b.shapes = b.few;
    b.count = 0;
    b.cap = FEW_SHAPES;
    luaL_checkstack(L, 10, "JSON");
    lua_pushnil(L);
    lua_pushnil(L);
    b.metatables = lua_gettop(L);
    b.owner = b.metatables - 1;
    add_shape(&b, 0, 0);
    push_value(&b);
    struct shape **owned = lua_touserdata(L, b.owner);
    if (owned) {
        free(*owned);
        *owned = NULL;
    }
    lua_replace(L, b.owner);
    lua_settop(L, b.owner);
}
