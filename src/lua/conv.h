/* conv.h - errors and option tables between C and Lua. */
#ifndef AB_LUA_CONV_H
#define AB_LUA_CONV_H

#include "base/err.h"
#include "lua/fiber.h"

/* Registers the metatable of error values. Call once per state, before anything fails. */
void abl_conv_register(lua_State *L);

/* Pushes nil and the error table { code, msg, op, sys, where }; gives 2, so that
 *     return abl_push_err(L, &err, "fs.read");
 * is the whole failure path of a binding. op may be NULL. where is the innermost line
 * that is not of the built-in library. */
int abl_push_err(lua_State *L, const struct ab_err *err, const char *op);

/* Pushes only the error table. */
void abl_push_errvalue(lua_State *L, const struct ab_err *err, const char *op);

/* Pushes the error value of a script that raised something else: code `defect`, the text
 * at idx. */
void abl_push_defect(lua_State *L, int idx);

bool abl_is_err(lua_State *L, int idx);

/* True when the value at idx is an error value whose `cancel` is true: pcall lets it
 * through. */
bool abl_is_cancel(lua_State *L, int idx);

/* Reads member `key` of the options table at idx; `def` when idx is none or nil or the
 * member is nil. Raises "option 'key': number expected, got string" on a wrong type. A
 * returned string is borrowed from the table. */
lua_Integer abl_opt_integer(lua_State *L, int idx, const char *key, lua_Integer def);
lua_Number abl_opt_number(lua_State *L, int idx, const char *key, lua_Number def);
const char *abl_opt_string(lua_State *L, int idx, const char *key, const char *def);
bool abl_opt_boolean(lua_State *L, int idx, const char *key, bool def);

/* Raises unless idx is none, nil, or a table whose keys are all in the NULL-terminated
 * list. */
void abl_check_keys(lua_State *L, int idx, const char *const allowed[]);

/* Pushes the value at idx as a text that may be logged: secrets that the library knows
 * are replaced. Borrowed from the stack. */
const char *abl_tolog(lua_State *L, int idx);

/* Checks that argument arg is a path: a non-empty string without NUL. Borrowed. A path
 * that is none came from outside, a command line or a file, and raises an error value
 * (badarg), which says so to whoever named it. */
const char *abl_check_path(lua_State *L, int arg);

#endif
