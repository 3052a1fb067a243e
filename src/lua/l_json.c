/* l_json.c - agentbox.sys.json */
#include <limits.h>
#include <string.h>

#include "lua/buffer.h"
#include "lua/conv.h"
#include "lua/json_amend.h"
#include "lua/json_column.h"
#include "lua/json_encode.h"
#include "lua/json_layout.h"
#include "lua/json_raw.h"
#include "lua/json_rows.h"
#include "lua/json_shape.h"
#include "lua/json_sheet.h"
#include "lua/json_slice.h"
#include "lua/json_texts.h"
#include "lua/json_value.h"
#include "lua/json_writer.h"

int luaopen_agentbox_sys_json(lua_State *L);

#define MAX_TEXT_BYTES (1u << 30)
#define MAX_INDENT     16

/* Replaces the text at 1 by its repaired form. Returns whether anything was repaired. */
static bool repair_text(lua_State *L)
{
    size_t len;
    const char *text = lua_tolstring(L, 1, &len);
    struct ab_buf *buf = abl_push_buf(L);
    size_t fixes = ab_json_repair(buf, text, len);
    if (fixes > 0) {
        lua_pushlstring(L, buf->data, buf->len);
        lua_replace(L, 1);
    }
    ab_buf_fini(buf);
    lua_pop(L, 1);
    return fixes > 0;
}

/* decode(text [, opts]) -> value [, repaired] | nil, err */
static int l_decode(lua_State *L)
{
    static const char *const allowed[] = {"raw", "repair", NULL};
    struct ab_json_name names[ABL_JSON_RAW_NAMES];
    struct ab_json_opts opts = {.raw = names};
    struct ab_err err;
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    abl_check_keys(L, 2, allowed);
    lua_settop(L, 2);
    bool repair = abl_opt_boolean(L, 2, "repair", false), repaired = false;
    opts.raw_count = abl_json_read_names(L, 2, names);
    struct ab_json *doc = abl_json_take(L);
    int parser = lua_gettop(L);
    int rc = ab_json_parse(doc, text, len, &opts, &err);
    if (rc < 0 && repair && repair_text(L)) {
        repaired = true;
        text = lua_tolstring(L, 1, &len);
        rc = ab_json_parse(doc, text, len, &opts, &err);
    }
    if (rc < 0) {
        abl_json_return(L, parser);
        return abl_push_err(L, &err, "json.decode");
    }
    abl_json_push(L, parser, 1);
    abl_json_return(L, parser);
    lua_pushboolean(L, repaired);
    return repair ? 2 : (lua_pop(L, 1), 1);
}

static void read_format(lua_State *L, int idx, struct abl_json_format *format)
{
    static const char *const allowed[] = {"indent",    "ascii",     "sorted", "utf8",
                                          "nonfinite", "max_bytes", NULL};
    *format = (struct abl_json_format){.max_bytes = MAX_TEXT_BYTES};
    if (lua_isnil(L, idx))
        return;
    abl_check_keys(L, idx, allowed);
    lua_Integer indent = abl_opt_integer(L, idx, "indent", 0);
    luaL_argcheck(L, indent >= 0 && indent <= MAX_INDENT, idx,
                  "option 'indent': 0 to 16");
    lua_Integer max = abl_opt_integer(L, idx, "max_bytes", MAX_TEXT_BYTES);
    luaL_argcheck(L, max > 0, idx, "option 'max_bytes': must be positive");
    const char *utf8 = abl_opt_string(L, idx, "utf8", "replace");
    bool strict = strcmp(utf8, "error") == 0;
    luaL_argcheck(L, strict || strcmp(utf8, "replace") == 0, idx,
                  "option 'utf8': \"replace\" or \"error\"");
    const char *nonfinite = abl_opt_string(L, idx, "nonfinite", "error");
    bool null = strcmp(nonfinite, "null") == 0;
    luaL_argcheck(L, null || strcmp(nonfinite, "error") == 0, idx,
                  "option 'nonfinite': \"null\" or \"error\"");
    *format = (struct abl_json_format){
        .style = (strict ? AB_JSON_STRICT : 0u) |
                 (abl_opt_boolean(L, idx, "ascii", false) ? AB_JSON_ASCII : 0u),
        .indent = (int)indent,
        .sorted = abl_opt_boolean(L, idx, "sorted", false),
        .nonfinite_null = null,
        .max_bytes = (size_t)max,
    };
}

/* encode(value [, opts]) -> text. Raises an error value when JSON cannot say it. */
static int l_encode(lua_State *L)
{
    struct abl_json_format format;
    struct ab_err err;
    luaL_checkany(L, 1);
    lua_settop(L, 2);
    read_format(L, 2, &format);
    struct ab_buf *out = abl_take_buf(L);
    if (abl_json_encode(L, 1, &format, out, &err) < 0) {
        abl_return_buf(L, 3);
        abl_push_errvalue(L, &err, "json.encode");
        return lua_error(L);
    }
    lua_pushlstring(L, out->data, out->len);
    abl_return_buf(L, 3);
    return 1;
}

/* encode_clean(value) -> text, or nil when JSON cannot say it or bytes are not UTF-8 */
static int l_encode_clean(lua_State *L)
{
    static const struct abl_json_format strict = {.style = AB_JSON_STRICT,
                                                  .max_bytes = MAX_TEXT_BYTES};
    struct ab_err err;
    luaL_checkany(L, 1);
    lua_settop(L, 1);
    struct ab_buf *out = abl_take_buf(L);
    if (abl_json_encode(L, 1, &strict, out, &err) < 0)
        lua_pushnil(L);
    else
        lua_pushlstring(L, out->data, out->len);
    abl_return_buf(L, 2);
    return 1;
}

/* array([t]) -> t, marked as an array */
static int l_array(lua_State *L)
{
    lua_settop(L, 1);
    if (lua_isnil(L, 1)) {
        lua_newtable(L);
        lua_replace(L, 1);
    }
    luaL_checktype(L, 1, LUA_TTABLE);
    abl_json_mark_array(L, 1);
    return 1;
}

/* object([t [, first]]) -> t, marked as an object: keys in `first` first, then the others
 */
static int l_object(lua_State *L)
{
    lua_settop(L, 2);
    if (lua_isnil(L, 1)) {
        lua_newtable(L);
        lua_replace(L, 1);
    }
    luaL_checktype(L, 1, LUA_TTABLE);
    bool ordered = !lua_isnil(L, 2);
    if (ordered)
        luaL_checktype(L, 2, LUA_TTABLE);
    if (ordered || abl_json_type(L, 1) != ABL_JSON_OBJECT)
        abl_json_mark_object(L, 1, ordered ? 2 : 0);
    lua_settop(L, 1);
    return 1;
}

static int l_is_array(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_pushboolean(L, abl_json_type(L, 1) == ABL_JSON_ARRAY);
    return 1;
}

static int l_is_object(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_pushboolean(L, abl_json_type(L, 1) == ABL_JSON_OBJECT);
    return 1;
}

/* keys(t) -> list of keys, in order */
static int l_keys(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    if (abl_json_push_keys(L, 1, false) < 0)
        return luaL_argerror(L, 1, "an object's keys must be strings");
    abl_json_mark_array(L, -1);
    return 1;
}

/* Whether argument 1 is one JSON text; its nodes are in *doc, to be returned. */
static bool is_text(lua_State *L, struct ab_json **doc, struct ab_err *err)
{
    size_t len;
    struct ab_json_opts opts = {.raw_root = true};
    const char *text = luaL_checklstring(L, 1, &len);
    lua_settop(L, 1);
    *doc = abl_json_take(L);
    return ab_json_parse(*doc, text, len, &opts, err) == 0;
}

/* raw(text) -> Raw | nil, err: text that encode copies as it is */
static int l_raw(lua_State *L)
{
    struct ab_err err;
    struct ab_json *doc;
    bool good = is_text(L, &doc, &err);
    if (good)
        abl_json_push_raw(L, 1, ab_json_text(doc, doc->nodes), doc->nodes[0].len);
    abl_json_return(L, 2);
    return good ? 1 : abl_push_err(L, &err, "json.raw");
}

/* valid(text) -> whether it is one JSON text */
static int l_valid(lua_State *L)
{
    struct ab_err err;
    struct ab_json *doc;
    lua_pushboolean(L, is_text(L, &doc, &err));
    abl_json_return(L, 2);
    return 1;
}

/* trusted(text) -> Raw: text that our own encoder made, on trust */
static int l_trusted(lua_State *L)
{
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    abl_json_push_raw(L, 1, text, len);
    return 1;
}

/* type(v) -> "null", "array", "object", "number" (a boxed one), "raw", or nil */
static int l_type(lua_State *L)
{
    static const char *const names[] = {
        [ABL_JSON_OTHER] = NULL,      [ABL_JSON_NULL] = "null",
        [ABL_JSON_ARRAY] = "array",   [ABL_JSON_OBJECT] = "object",
        [ABL_JSON_NUMBER] = "number", [ABL_JSON_RAW] = "raw",
    };
    luaL_checkany(L, 1);
    lua_pushstring(L, names[abl_json_type(L, 1)]);
    return 1;
}

int luaopen_agentbox_sys_json(lua_State *L)
{
    static const luaL_Reg lib[] = {
        {"decode", l_decode},
        {"encode", l_encode},
        {"encode_clean", l_encode_clean},
        {"array", l_array},
        {"object", l_object},
        {"is_array", l_is_array},
        {"is_object", l_is_object},
        {"keys", l_keys},
        {"raw", l_raw},
        {"valid", l_valid},
        {"lay_out", abl_json_lay_out},
        {"trusted", l_trusted},
        {"type", l_type},
        {"column", abl_json_column},
        {"shape", abl_json_shape},
        {"row", abl_json_row},
        {"rows", abl_json_rows},
        {"list", abl_json_list},
        {"later", abl_json_later},
        {"joined", abl_json_joined},
        {"recast", abl_json_recast},
        {"sheet", abl_json_sheet},
        {"again", abl_json_again},
        {"cells", abl_json_cells},
        {"amend", abl_json_amend},
        {"member", abl_json_member},
        {"tuple", abl_json_tuple},
        {"texts", abl_json_texts},
        {"split", abl_json_split},
        {"pick", abl_json_pick},
        {"entries", abl_json_entries},
        {"elements", abl_json_elements},
        {NULL, NULL},
    };
    abl_json_register(L);
    lua_pushcfunction(L, l_decode);
    abl_json_register_texts(L);
    abl_json_register_sheet(L);
    luaL_newlib(L, lib);
    abl_json_push_null(L);
    lua_setfield(L, -2, "null");
    return 1;
}
