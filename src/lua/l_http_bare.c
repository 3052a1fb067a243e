/* l_http_bare.c - a bare connection as a value: bytes in, bytes out, each way waited for
 * by one fiber at a time. */
#include "lua/l_http_bare.h"

#include <sys/socket.h>
#include <unistd.h>

#include "lua/conv.h"
#include "lua/fiber.h"
#include "rt/poll.h"

#define BARE_TYPE "agentbox.http.connection"
#define CHUNK     65536

/* What waits polls a descriptor of its own, which stays open until nobody can. */
struct bare {
    struct ab_http_transfer *t; /* owns; NULL when closed */
    int in, out;                /* own */
    bool reading, writing;      /* somebody waits, or was cancelled while waiting */
};

static void release(struct bare *b)
{
    if (b->in >= 0 && !b->reading)
        close(b->in);
    if (b->out >= 0 && !b->writing)
        close(b->out);
    b->in = b->reading ? b->in : -1;
    b->out = b->writing ? b->out : -1;
}

int abl_push_bare(lua_State *L, struct ab_http_transfer **t)
{
    struct ab_err err;
    struct bare *b = lua_newuserdatauv(L, sizeof *b, 0);
    *b = (struct bare){.t = *t, .in = -1, .out = -1};
    *t = NULL;
    luaL_setmetatable(L, BARE_TYPE);
    b->in = ab_http_bare_fd(b->t, &err);
    b->out = b->in < 0 ? -1 : ab_http_bare_fd(b->t, &err);
    return b->out < 0 ? abl_push_err(L, &err, "http") : 1;
}

static struct bare *check(lua_State *L)
{
    return luaL_checkudata(L, 1, BARE_TYPE);
}

static int push_closed(lua_State *L)
{
    struct ab_err err;
    ab_err_set(&err, AB_ENETWORK, "the connection is closed");
    return abl_push_err(L, &err, "http");
}

/* nil at the end of the stream; -1: wait. */
static int take(lua_State *L, struct bare *b)
{
    char chunk[CHUNK];
    struct ab_err err;
    if (!b->t)
        return push_closed(L);
    long n = ab_http_bare_recv(b->t, chunk, sizeof chunk, &err);
    if (n == AB_HTTP_AGAIN)
        return -1;
    if (n < 0)
        return abl_push_err(L, &err, "http");
    if (n == 0)
        lua_pushnil(L);
    else
        lua_pushlstring(L, chunk, (size_t)n);
    return 1;
}

static int wait_readable(lua_State *L, struct bare *b);

static int push_received(lua_State *L, struct ab_op *op)
{
    struct bare *b = check(L);
    (void)op;
    b->reading = false;
    if (!b->t)
        release(b);
    int n = take(L, b);
    return n < 0 ? wait_readable(L, b) : n;
}

static int wait_readable(lua_State *L, struct bare *b)
{
    lua_settop(L, 1);
    struct ab_anchor *anchor = abl_anchor(L);
    b->reading = true;
    anchor->op = ab_poll_start(abl_loop(L), b->in, UV_READABLE);
    return abl_wait(L, anchor, push_received);
}

/* connection:recv() -> bytes | nil (the end) | nil, err */
static int l_recv(lua_State *L)
{
    struct bare *b = check(L);
    if (b->reading)
        luaL_error(L, "another fiber reads this connection");
    lua_settop(L, 1);
    int n = take(L, b);
    return n < 0 ? wait_readable(L, b) : n;
}

/* connection:send(bytes [, from]) -> how many it took, without waiting | nil, err */
static int l_send(lua_State *L)
{
    struct bare *b = check(L);
    struct ab_err err;
    size_t len;
    const char *data = luaL_checklstring(L, 2, &len);
    lua_Integer from = luaL_optinteger(L, 3, 1);
    luaL_argcheck(L, from >= 1 && (size_t)from <= len + 1, 3, "beyond the bytes");
    data += from - 1;
    len -= (size_t)from - 1;
    if (!b->t)
        return push_closed(L);
    size_t done = 0;
    while (done < len) {
        long n = ab_http_bare_send(b->t, data + done, len - done, &err);
        if (n == AB_HTTP_AGAIN)
            break;
        if (n < 0)
            return abl_push_err(L, &err, "http");
        done += (size_t)n;
    }
    lua_pushinteger(L, (lua_Integer)done);
    return 1;
}

static int push_writable(lua_State *L, struct ab_op *op)
{
    struct bare *b = check(L);
    (void)op;
    b->writing = false;
    if (!b->t) {
        release(b);
        return push_closed(L);
    }
    lua_pushboolean(L, 1);
    return 1;
}

/* connection:wait_writable() -> true | nil, err */
static int l_wait_writable(lua_State *L)
{
    struct bare *b = check(L);
    if (!b->t)
        return push_closed(L);
    if (b->writing)
        luaL_error(L, "another fiber writes to this connection");
    lua_settop(L, 1);
    struct ab_anchor *anchor = abl_anchor(L);
    b->writing = true;
    anchor->op = ab_poll_start(abl_loop(L), b->out, UV_WRITABLE);
    return abl_wait(L, anchor, push_writable);
}

/* connection:close(): who waits is told. May be called twice. */
static int l_close(lua_State *L)
{
    struct bare *b = check(L);
    struct ab_http_transfer *t = b->t;
    b->t = NULL;
    if (b->in >= 0)
        shutdown(b->in, SHUT_RDWR);
    ab_http_close(t);
    release(b);
    return 0;
}

/* Nobody waits any more, or we would not be collected. */
static int l_gc(lua_State *L)
{
    struct bare *b = check(L);
    b->reading = b->writing = false;
    return l_close(L);
}

void abl_bare_register(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"recv", l_recv},   {"send", l_send}, {"wait_writable", l_wait_writable},
        {"close", l_close}, {"__gc", l_gc},   {"__close", l_close},
        {NULL, NULL},
    };
    luaL_newmetatable(L, BARE_TYPE);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}
