/* pattern.c - the pattern functions of `string`, and agentbox.sys.re */
#include "lua/pattern.h"

#include <stdalign.h>
#include <string.h>

#include "base/pattern.h"
#include "lua/conv.h"
#include "lua/slice.h"

int luaopen_agentbox_sys_re(lua_State *L);

/* One pass over the subject is not what the budget is for. */
#define STEPS_PER_BYTE 32

/* After so many a match asks whether others are to have a turn: some ten milliseconds. */
#define STEPS_PER_SLICE 400000

/* Patterns of up to some fifty bytes are compiled on the C stack. */
#define LOCAL_BYTES 4096

struct call {
    struct ab_match m;
    const char *pattern; /* without the anchor */
    size_t pattern_len;
    bool anchored;
    struct ab_pattern *compiled; /* borrowed: in memory that lives as long as the call */
};

struct local {
    alignas(max_align_t) char bytes[LOCAL_BYTES];
};

static void next_slice(struct call *c)
{
    c->m.pause_at = c->m.budget > STEPS_PER_SLICE ? c->m.budget - STEPS_PER_SLICE : 0;
}

/* The subject is set. */
static void set_pattern(lua_State *L, struct call *c, const char *pattern, size_t len,
                        bool may_anchor)
{
    c->m.budget =
        lua_tointeger(L, lua_upvalueindex(1)) + STEPS_PER_BYTE * (int64_t)c->m.len;
    c->m.paused = false;
    next_slice(c);
    c->anchored = may_anchor && len > 0 && *pattern == '^';
    c->pattern = pattern + c->anchored;
    c->pattern_len = len - c->anchored;
}

/* Pushes at most one value, the memory of a long pattern. */
static void compile(lua_State *L, struct call *c, struct local *local)
{
    size_t size = ab_pattern_size(c->pattern_len);
    void *mem = size > sizeof *local ? lua_newuserdatauv(L, size, 0) : local;
    c->compiled = ab_pattern_compile(mem, c->pattern, c->pattern_len);
}

static int fail(lua_State *L, const struct call *c, const struct ab_err *err)
{
    struct ab_err full = *err;
    if (err->code != AB_ELIMIT)
        return luaL_error(L, "%s", err->msg);
    ab_err_set(&full, AB_ELIMIT, "pattern too costly ('%.*s' on %zu bytes)",
               (int)(c->pattern_len < 60 ? c->pattern_len : 60), c->pattern, c->m.len);
    abl_push_errvalue(L, &full, NULL);
    return lua_error(L);
}

/* 1, 0 as in base/pattern.h, or AB_PATTERN_PAUSED when the caller is to leave. */
static int run(lua_State *L, struct call *c, size_t *s, size_t *e)
{
    for (;;) {
        struct ab_err err;
        int rc = c->anchored ? ab_pattern_match(c->compiled, &c->m, *s, e, &err)
                             : ab_pattern_search(c->compiled, &c->m, s, e, &err);
        if (rc < 0)
            fail(L, c, &err);
        if (rc != AB_PATTERN_PAUSED)
            return rc;
        next_slice(c);
        if (abl_slice_due(L))
            return rc;
    }
}

/* The part of a call that goes on after a slice, in memory that outlives the C stack. */
static void keep(struct call *to, const struct call *from, void *memory)
{
    *to = *from;
    to->compiled = ab_pattern_move(memory, from->compiled, from->pattern_len);
}

/* Where a search that begins at the 1-based, perhaps negative position starts, from 0;
 * may be beyond the end. */
static size_t start_of(lua_State *L, int arg, size_t len)
{
    lua_Integer pos = luaL_optinteger(L, arg, 1);
    if (pos > 0)
        return (size_t)pos - 1;
    if (pos == 0 || pos < -(lua_Integer)len)
        return 0;
    return len - (size_t)-pos;
}

/* ---- captures ---- */

/* The text of capture i of a match that covers [s, e). 1: pushed instead, a position. */
static int get_capture(lua_State *L, const struct ab_match *m, int i, size_t s, size_t e,
                       const char **text, size_t *len)
{
    if (i >= m->level) {
        if (i != 0)
            luaL_error(L, "invalid capture index %%%d", i + 1);
        *text = m->subject + s;
        *len = e - s;
        return 0;
    }
    const struct ab_capture *c = &m->captures[i];
    if (c->len == AB_CAPTURE_OPEN)
        luaL_error(L, "unfinished capture");
    if (c->len == AB_CAPTURE_POSITION) {
        lua_pushinteger(L, (lua_Integer)c->start + 1);
        return 1;
    }
    *text = m->subject + c->start;
    *len = (size_t)c->len;
    return 0;
}

static void push_capture(lua_State *L, const struct ab_match *m, int i, size_t s,
                         size_t e)
{
    const char *text;
    size_t len;
    if (!get_capture(L, m, i, s, e, &text, &len))
        lua_pushlstring(L, text, len);
}

/* All captures; the whole match when there are none and `whole` is set. */
static int push_captures(lua_State *L, const struct ab_match *m, bool whole, size_t s,
                         size_t e)
{
    int n = m->level == 0 && whole ? 1 : m->level;
    luaL_checkstack(L, n, "too many captures");
    for (int i = 0; i < n; i++)
        push_capture(L, m, i, s, e);
    return n;
}

/* ---- find and match ---- */

static bool has_specials(const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (p[i] && strchr("^$*+?.([%-", p[i]))
            return true;
    }
    return false;
}

static int push_plain(lua_State *L, const char *s, size_t len, const char *p, size_t plen,
                      size_t start)
{
    const char *hit = plen ? memmem(s + start, len - start, p, plen) : s + start;
    if (!hit) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushinteger(L, hit - s + 1);
    lua_pushinteger(L, hit - s + (lua_Integer)plen);
    return 2;
}

struct found {
    struct call c;
    size_t at;
    alignas(void *) char memory[]; /* of the pattern; a userdata is aligned no better */
};

static int find_more(lua_State *L, int status, lua_KContext positions);

/* Leaves; the state is on top of the stack then. */
static int find_later(lua_State *L, const struct call *c, size_t at, bool positions)
{
    struct found *f =
        lua_newuserdatauv(L, sizeof *f + ab_pattern_size(c->pattern_len), 0);
    keep(&f->c, c, f->memory);
    f->at = at;
    return abl_slice_leave(L, positions, find_more);
}

static int push_found(lua_State *L, const struct call *c, int rc, size_t s, size_t e,
                      bool positions)
{
    if (rc == 0) {
        lua_pushnil(L);
        return 1;
    }
    if (!positions)
        return push_captures(L, &c->m, true, s, e);
    lua_pushinteger(L, (lua_Integer)s + 1);
    lua_pushinteger(L, (lua_Integer)e);
    return push_captures(L, &c->m, false, s, e) + 2;
}

static int find_more(lua_State *L, int status, lua_KContext positions)
{
    struct found *f = lua_touserdata(L, -1);
    size_t e;
    (void)status;
    int rc = run(L, &f->c, &f->at, &e);
    if (rc == AB_PATTERN_PAUSED)
        return abl_slice_leave(L, positions, find_more);
    return push_found(L, &f->c, rc, f->at, e, positions);
}

static int find(lua_State *L, bool positions)
{
    struct call c;
    struct local local;
    size_t plen, s, e;
    c.m.subject = luaL_checklstring(L, 1, &c.m.len);
    const char *p = luaL_checklstring(L, 2, &plen);
    s = start_of(L, 3, c.m.len);
    if (s > c.m.len) {
        lua_pushnil(L);
        return 1;
    }
    if (positions && (lua_toboolean(L, 4) || !has_specials(p, plen)))
        return push_plain(L, c.m.subject, c.m.len, p, plen, s);
    set_pattern(L, &c, p, plen, true);
    compile(L, &c, &local);
    int rc = run(L, &c, &s, &e);
    if (rc == AB_PATTERN_PAUSED)
        return find_later(L, &c, s, positions);
    return push_found(L, &c, rc, s, e, positions);
}

static int l_find(lua_State *L)
{
    return find(L, true);
}

static int l_match(lua_State *L)
{
    return find(L, false);
}

/* ---- gmatch ---- */

struct gmatch {
    struct call c;
    size_t at;   /* where the next search begins; beyond the subject when it is over */
    size_t last; /* where the last match ended, or SIZE_MAX */
    alignas(void *) char memory[];
};

static int gmatch_more(lua_State *L, int status, lua_KContext ctx);

/* upvalues: the state; subject and pattern, kept alive */
static int l_gmatch_next(lua_State *L)
{
    struct gmatch *g = lua_touserdata(L, lua_upvalueindex(1));
    size_t s = g->at, e;
    for (; s <= g->c.m.len; s++) {
        int rc = run(L, &g->c, &s, &e);
        g->at = s;
        if (rc == AB_PATTERN_PAUSED)
            return abl_slice_leave(L, 0, gmatch_more);
        if (rc == 0)
            break;
        if (e == g->last)
            continue; /* an empty match right after the last one */
        g->at = g->last = e;
        return push_captures(L, &g->c.m, true, s, e);
    }
    g->at = g->c.m.len + 1;
    return 0;
}

static int gmatch_more(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    (void)ctx;
    return l_gmatch_next(L);
}

static int l_gmatch(lua_State *L)
{
    size_t len, plen;
    const char *s = luaL_checklstring(L, 1, &len);
    const char *p = luaL_checklstring(L, 2, &plen);
    size_t start = start_of(L, 3, len);
    lua_settop(L, 2);
    struct gmatch *g = lua_newuserdatauv(L, sizeof *g + ab_pattern_size(plen), 0);
    g->at = start > len ? len + 1 : start;
    g->last = SIZE_MAX;
    g->c.m.subject = s;
    g->c.m.len = len;
    set_pattern(L, &g->c, p, plen, false);
    g->c.compiled = ab_pattern_compile(g->memory, p, plen);
    lua_insert(L, 1); /* the state, subject, pattern */
    lua_pushcclosure(L, l_gmatch_next, 3);
    return 1;
}

/* ---- gsub ---- */

struct sub {
    struct call c;
    int type;         /* of the replacement at 3 */
    const char *text; /* when it is a string */
    size_t text_len;
    size_t at;          /* up to here the result is complete */
    size_t last;        /* where the last match ended, or SIZE_MAX */
    size_t search;      /* where the search that is paused has come to */
    lua_Integer n, max; /* replacements */
    bool changed;
    alignas(void *) char memory[]; /* of the pattern, after a slice */
};

static void add_text(lua_State *L, struct sub *sub, luaL_Buffer *b, size_t s, size_t e)
{
    const char *t = sub->text, *end = t + sub->text_len;
    while (t < end) {
        const char *mark = memchr(t, '%', (size_t)(end - t));
        luaL_addlstring(b, t, (size_t)((mark ? mark : end) - t));
        if (!mark)
            return;
        const char *capture;
        size_t len;
        char kind = mark + 1 < end ? mark[1] : '\0';
        t = mark + 2;
        if (kind == '%') {
            luaL_addchar(b, '%');
        } else if (kind == '0') {
            luaL_addlstring(b, sub->c.m.subject + s, e - s);
        } else if (kind >= '1' && kind <= '9') {
            if (get_capture(L, &sub->c.m, kind - '1', s, e, &capture, &len))
                luaL_addvalue(b);
            else
                luaL_addlstring(b, capture, len);
        } else {
            luaL_error(L, "invalid use of '%c' in replacement string", '%');
        }
    }
}

/* Appends the replacement of [s, e). False when the original stays. */
static bool add_replacement(lua_State *L, struct sub *sub, luaL_Buffer *b, size_t s,
                            size_t e)
{
    const struct ab_match *m = &sub->c.m;
    if (sub->type == LUA_TFUNCTION) {
        lua_pushvalue(L, 3);
        lua_call(L, push_captures(L, m, true, s, e), 1);
    } else if (sub->type == LUA_TTABLE) {
        push_capture(L, m, 0, s, e);
        lua_gettable(L, 3);
    } else {
        add_text(L, sub, b, s, e);
        return true;
    }
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        luaL_addlstring(b, m->subject + s, e - s);
        return false;
    }
    if (!lua_isstring(L, -1))
        luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    luaL_addvalue(b);
    return true;
}

/* False when it is to leave in the middle. */
static bool replace_all(lua_State *L, struct sub *sub, luaL_Buffer *b)
{
    struct ab_match *m = &sub->c.m;
    while (sub->n < sub->max) {
        size_t s = m->paused ? sub->search : sub->at, e;
        int rc = run(L, &sub->c, &s, &e);
        sub->search = s;
        if (rc == AB_PATTERN_PAUSED)
            return false;
        if (rc == 0)
            break;
        luaL_addlstring(b, m->subject + sub->at, s - sub->at);
        sub->at = s;
        if (e != sub->last) {
            sub->n++;
            sub->changed |= add_replacement(L, sub, b, s, e);
            sub->at = sub->last = e;
        } else if (s < m->len) {
            luaL_addchar(b, m->subject[sub->at++]);
        } else {
            break;
        }
        if (sub->c.anchored)
            break;
    }
    luaL_addlstring(b, m->subject + sub->at, m->len - sub->at);
    return true;
}

static int gsub_more(lua_State *L, int status, lua_KContext ctx);

/* Leaves; the result so far is on top of the stack, and below it the state, if `sub` is
 * that. */
static int gsub_later(lua_State *L, struct sub *sub, bool kept)
{
    if (!kept) {
        struct sub *state =
            lua_newuserdatauv(L, sizeof *state + ab_pattern_size(sub->c.pattern_len), 0);
        *state = *sub;
        keep(&state->c, &sub->c, state->memory);
        lua_insert(L, -2);
    }
    return abl_slice_leave(L, 0, gsub_more);
}

static int push_replaced(lua_State *L, const struct sub *sub)
{
    if (!sub->changed)
        lua_pushvalue(L, 1);
    lua_pushinteger(L, sub->n);
    return 2;
}

static int gsub_more(lua_State *L, int status, lua_KContext ctx)
{
    struct sub *sub = lua_touserdata(L, -2);
    luaL_Buffer b;
    (void)status;
    (void)ctx;
    int partial = lua_gettop(L);
    luaL_buffinit(L, &b);
    lua_pushvalue(L, partial);
    luaL_addvalue(&b);
    bool done = replace_all(L, sub, &b);
    luaL_pushresult(&b);
    lua_remove(L, partial);
    return done ? push_replaced(L, sub) : gsub_later(L, sub, true);
}

static int l_gsub(lua_State *L)
{
    struct sub sub = {.last = SIZE_MAX};
    struct local local;
    size_t plen;
    sub.c.m.subject = luaL_checklstring(L, 1, &sub.c.m.len);
    const char *p = luaL_checklstring(L, 2, &plen);
    sub.type = lua_type(L, 3);
    if (sub.type != LUA_TNUMBER && sub.type != LUA_TSTRING && sub.type != LUA_TTABLE &&
        sub.type != LUA_TFUNCTION)
        return luaL_typeerror(L, 3, "string/function/table");
    sub.max = luaL_optinteger(L, 4, (lua_Integer)sub.c.m.len + 1);
    lua_settop(L, 3);
    if (sub.type == LUA_TNUMBER || sub.type == LUA_TSTRING)
        sub.text = lua_tolstring(L, 3, &sub.text_len);
    set_pattern(L, &sub.c, p, plen, true);
    compile(L, &sub.c, &local);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    bool done = replace_all(L, &sub, &b);
    luaL_pushresult(&b);
    return done ? push_replaced(L, &sub) : gsub_later(L, &sub, false);
}

/* ---- registration ---- */

static const luaL_Reg functions[] = {
    {"find", l_find}, {"match", l_match}, {"gmatch", l_gmatch},
    {"gsub", l_gsub}, {NULL, NULL},
};

static void set_functions(lua_State *L, lua_Integer steps)
{
    lua_pushinteger(L, steps);
    luaL_setfuncs(L, functions, 1);
}

void abl_pattern_install(lua_State *L)
{
    lua_getglobal(L, "string");
    set_functions(L, ABL_PATTERN_STEPS);
    lua_pop(L, 1);
}

/* limited(steps) -> { find, match, gmatch, gsub } with that budget */
static int l_limited(lua_State *L)
{
    lua_Integer steps = luaL_checkinteger(L, 1);
    luaL_argcheck(L, steps > 0 && steps <= INT64_MAX / 2, 1, "must be positive");
    luaL_newlibtable(L, functions);
    set_functions(L, steps);
    return 1;
}

int luaopen_agentbox_sys_re(lua_State *L)
{
    lua_newtable(L);
    set_functions(L, ABL_PATTERN_STEPS);
    lua_pushcfunction(L, l_limited);
    lua_setfield(L, -2, "limited");
    return 1;
}
