/* l_http_server.c - agentbox.sys.http_server: a server and its requests as values. What
 * a user sees is lua/stdlib/http_server.lua. */
#include <string.h>

#include "lua/conv.h"
#include "lua/fiber.h"
#include "rt/http_server.h"

#define SERVER_TYPE  "agentbox.http_server"
#define REQUEST_TYPE "agentbox.http_server.request"
#define MIB          (1024 * 1024)
#define ONE_PIECE    INT32_MAX /* bytes that may be written at once */

int luaopen_agentbox_sys_http_server(lua_State *L);

struct server {
    struct ab_web *web; /* owns; NULL when closed */
};

struct request {
    struct ab_web_exchange *ex; /* owns; NULL when it was let go */
};

static struct server *check_server(lua_State *L)
{
    struct server *s = luaL_checkudata(L, 1, SERVER_TYPE);
    if (!s->web)
        luaL_error(L, "the server is closed");
    return s;
}

static struct request *check_request(lua_State *L)
{
    struct request *r = luaL_checkudata(L, 1, REQUEST_TYPE);
    if (!r->ex)
        luaL_error(L, "the request is over");
    return r;
}

/* ---- listen ---- */

static const char *const options[] = {
    "path",         "host",         "port",         "token",         "cookie",
    "open",         "head_bytes",   "body_bytes",   "held_bytes",    "connections",
    "idle_timeout", "head_timeout", "body_timeout", "stall_timeout", NULL,
};

static uint64_t opt_ms(lua_State *L, const char *key, lua_Number def)
{
    lua_Number s = abl_opt_number(L, 1, key, def);
    if (!(s > 0 && s < 1e6))
        luaL_error(L, "option '%s': must be between 0 and 1e6 seconds", key);
    return s < 0.001 ? 1 : (uint64_t)(s * 1000);
}

static lua_Integer opt_count(lua_State *L, const char *key, lua_Integer def,
                             lua_Integer max)
{
    lua_Integer n = abl_opt_integer(L, 1, key, def);
    if (n < 1 || n > max)
        luaL_error(L, "option '%s': must be between 1 and %I", key, max);
    return n;
}

/* Leaves on the stack what keeps the strings alive. */
static void check_open(lua_State *L, struct ab_web_spec *spec)
{
    if (lua_getfield(L, 1, "open") == LUA_TNIL)
        return;
    luaL_checktype(L, -1, LUA_TTABLE);
    lua_Integer n = luaL_len(L, -1);
    if (n > AB_WEB_OPEN)
        luaL_error(L, "option 'open': no more than %d paths", AB_WEB_OPEN);
    for (lua_Integer i = 1; i <= n; i++) {
        if (lua_rawgeti(L, -1, i) != LUA_TSTRING)
            luaL_error(L, "option 'open': entry %I is not a string", i);
        spec->open[i - 1] = lua_tostring(L, -1);
        lua_pop(L, 1);
    }
}

static void check_spec(lua_State *L, struct ab_web_spec *spec)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    abl_check_keys(L, 1, options);
    spec->path = abl_opt_string(L, 1, "path", NULL);
    spec->host = abl_opt_string(L, 1, "host", "127.0.0.1");
    lua_Integer port = abl_opt_integer(L, 1, "port", 0);
    if (port < 0 || port > 65535)
        luaL_error(L, "option 'port': must be between 0 and 65535");
    spec->port = (uint16_t)port;
    spec->token = abl_opt_string(L, 1, "token", NULL);
    spec->cookie = abl_opt_string(L, 1, "cookie", NULL);
    if (spec->token && !*spec->token)
        luaL_error(L, "option 'token': is empty");
    spec->head_bytes = (size_t)opt_count(L, "head_bytes", 32768, 16 * MIB);
    spec->body_bytes = (size_t)opt_count(L, "body_bytes", 16 * MIB, (lua_Integer)1 << 40);
    spec->held_bytes =
        (size_t)opt_count(L, "held_bytes", 256 * MIB, (lua_Integer)1 << 40);
    spec->connections = (unsigned)opt_count(L, "connections", 1024, 1000000);
    spec->idle_ms = opt_ms(L, "idle_timeout", 75);
    spec->head_ms = opt_ms(L, "head_timeout", 10);
    spec->body_ms = opt_ms(L, "body_timeout", 60);
    spec->stall_ms = opt_ms(L, "stall_timeout", 30);
    check_open(L, spec);
}

/* listen(spec) -> server | nil, err */
static int l_listen(lua_State *L)
{
    struct ab_web_spec spec = {0};
    struct ab_err err;
    check_spec(L, &spec);
    struct server *s = lua_newuserdatauv(L, sizeof *s, 0);
    *s = (struct server){0};
    luaL_setmetatable(L, SERVER_TYPE);
    s->web = ab_web_open(abl_loop(L), &spec, &err);
    return s->web ? 1 : abl_push_err(L, &err, "http_server");
}

/* ---- the server ---- */

/* request, method, target | nothing when the server was stopped */
static int push_next(lua_State *L, struct server *s)
{
    if (!s->web)
        return 0;
    struct request *r = lua_newuserdatauv(L, sizeof *r, 1);
    *r = (struct request){0};
    luaL_setmetatable(L, REQUEST_TYPE);
    r->ex = ab_web_next(s->web);
    if (!r->ex)
        return 0;
    const struct ab_web_request *req = ab_web_exchange_request(r->ex);
    lua_pushstring(L, req->method);
    lua_pushlstring(L, req->head.data + req->target, req->target_len);
    return 3;
}

static int push_waited(lua_State *L, struct ab_op *op)
{
    struct server *s = luaL_checkudata(L, 1, SERVER_TYPE);
    (void)op;
    return push_next(L, s);
}

/* server:next() -> request, method, target | nothing: waits. By one fiber alone. */
static int l_next(lua_State *L)
{
    struct server *s = luaL_checkudata(L, 1, SERVER_TYPE);
    lua_settop(L, 1);
    int n = push_next(L, s);
    if (n > 0 || !s->web || ab_web_stopped(s->web))
        return n;
    if (ab_web_has_waiter(s->web))
        luaL_error(L, "another fiber waits for requests");
    lua_settop(L, 1);
    struct ab_anchor *anchor = abl_anchor(L);
    anchor->op = ab_web_wait(s->web);
    return abl_wait(L, anchor, push_waited);
}

static int l_address(lua_State *L)
{
    char text[160];
    ab_web_address(check_server(L)->web, text, sizeof text);
    lua_pushstring(L, text);
    return 1;
}

/* server:stop(): accepts nothing more; what is being answered goes on */
static int l_stop(lua_State *L)
{
    ab_web_stop(check_server(L)->web);
    return 0;
}

/* server:close(): cuts off everything. May be called twice. */
static int l_server_close(lua_State *L)
{
    struct server *s = luaL_checkudata(L, 1, SERVER_TYPE);
    struct ab_web *web = s->web;
    s->web = NULL;
    ab_web_close(web);
    return 0;
}

static int l_stats(lua_State *L)
{
    struct ab_web_stats st;
    ab_web_stats(check_server(L)->web, &st);
    lua_createtable(L, 0, 7);
    const struct {
        const char *name;
        uint64_t value;
    } fields[] = {
        {"accepted", st.accepted}, {"requests", st.requests}, {"refused", st.refused},
        {"gone", st.gone},         {"connections", st.open},  {"answering", st.answering},
        {"held_bytes", st.held},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        lua_pushinteger(L, (lua_Integer)fields[i].value);
        lua_setfield(L, -2, fields[i].name);
    }
    return 1;
}

/* ---- a request ---- */

static const struct ab_web_request *parts(lua_State *L)
{
    return ab_web_exchange_request(check_request(L)->ex);
}

/* request:field(name) -> the value of the only field of that name, or nil */
static int l_field(lua_State *L)
{
    size_t len;
    const char *value = ab_web_request_field(parts(L), luaL_checkstring(L, 2), &len);
    if (value)
        lua_pushlstring(L, value, len);
    else
        lua_pushnil(L);
    return 1;
}

/* request:fields() -> { {name, value}, ... } as they came */
static int l_fields(lua_State *L)
{
    const struct ab_web_request *req = parts(L);
    const char *head = req->head.data;
    lua_createtable(L, (int)req->nfields, 0);
    for (unsigned i = 0; i < req->nfields; i++) {
        lua_createtable(L, 2, 0);
        lua_pushlstring(L, head + req->fields[i].name, req->fields[i].name_len);
        lua_rawseti(L, -2, 1);
        lua_pushlstring(L, head + req->fields[i].value, req->fields[i].value_len);
        lua_rawseti(L, -2, 2);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static int l_body(lua_State *L)
{
    const struct ab_web_request *req = parts(L);
    lua_pushlstring(L, req->body.data ? req->body.data : "", req->body.len);
    return 1;
}

static int l_peer(lua_State *L)
{
    char text[160];
    ab_web_peer(check_request(L)->ex, text, sizeof text);
    lua_pushstring(L, text);
    return 1;
}

static int l_by_query(lua_State *L)
{
    lua_pushboolean(L, ab_web_by_query(check_request(L)->ex));
    return 1;
}

static void cancel_fiber(void *arg)
{
    struct ab_err err;
    ab_err_set(&err, AB_ECANCELLED, "the client has left");
    ab_fiber_cancel(arg, &err);
}

/* request:bind(): the fiber that calls it is cancelled when the client leaves */
static int l_bind(lua_State *L)
{
    struct request *r = check_request(L);
    struct ab_fiber *f = ab_sched_of(L)->running;
    lua_settop(L, 1);
    abl_push_fiber(L, f); /* keeps it for as long as the request may name it */
    lua_setiuservalue(L, 1, 1);
    ab_web_on_gone(r->ex, cancel_fiber, f);
    return 0;
}

/* request:unbind() */
static int l_unbind(lua_State *L)
{
    ab_web_on_gone(check_request(L)->ex, NULL, NULL);
    return 0;
}

static int l_gone(lua_State *L)
{
    lua_pushboolean(L, ab_web_is_gone(check_request(L)->ex));
    return 1;
}

static int l_over(lua_State *L)
{
    struct request *r = luaL_checkudata(L, 1, REQUEST_TYPE);
    lua_pushboolean(L, !r->ex || ab_web_is_over(r->ex));
    return 1;
}

static int l_begun(lua_State *L)
{
    lua_pushboolean(L, ab_web_has_begun(check_request(L)->ex));
    return 1;
}

/* ---- the answer ---- */

static struct ab_web_pair pair_at(lua_State *L, int name, int value)
{
    struct ab_web_pair p;
    if (lua_type(L, name) != LUA_TSTRING || lua_type(L, value) != LUA_TSTRING)
        luaL_error(L, "a field is a name and a text");
    p.name = lua_tolstring(L, name, &p.name_len);
    p.value = lua_tolstring(L, value, &p.value_len);
    return p;
}

/* A flat list: name, value, name, value. The strings stay where the table holds them. */
static unsigned check_fields(lua_State *L, int idx, struct ab_web_pair *pairs,
                             unsigned max)
{
    unsigned n = 0;
    if (lua_isnoneornil(L, idx))
        return 0;
    luaL_checktype(L, idx, LUA_TTABLE);
    lua_Integer len = luaL_len(L, idx);
    if (len > (lua_Integer)max * 2)
        luaL_error(L, "too many fields");
    for (lua_Integer i = 1; i < len; i += 2) {
        lua_rawgeti(L, idx, i);
        lua_rawgeti(L, idx, i + 1);
        pairs[n++] = pair_at(L, -2, -1);
        lua_pop(L, 2);
    }
    return n;
}

static const char *check_piece(lua_State *L, int arg, size_t *len)
{
    const char *data = luaL_optlstring(L, arg, "", len);
    luaL_argcheck(L, *len <= ONE_PIECE, arg, "too large for one piece: use a stream");
    return data;
}

/* request:answer(status, fields, body) -> true | nil, err */
static int l_answer(lua_State *L)
{
    struct request *r = check_request(L);
    struct ab_web_pair pairs[AB_WEB_FIELDS];
    struct ab_err err;
    size_t len;
    int status = (int)luaL_checkinteger(L, 2);
    unsigned n = check_fields(L, 3, pairs, AB_WEB_FIELDS);
    const char *body = check_piece(L, 4, &len);
    if (ab_web_answer(r->ex, status, pairs, n, body, len, &err) < 0)
        return abl_push_err(L, &err, "http_server");
    lua_pushboolean(L, 1);
    return 1;
}

/* request:begin(status, fields) -> true | nil, err */
static int l_begin(lua_State *L)
{
    struct request *r = check_request(L);
    struct ab_web_pair pairs[AB_WEB_FIELDS];
    struct ab_err err;
    int status = (int)luaL_checkinteger(L, 2);
    unsigned n = check_fields(L, 3, pairs, AB_WEB_FIELDS);
    if (ab_web_begin(r->ex, status, pairs, n, &err) < 0)
        return abl_push_err(L, &err, "http_server");
    lua_pushboolean(L, 1);
    return 1;
}

static int finish_write(lua_State *L, struct request *r)
{
    struct ab_err err;
    if (r->ex && !ab_web_is_over(r->ex)) {
        lua_pushboolean(L, 1);
        return 1;
    }
    ab_err_set(&err, AB_ENETWORK, "the client has left");
    return abl_push_err(L, &err, "http_server");
}

static int push_drained(lua_State *L, struct ab_op *op)
{
    struct request *r = luaL_checkudata(L, 1, REQUEST_TYPE);
    (void)op;
    return finish_write(L, r);
}

/* request:write(bytes) -> true | nil, err: waits while too much is on its way */
static int l_write(lua_State *L)
{
    struct request *r = check_request(L);
    size_t len;
    const char *data = check_piece(L, 2, &len);
    if (!ab_web_has_begun(r->ex))
        luaL_error(L, "the answer has not begun");
    ab_web_write(r->ex, data, len);
    lua_settop(L, 1);
    if (ab_web_is_over(r->ex) || ab_web_may_write(r->ex))
        return finish_write(L, r);
    if (ab_web_has_writer(r->ex))
        luaL_error(L, "another fiber writes this answer");
    struct ab_anchor *anchor = abl_anchor(L);
    anchor->op = ab_web_drained(r->ex);
    return abl_wait(L, anchor, push_drained);
}

/* request:push(bytes) -> whether it was taken: never waits */
static int l_push(lua_State *L)
{
    struct request *r = check_request(L);
    size_t len;
    const char *data = check_piece(L, 2, &len);
    bool room = !ab_web_is_over(r->ex) && ab_web_may_write(r->ex);
    if (room)
        ab_web_write(r->ex, data, len);
    lua_pushboolean(L, room);
    return 1;
}

static int l_finish(lua_State *L)
{
    ab_web_finish(check_request(L)->ex);
    return 0;
}

/* request:close(): what is not answered is cut off. May be called twice. */
static int l_request_close(lua_State *L)
{
    struct request *r = luaL_checkudata(L, 1, REQUEST_TYPE);
    struct ab_web_exchange *ex = r->ex;
    r->ex = NULL;
    if (ex)
        ab_web_release(ex);
    return 0;
}

/* ---- registration ---- */

static void register_type(lua_State *L, const char *name, const luaL_Reg *methods)
{
    luaL_newmetatable(L, name);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

int luaopen_agentbox_sys_http_server(lua_State *L)
{
    static const luaL_Reg server[] = {
        {"next", l_next},
        {"address", l_address},
        {"stop", l_stop},
        {"close", l_server_close},
        {"stats", l_stats},
        {"__gc", l_server_close},
        {"__close", l_server_close},
        {NULL, NULL},
    };
    static const luaL_Reg request[] = {
        {"field", l_field},
        {"fields", l_fields},
        {"body", l_body},
        {"peer", l_peer},
        {"by_query", l_by_query},
        {"bind", l_bind},
        {"unbind", l_unbind},
        {"gone", l_gone},
        {"over", l_over},
        {"begun", l_begun},
        {"answer", l_answer},
        {"begin", l_begin},
        {"write", l_write},
        {"push", l_push},
        {"finish", l_finish},
        {"close", l_request_close},
        {"__gc", l_request_close},
        {"__close", l_request_close},
        {NULL, NULL},
    };
    static const luaL_Reg lib[] = {{"listen", l_listen}, {NULL, NULL}};
    register_type(L, SERVER_TYPE, server);
    register_type(L, REQUEST_TYPE, request);
    luaL_newlib(L, lib);
    return 1;
}
