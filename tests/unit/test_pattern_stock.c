/* test_pattern_stock.c - generated patterns: agentbox.sys.re must do what stock Lua's
 * string does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

int luaopen_agentbox_sys_re(lua_State *L);

/* ThreadSanitizer is slow, and there is one thread here: a sample will do. */
#ifdef __SANITIZE_THREAD__
enum { ROUNDS = 2000 };
#else
enum { ROUNDS = 20000 };
#endif

/* Each entry is handed to luaL_loadstring with the ones before it: C caps the length of a
 * literal. */
static const char *const parts[] = {
    "local stock, re = string, require 'agentbox.sys.re'\n"
    "local R, rep = math.random, stock.rep\n"
    "math.randomseed(20240229)\n"
    /* Anything goes: malformed parts, special characters, bytes beyond ASCII. */
    "local wild = { 'a', 'b', '.', '%a', '%s', '%W', '%p', '%g', '%z', '%q', '%%', "
    "'[ab]', '[^a]',\n"
    "  '[%a_]', '[%d-]', '[]]', '[^]]', '[a-]', '[%]]', '(', ')', '()', '(a)', '(.-)', "
    "'%1', '%2', '%0',\n"
    "  '%b()', '%bxy', '%f[%w]', '%f[^a]', '$', '^', '*', '+', '-', '?', '[', '%', '%b', "
    "'%f', '[a',\n"
    "  '[^', '[%', '\\0', '\\xe9', '[\\x80-\\xff]' }\n"
    "local tame = { 'a', 'b', 'c', '.', '%a', '%d', '%s', '%w', '%A', '%S', '%p', "
    "'[ab]', '[^a]', '[a-c]',\n"
    "  '(a)', '(.)', '(.-)', '(a*)', '()', '(%w+)', '%f[%w]', '%b()', '(b?)', '%1', '%2' "
    "}\n"
    "local repeats = { '', '', '', '*', '+', '-', '?' }\n"
    "local letters = { 'a', 'b', 'c', 'a', 'b', ' ', '1', 'x', 'y', '(', ')', '_', '.', "
    "'A', '\\n', '\\0',\n"
    "  '\\xe9', '%', '-', ']' }\n"
    "local function pick(t) return t[R(#t)] end\n"
    "local function pattern()\n"
    "  local atoms, t = R() < 0.4 and wild or tame, {}\n"
    "  if R() < 0.2 then t[1] = '^' end\n"
    "  for _ = 1, R(0, 7) do t[#t + 1] = pick(atoms) .. pick(repeats) end\n"
    "  if R() < 0.2 then t[#t + 1] = '$' end\n"
    "  return table.concat(t)\n"
    "end\n"
    "local function subject()\n"
    "  local t = {}\n"
    "  for i = 1, R(0, 14) do t[i] = pick(letters) end\n"
    "  return table.concat(t)\n"
    "end\n",

    "local replacements = { 'x', '<%0>', '%1', '%2', '%%', '[%1%0]', '%', '%x', '', 7,\n"
    "  { a = 'A', ab = false, b = 3 }, { a = {} }, function(...) return select('#', ...) "
    ".. tostring((...)) end,\n"
    "  function() end, function() return false end, function() return {} end, "
    "function(_, b) return b end }\n"
    /* The place and the name of the function may differ in a message. */
    "local function clean(v)\n"
    "  if type(v) ~= 'string' then return v end\n"
    "  v = stock.gsub(v, \"'[%w%.]-%.(%w+)'\", \"'%1'\")\n"
    "  return (stock.gsub(v, '^[^\\n]-:%d+: ', ''))\n"
    "end\n"
    "local function results(f, ...)\n"
    "  local t = table.pack(pcall(f, ...))\n"
    "  local ok = t[1]\n"
    "  for i = 1, t.n do\n"
    "    local v = ok and t[i] or clean(t[i])\n"
    "    t[i] = type(v) == 'string' and stock.format('%q', v) or tostring(v)\n"
    "  end\n"
    "  return table.concat(t, ' ')\n"
    "end\n"
    "local function all(name)\n"
    "  return function(lib, s, p, init)\n"
    "    local out = {}\n"
    "    for a, b, c in lib[name](s, p, init) do\n"
    "      out[#out + 1] = tostring(a) .. '|' .. tostring(b) .. '|' .. tostring(c)\n"
    "    end\n"
    "    return table.concat(out, ';')\n"
    "  end\n"
    "end\n"
    "local gmatch, checked, matched = all 'gmatch', 0, 0\n"
    "local function same(what, a, b, ...)\n"
    "  checked = checked + 1\n"
    "  if #a > 8 then matched = matched + 1 end\n"
    "  if a == b then return end\n"
    "  error(stock.format('%s(%s): stock %s, ours %s', what, results(table.unpack, { ... "
    "}), a, b))\n"
    "end\n"
    "local function compare(name, ...)\n"
    "  same(name, results(stock[name], ...), results(re[name], ...), ...)\n"
    "end\n",

    "for _ = 1, (...) do\n"
    "  local s, p, init = subject(), pattern(), R() < 0.3 and R(-16, 16) or nil\n"
    "  compare('find', s, p, init)\n"
    "  compare('match', s, p, init)\n"
    "  compare('gsub', s, p, pick(replacements), R() < 0.2 and R(-1, 4) or nil)\n"
    "  same('gmatch', results(gmatch, stock, s, p, init), results(gmatch, re, s, p, "
    "init), s, p, init)\n"
    "end\n"
    "for byte = 0, 255 do\n"
    "  local c = stock.char(byte)\n"
    "  for class in stock.gmatch('acdglpsuwxzACDGLPSUWXZ', '.') do\n"
    "    compare('find', c, '%' .. class)\n"
    "    compare('find', c, '[^%' .. class .. ']')\n"
    "  end\n"
    "  compare('find', 'abc' .. c, '%' .. c)\n"
    "  compare('find', 'abc' .. c, '[' .. c .. ']')\n"
    "  compare('find', 'abc' .. c, '[%' .. c .. ']')\n"
    "end\n"
    "for _, args in ipairs { {}, { 1 }, { 'a' }, { {}, 'a' }, { 12, 1 }, { 12, 2, 'x' }, "
    "{ 'a', 'a', true },\n"
    "  { 'a', 'a', '%1', 1.5 }, { 'a', 'a', 1.5 }, { 'aaa', 'a', 'b', '2' }, { 'a', 'a', "
    "print, {} } } do\n"
    "  for _, name in ipairs { 'find', 'match', 'gsub' } do compare(name, "
    "table.unpack(args, 1, 4)) end\n"
    "end\n"
    "compare('find', 'a', rep('(a?)', 32))\n"
    "compare('find', 'a', rep('(a?)', 33))\n"
    "compare('gsub', rep('ab', 500), rep('a?b?', 60), 'x')\n"
    "return checked, matched\n",
};

static void test_same_as_stock(void **state)
{
    lua_State *L = luaL_newstate();
    (void)state;
    memset(lua_getextraspace(L), 0, LUA_EXTRASPACE); /* no scheduler */
    luaL_openlibs(L);
    luaL_requiref(L, "agentbox.sys.re", luaopen_agentbox_sys_re, 0);
    lua_settop(L, 0);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        lua_pushstring(L, parts[i]);
    lua_concat(L, lua_gettop(L));
    bool ok = luaL_loadstring(L, lua_tostring(L, 1)) == LUA_OK;
    lua_pushinteger(L, ROUNDS);
    if (!ok || lua_pcall(L, 1, 2, 0) != LUA_OK)
        fail_msg("%s", lua_tostring(L, -1));
    /* Many of the cases must be more than "no match". */
    assert_true(lua_tointeger(L, -2) > 4 * ROUNDS);
    assert_true(lua_tointeger(L, -1) * 2 > 3 * ROUNDS);
    lua_close(L);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_as_stock)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
