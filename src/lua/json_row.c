#include "lua/json_row.h"

#include "lua/buffer.h"
#include "lua/conv.h"
#include "lua/json_encode.h"
#include "lua/json_raw.h"

enum { MAX_BYTES = 1 << 30 };

static const struct abl_json_format plain = {.max_bytes = MAX_BYTES};

enum step_kind {
    MEMBER, /* of a value that is given */
    FIXED,  /* with its text */
    OPEN,   /* an object inside: its members follow */
    CLOSE,
};

struct step {
    enum step_kind kind;
    uint32_t at, len; /* of `,"name":`, and of a fixed text, in the upvalue's bytes */
    bool text;        /* its strings are JSON text */
};

struct abl_json_row {
    int steps, count; /* count: of values */
    bool nulls;       /* a nil is written as null, not left out */
    struct step step[ABL_JSON_STEPS];
};

int abl_json_row_values(const struct abl_json_row *row)
{
    return row->count;
}

/* Most values are texts, names and small numbers: those go without an encoder. */
void abl_json_put_value(lua_State *L, int idx, bool text, struct ab_buf *out)
{
    struct ab_err err;
    size_t len;
    if (lua_type(L, idx) == LUA_TSTRING) {
        const char *s = lua_tolstring(L, idx, &len);
        if (text)
            ab_buf_put(out, s, len);
        else if (ab_json_put_string(out, s, len, plain.style) < 0)
            AB_BUG("bytes are replaced, not refused");
    } else if (lua_isinteger(L, idx)) {
        ab_json_put_integer(out, lua_tointeger(L, idx));
    } else if (lua_isuserdata(L, idx) && abl_json_write_later(L, idx, out)) {
        return;
    } else if (abl_json_encode(L, idx, &plain, out, &err) < 0) {
        abl_push_errvalue(L, &err, "json.row");
        lua_error(L);
    }
}

/* The name of a step; no value ends with an opening brace, so that what is behind one is
 * the first member. */
static void put_name(const struct step *step, const char *names, struct ab_buf *out)
{
    uint32_t comma = out->data[out->len - 1] == '{';
    ab_buf_put(out, names + step->at + comma, step->len - comma);
}

void abl_json_put_row(lua_State *L, const struct abl_json_row *row, const char *names,
                      int first, const struct ab_json_slice *slices, struct ab_buf *out)
{
    int i = -1;
    ab_buf_putc(out, '{');
    for (const struct step *step = row->step; step < row->step + row->steps; step++) {
        if (step->kind == CLOSE) {
            ab_buf_putc(out, '}');
            continue;
        }
        bool value = step->kind == MEMBER;
        i += value;
        bool slice = value && slices && slices[i].s;
        bool nil = value && !slice && lua_isnil(L, first + i);
        if (nil && !row->nulls)
            continue;
        put_name(step, names, out);
        if (step->kind == OPEN)
            ab_buf_putc(out, '{');
        else if (nil)
            ab_buf_put(out, "null", 4);
        else if (slice)
            ab_buf_put(out, slices[i].s, slices[i].len);
        else if (value)
            abl_json_put_value(L, first + i, step->text, out);
    }
    ab_buf_putc(out, '}');
}

static struct step *add_step(lua_State *L, struct abl_json_row *row, enum step_kind kind)
{
    luaL_argcheck(L, row->steps < ABL_JSON_STEPS, 1, "too many names");
    struct step *step = &row->step[row->steps++];
    *step = (struct step){.kind = kind};
    return step;
}

/* The name on top; pops it. */
static void add_name(lua_State *L, struct step *step, struct ab_buf *bytes)
{
    size_t len;
    luaL_argcheck(L, lua_type(L, -1) == LUA_TSTRING, 1, "a list of names expected");
    const char *s = lua_tolstring(L, -1, &len);
    step->at = (uint32_t)bytes->len;
    ab_buf_putc(bytes, ',');
    if (ab_json_put_string(bytes, s, len, 0) < 0)
        AB_BUG("bytes are replaced, not refused");
    ab_buf_putc(bytes, ':');
    step->len = (uint32_t)bytes->len - step->at;
    lua_pop(L, 1);
}

static void add_names(lua_State *L, int list, struct abl_json_row *row,
                      struct ab_buf *bytes);

/* { name, names } or { name, text }, on top; pops it. */
static void add_pair(lua_State *L, struct abl_json_row *row, struct ab_buf *bytes)
{
    int pair = lua_gettop(L);
    struct step *step = add_step(L, row, OPEN);
    lua_rawgeti(L, pair, 1);
    add_name(L, step, bytes);
    if (lua_rawgeti(L, pair, 2) == LUA_TTABLE) {
        add_names(L, pair + 1, row, bytes);
        add_step(L, row, CLOSE);
    } else {
        size_t len;
        const char *s = luaL_checklstring(L, -1, &len);
        ab_buf_put(bytes, s, len);
        step->kind = FIXED;
        step->len += (uint32_t)len;
    }
    lua_settop(L, pair - 1);
}

static void add_names(lua_State *L, int list, struct abl_json_row *row,
                      struct ab_buf *bytes)
{
    lua_Integer n = (lua_Integer)lua_rawlen(L, list);
    luaL_argcheck(L, n > 0, 1, "a list of names expected");
    luaL_checkstack(L, 8, "names");
    for (lua_Integer i = 1; i <= n; i++) {
        if (lua_rawgeti(L, list, i) == LUA_TTABLE) {
            add_pair(L, row, bytes);
            continue;
        }
        struct step *step = add_step(L, row, MEMBER);
        row->count++;
        if (lua_istable(L, 2)) {
            lua_pushvalue(L, -1);
            lua_rawget(L, 2);
            step->text = lua_toboolean(L, -1);
            lua_pop(L, 1);
        }
        add_name(L, step, bytes);
    }
}

const struct abl_json_row *abl_json_push_row(lua_State *L, bool nulls)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    struct abl_json_row *row = lua_newuserdatauv(L, sizeof *row, 0);
    *row = (struct abl_json_row){.nulls = nulls};
    struct ab_buf *bytes = abl_take_buf(L);
    int buf = lua_gettop(L);
    add_names(L, 1, row, bytes);
    lua_pushlstring(L, bytes->data, bytes->len);
    abl_return_buf(L, buf);
    lua_remove(L, buf);
    return row;
}
