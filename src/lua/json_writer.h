/* json_writer.h - writers: functions of Lua that write JSON text, whoever it is for.
 *
 * Called from Lua a writer returns its text, as a string. later() makes a raw value of a
 * call that has not been made: the encoder that comes to it makes it then, and the text
 * goes straight into the encoder's own buffer. So what is put together of parts, which
 * are put together of parts, is copied once.
 *
 *     int l_put(lua_State *L)                       // put(a, b)
 *     {
 *         struct ab_buf *out = abl_json_begin(L, 3);
 *         ab_buf_putc(out, ...);
 *         return abl_json_end(L, 3, out);
 *     }
 */
#ifndef AB_LUA_JSON_WRITER_H
#define AB_LUA_JSON_WRITER_H

#include <lua.h>

#include "base/buf.h"

/* Cuts the arguments, or adds nil, so that there are those below idx, where the buffer is
 * put that is to be written to: the encoder's, which came as a light userdatum behind the
 * arguments, or one of its own. */
struct ab_buf *abl_json_begin(lua_State *L, int idx);

/* What the writer returns. */
int abl_json_end(lua_State *L, int idx, const struct ab_buf *out);

/* later(writer, ...) -> Raw. What it is called with must stay as it is until then. */
int abl_json_later(lua_State *L);

/* Writers. joined(texts [, between [, before [, behind]]]) -> the texts, one behind the
 * other; all of them text of ours, not checked. */
int abl_json_joined(lua_State *L);

#endif
