/* l_rand.c - agentbox.sys.rand: bytes from the kernel, and seeded generators.
 *
 * A generator is xoshiro256**, its state filled by splitmix64 from the seed, so that a
 * seed gives the same numbers on every machine and in every version. Integers in a range
 * are drawn without bias; a float is the top 53 bits.
 */
#include <errno.h>
#include <sys/random.h>

#include "lua/conv.h"

#define RAND_TYPE "agentbox.rand"

int luaopen_agentbox_sys_rand(lua_State *L);

enum { MAX_BYTES = 1 << 20 };

struct rand {
    uint64_t s[4];
};

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

static uint64_t next(struct rand *r)
{
    uint64_t *s = r->s, result = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

static void seed(struct rand *r, uint64_t x)
{
    for (int i = 0; i < 4; i++) {
        uint64_t z = (x += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        r->s[i] = z ^ (z >> 31);
    }
}

/* 0 .. n-1 without bias: draws that fall into the incomplete last stretch are thrown
 * away. */
static uint64_t below(struct rand *r, uint64_t n)
{
    uint64_t reject = (0 - n) % n, x;
    do
        x = next(r);
    while (x < reject);
    return x % n;
}

static void kernel_bytes(lua_State *L, unsigned char *out, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = getrandom(out + at, n - at, 0);
        if (got < 0 && errno != EINTR)
            luaL_error(L, "the kernel gives no random bytes");
        at += got > 0 ? (size_t)got : 0;
    }
}

static int l_bytes(lua_State *L)
{
    lua_Integer n = luaL_checkinteger(L, 1);
    luaL_argcheck(L, n >= 0 && n <= MAX_BYTES, 1, "0 to 1048576 expected");
    luaL_Buffer b;
    char *at = luaL_buffinitsize(L, &b, (size_t)n);
    kernel_bytes(L, (unsigned char *)at, (size_t)n);
    luaL_pushresultsize(&b, (size_t)n);
    return 1;
}

static int l_uuid4(lua_State *L)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char raw[16];
    char text[37], *at = text;
    kernel_bytes(L, raw, sizeof raw);
    raw[6] = (raw[6] & 0x0f) | 0x40;
    raw[8] = (raw[8] & 0x3f) | 0x80;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        *at++ = digits[raw[i] >> 4];
        *at++ = digits[raw[i] & 15];
    }
    lua_pushlstring(L, text, 36);
    return 1;
}

/* new(seed): an integer, or a string (its bytes are folded by FNV-1a). */
static int l_new(lua_State *L)
{
    uint64_t x = 0xcbf29ce484222325u;
    if (lua_type(L, 1) == LUA_TSTRING) {
        size_t len;
        const char *text = lua_tolstring(L, 1, &len);
        for (size_t i = 0; i < len; i++)
            x = (x ^ (unsigned char)text[i]) * 0x100000001b3u;
    } else {
        x = (uint64_t)luaL_checkinteger(L, 1);
    }
    struct rand *r = lua_newuserdatauv(L, sizeof *r, 0);
    seed(r, x);
    luaL_setmetatable(L, RAND_TYPE);
    return 1;
}

static struct rand *check(lua_State *L)
{
    return luaL_checkudata(L, 1, RAND_TYPE);
}

/* rand:int(a, b): a <= x <= b */
static int l_int(lua_State *L)
{
    struct rand *r = check(L);
    lua_Integer a = luaL_checkinteger(L, 2), b = luaL_checkinteger(L, 3);
    luaL_argcheck(L, a <= b, 3, "the interval is empty");
    uint64_t span = (uint64_t)b - (uint64_t)a + 1;
    uint64_t x = span == 0 ? next(r) : below(r, span);
    lua_pushinteger(L, (lua_Integer)((uint64_t)a + x));
    return 1;
}

/* rand:float(): 0 <= x < 1 */
static int l_float(lua_State *L)
{
    lua_pushnumber(L, (double)(next(check(L)) >> 11) * 0x1p-53);
    return 1;
}

/* rand:shuffle(list): in place; gives the list. */
static int l_shuffle(lua_State *L)
{
    struct rand *r = check(L);
    luaL_checktype(L, 2, LUA_TTABLE);
    for (lua_Integer i = luaL_len(L, 2); i > 1; i--) {
        lua_Integer j = (lua_Integer)below(r, (uint64_t)i) + 1;
        lua_geti(L, 2, i);
        lua_geti(L, 2, j);
        lua_seti(L, 2, i);
        lua_seti(L, 2, j);
    }
    lua_settop(L, 2);
    return 1;
}

int luaopen_agentbox_sys_rand(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"int", l_int}, {"float", l_float}, {"shuffle", l_shuffle}, {NULL, NULL}};
    static const luaL_Reg lib[] = {
        {"bytes", l_bytes}, {"uuid4", l_uuid4}, {"new", l_new}, {NULL, NULL}};
    luaL_newmetatable(L, RAND_TYPE);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    luaL_newlib(L, lib);
    return 1;
}
