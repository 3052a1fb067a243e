/* json_amend.h - JSON objects with other values for some of their members. */
#ifndef AB_LUA_JSON_AMEND_H
#define AB_LUA_JSON_AMEND_H

#include <lua.h>

/* amend(first, others) -> amend(object, text, ...) -> the object with these JSON texts
 * for the members of these names, in the order of `first` and then of `others`; a nil
 * gives none. Those in `first` lead, and the object's own values of them are left out.
 * The object's own members follow as they are, or with the text for their name; what of
 * `others` it does not have comes behind them. Of repeated keys the last wins, in the
 * place of the first. The object is valid JSON text; the texts are not checked. */
int abl_json_amend(lua_State *L);

#endif
