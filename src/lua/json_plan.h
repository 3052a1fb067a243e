/* json_plan.h - which parts of the objects of a list are looked for, shared by what makes
 * columns of them. Its users know valid text only, as json_slice.h says. */
#ifndef AB_LUA_JSON_PLAN_H
#define AB_LUA_JSON_PLAN_H

#include <lua.h>

#include "base/buf.h"
#include "base/json_slice.h"

enum { ABL_JSON_FIELDS = 40, ABL_JSON_HASHES = 32 };

/* One step of a path. Steps with the same beginning share it: a tree, whose objects are
 * numbered, 0 for the one that is looked at. */
struct abl_json_field {
    const char *name; /* borrowed from the string in the upvalue */
    size_t len;
    int object;  /* that it is a member of */
    int inside;  /* the object that it is, when members of it are wanted; else -1 */
    int column;  /* or -1 */
    int element; /* of a list, from 1; 0 for a member */
    int next;    /* with the same hash, or -1 */
};

struct abl_json_plan {
    int fields, objects, columns;
    /* of an object: its fields are [first, next one's first) */
    int first[ABL_JSON_FIELDS + 2];
    bool elements[ABL_JSON_FIELDS + 1]; /* of an object: whether it may be a list */
    /* of an object and a hash: the first field, or -1 */
    signed char at[ABL_JSON_FIELDS + 1][ABL_JSON_HASHES];
    char mark[ABL_JSON_FIELDS]; /* of a column: what stood before its path, or 0 */
    struct abl_json_field field[ABL_JSON_FIELDS];
};

/* Pushes the plan of the list of names at 1, the only value on the stack, and what keeps
 * its names alive. */
void abl_json_push_plan(lua_State *L);

/* Looks at every element of the list at 1, JSON text or a Lua list of JSON texts: appends
 * a slice for each of its columns to found, empty where there is nothing. How many
 * elements there were; -1 when one is no object, or it is no list. */
lua_Integer abl_json_take_all(lua_State *L, const struct abl_json_plan *plan,
                              struct ab_buf *found);
lua_Integer abl_json_take_list(struct ab_json_slice list,
                               const struct abl_json_plan *plan, struct ab_buf *found);

/* The same for the one object, or list, that the walk is at: fills in what is found.
 * False when it is none. */
bool abl_json_look(const struct abl_json_plan *plan, struct ab_json_walk *walk,
                   struct ab_json_slice *found);

/* The JSON text at idx, a string or a raw value; empty, with NULL, when it is neither. */
struct ab_json_slice abl_json_text_at(lua_State *L, int idx);
struct ab_json_walk abl_json_walk(struct ab_json_slice text);

/* Pushes what was found as the Lua value that its mark says. */
void abl_json_push_found(lua_State *L, struct ab_json_slice text, char mark,
                         struct ab_buf *scratch);

#endif
