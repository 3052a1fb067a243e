/* json_encode.h - Lua values to JSON text. */
#ifndef AB_LUA_JSON_ENCODE_H
#define AB_LUA_JSON_ENCODE_H

#include "lua/json_value.h"

/* Takes what has come together in out, when it is much, so that no value has to be in
 * memory as a whole. */
struct abl_json_drain {
    int (*take)(struct abl_json_drain *drain, struct ab_buf *out, struct ab_err *err);
    size_t taken; /* bytes of the value; 0 before it */
};

struct abl_json_format {
    unsigned style; /* enum ab_json_style */
    int indent;     /* spaces a level, 0 for one line without spaces */
    bool sorted;    /* also the keys of objects that know an order */
    bool nonfinite_null;
    bool keeps_space; /* of raw text, for who lays the text out: line feeds, too */
    size_t max_bytes;
    struct abl_json_drain *drain; /* or NULL */
};

/* Appends the value at idx to out, but for what was drained. out must be anchored: Lua
 * may run out of memory and raise. -1 with AB_EBADARG for what JSON cannot say,
 * AB_ETOOBIG, with the path to the culprit. */
int abl_json_encode(lua_State *L, int idx, const struct abl_json_format *format,
                    struct ab_buf *out, struct ab_err *err) AB_MUST_CHECK;

#endif
