/* fuzz_pattern.c - PATTERN NUL SUBJECT: the same answer as stock Lua's string.find. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "base/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_PATTERN 40
#define MAX_SUBJECT 60

/* Replaces what is on the stack by string.find's answer, or its message without the
 * place. */
static void find_stock(lua_State *L, const char *s, size_t len, const char *p,
                       size_t plen)
{
    lua_settop(L, 0);
    lua_getglobal(L, "string");
    lua_getfield(L, -1, "find");
    lua_replace(L, 1);
    lua_pushlstring(L, s, len);
    lua_pushlstring(L, p, plen);
    lua_pcall(L, 2, LUA_MULTRET, 0);
}

static void expect(lua_State *L, int idx, size_t number, const char *what)
{
    if (!lua_isinteger(L, idx) || lua_tointeger(L, idx) != (lua_Integer)number)
        AB_BUG("%s: ours %zu, stock %s", what, number, luaL_tolstring(L, idx, NULL));
}

/* Every capture is closed. */
static void compare_captures(lua_State *L, const struct ab_match *m)
{
    if (lua_gettop(L) != m->level + 2)
        AB_BUG("ours %d results, stock %d", m->level + 2, lua_gettop(L));
    for (int i = 0; i < m->level; i++) {
        const struct ab_capture *c = &m->captures[i];
        size_t len;
        if (c->len == AB_CAPTURE_POSITION) {
            expect(L, i + 3, c->start + 1, "position");
            continue;
        }
        const char *text = lua_tolstring(L, i + 3, &len);
        if (!text || len != (size_t)c->len ||
            memcmp(text, m->subject + c->start, len) != 0)
            AB_BUG("capture %d differs", i + 1);
    }
}

static bool has_open_capture(const struct ab_match *m)
{
    for (int i = 0; i < m->level; i++) {
        if (m->captures[i].len == AB_CAPTURE_OPEN)
            return true;
    }
    return false;
}

static void expect_message(lua_State *L, const char *message)
{
    if (lua_gettop(L) != 1 || !lua_isstring(L, 1) ||
        strcmp(lua_tostring(L, 1), message) != 0)
        AB_BUG("ours: %s; stock: %s", message, luaL_tolstring(L, 1, NULL));
}

enum { PAUSE_STEPS = 7 };

static void compare(lua_State *L, const char *s, size_t len, const char *p, size_t plen)
{
    bool anchored = plen > 0 && *p == '^';
    struct ab_match m = {.subject = s, .len = len, .budget = 100000};
    struct ab_err err;
    size_t start = 0, end;
    void *mem = malloc(ab_pattern_size(plen - anchored));
    struct ab_pattern *compiled = ab_pattern_compile(mem, p + anchored, plen - anchored);
    int rc;
    do {
        m.pause_at = m.budget > PAUSE_STEPS ? m.budget - PAUSE_STEPS : 0;
        rc = anchored ? ab_pattern_match(compiled, &m, 0, &end, &err)
                      : ab_pattern_search(compiled, &m, &start, &end, &err);
    } while (rc == AB_PATTERN_PAUSED);
    free(mem);
    if (rc < 0 && err.code == AB_ELIMIT)
        return; /* stock Lua would take too long */
    find_stock(L, s, len, p, plen);
    if (rc < 0) {
        expect_message(L, err.msg);
    } else if (rc == 0) {
        if (lua_gettop(L) != 1 || !lua_isnil(L, 1))
            AB_BUG("stock finds: %s", luaL_tolstring(L, 1, NULL));
    } else if (has_open_capture(&m)) {
        expect_message(L, "unfinished capture");
    } else {
        expect(L, 1, start + 1, "start");
        expect(L, 2, end, "end");
        compare_captures(L, &m);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    if (!nul)
        return 0;
    size_t plen = (size_t)(nul - data), len = size - plen - 1;
    /* Without special characters string.find compares plainly: nothing to learn. */
    if (plen > MAX_PATTERN || len > MAX_SUBJECT ||
        !strpbrk((const char *)data, "^$*+?.([%-"))
        return 0;
    lua_State *L = luaL_newstate();
    luaL_requiref(L, "string", luaopen_string, 1);
    char *pattern = malloc(plen + 1), *subject = malloc(len + 1);
    memcpy(pattern, data, plen);
    memcpy(subject, nul + 1, len);
    compare(L, subject, len, pattern, plen);
    free(pattern);
    free(subject);
    lua_close(L);
    return 0;
}
