/* test_data_oom.c - the data primitives when Lua runs out of memory at every allocation
 * in turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "lua/conv.h"

int luaopen_agentbox_sys_json(lua_State *L);
int luaopen_agentbox_sys_re(lua_State *L);
int luaopen_agentbox_sys_sse(lua_State *L);
int luaopen_agentbox_sys_utf8x(lua_State *L);
int luaopen_agentbox_sys_yaml(lua_State *L);

static const char scenario[] =
    "local json, yaml, sse, re, utf8x = ...\n"
    "local t = "
    "assert(json.decode('{\"a\":[1,2.5,{\"b\":\"x\\\\ny\"}],\"raw\":{\"k\":[1,2,3]},"
    "\"n\":null}',\n"
    "  { raw = { 'raw' }, repair = true }))\n"
    "t.new, t.a[3].c, t.n = 1, 123, nil\n"
    "t.n = json.decode('12345678901234567890')\n"
    "local bad = json.decode('[\"\\\\ud800\", \"a\\nb\"]', { repair = true })\n"
    "assert(json.encode({ t, bad, b = nil, json.array() }, { indent = 2 }))\n"
    "for k in pairs(t) do assert(k) end\n"
    "assert(t.raw:decode().k[3] == 3)\n"
    "assert(json.encode(json.object({ z = 1, y = 2 }, { 'z' }), { sorted = true }))\n"
    "assert(not json.decode('[1,'))\n"
    "pcall(json.encode, { x = { print } })\n"
    "assert(yaml.decode('a: &x {b: [1, 2]}\\nc: {<<: *x, d: text}\\n'))\n"
    "assert(not yaml.decode('a: 1\\na: 2\\n'))\n"
    "local p = sse.parser()\n"
    "assert(#p:feed('id: 1\\ndata: x\\n\\ndata: y\\n\\nda') == 2)\n"
    "p:finish()\n"
    "assert(utf8x.scrub(('x'):rep(3000) .. '\\xff'))\n"
    "assert(re.gsub(('ab '):rep(400), '(%w+)%s', function(w) return w .. w end))\n"
    "assert(re.find('x', ('(a?)'):rep(30)))\n"
    "for w in re.gmatch('a b', '%a') do assert(w) end\n"
    "pcall(re.limited(5).find, ('a'):rep(50), '.-b')\n";

struct heap {
    long left; /* allocations that succeed */
    size_t used;
};

static void *alloc(void *ud, void *old, size_t old_size, size_t size)
{
    struct heap *heap = ud;
    if (size == 0) {
        heap->used -= old ? old_size : 0;
        free(old);
        return NULL;
    }
    if ((!old || size > old_size) && heap->left-- <= 0)
        return NULL;
    void *p = realloc(old, size);
    if (!p)
        abort();
    heap->used += size - (old ? old_size : 0);
    return p;
}

static int run_scenario(lua_State *L)
{
    static const lua_CFunction opens[] = {
        luaopen_agentbox_sys_json, luaopen_agentbox_sys_yaml, luaopen_agentbox_sys_sse,
        luaopen_agentbox_sys_re, luaopen_agentbox_sys_utf8x};
    luaL_openlibs(L);
    abl_conv_register(L);
    if (luaL_loadstring(L, scenario) != LUA_OK)
        return lua_error(L);
    for (size_t i = 0; i < sizeof opens / sizeof opens[0]; i++) {
        lua_pushcfunction(L, opens[i]);
        lua_call(L, 0, 1);
    }
    lua_call(L, sizeof opens / sizeof opens[0], 0);
    return 0;
}

/* Returns the status of the scenario; 0 is success. */
static int try(long allocations)
{
    struct heap heap = {.left = allocations};
    lua_State *L = lua_newstate(alloc, &heap);
    if (!L)
        return LUA_ERRMEM;
    lua_pushcfunction(L, run_scenario);
    int status = lua_pcall(L, 0, 0, 0);
    if (status == LUA_ERRRUN && !strstr(luaL_tolstring(L, -1, NULL), "not enough memory"))
        fail_msg("after %ld allocations: %s", allocations, lua_tostring(L, -1));
    lua_close(L);
    assert_int_equal(heap.used, 0);
    return status;
}

/* What C allocated is for the leak checker of the sanitized build to find. */
static void test_every_allocation_fails_once(void **state)
{
    long n = 0;
    (void)state;
    while (try(n) != LUA_OK)
        n++;
    assert_true(n > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_allocation_fails_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
