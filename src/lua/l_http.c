/* l_http.c - agentbox.sys.http: transfers as values. What a user sees is
 * lua/stdlib/http.lua. */
#include <string.h>

#include "lua/conv.h"
#include "lua/fiber.h"
#include "lua/l_http_bare.h"
#include "rt/http.h"

#define STREAM_TYPE "agentbox.http.stream"
#define CLIENT_TYPE "agentbox.http.client"

int luaopen_agentbox_sys_http(lua_State *L);

struct client {
    struct ab_http *http; /* owns; NULL until the first request */
};

struct stream {
    struct ab_http_transfer *t; /* owns; NULL when closed */
};

static struct ab_http *client(lua_State *L, struct ab_err *err)
{
    struct client *c = lua_touserdata(L, lua_upvalueindex(1));
    if (!c->http)
        c->http = ab_http_new(abl_loop(L), err);
    return c->http;
}

static int l_client_gc(lua_State *L)
{
    struct client *c = luaL_checkudata(L, 1, CLIENT_TYPE);
    ab_http_free(c->http);
    c->http = NULL;
    return 0;
}

/* forget(): closes the connections that are kept for requests to come. */
static int l_forget(lua_State *L)
{
    struct client *c = lua_touserdata(L, lua_upvalueindex(1));
    if (c->http)
        ab_http_forget(c->http);
    return 0;
}

/* ---- the request ---- */

static const char *const options[] = {
    "method",
    "url",
    "headers",
    "body",
    "connect_timeout_s",
    "timeout_s",
    "idle_timeout_s",
    "first_byte_timeout_s",
    "proxy",
    "unix_socket",
    "ca_file",
    "ca_pem",
    "cert_pem",
    "key_pem",
    "insecure",
    "host_limit",
    "max_redirects",
    "max_body_bytes",
    "keep_alive",
    NULL,
};

static uint64_t opt_ms(lua_State *L, const char *key)
{
    lua_Number s = abl_opt_number(L, 1, key, 0);
    if (!(s >= 0 && s < 1e9))
        luaL_error(L, "option '%s': must be between 0 and 1e9 seconds", key);
    return s > 0 && s < 0.001 ? 1 : (uint64_t)(s * 1000);
}

static lua_Integer opt_count(lua_State *L, const char *key)
{
    lua_Integer n = abl_opt_integer(L, 1, key, 0);
    if (n < 0)
        luaL_error(L, "option '%s': must not be negative", key);
    return n;
}

/* Leaves on the stack what keeps the strings alive. */
static void check_headers(lua_State *L, struct ab_http_spec *spec)
{
    if (lua_getfield(L, 1, "headers") == LUA_TNIL)
        return;
    luaL_checktype(L, -1, LUA_TTABLE);
    size_t n = (size_t)luaL_len(L, -1);
    const char **list = lua_newuserdatauv(L, (n ? n : 1) * sizeof *list, 0);
    for (size_t i = 0; i < n; i++) {
        size_t bytes;
        if (lua_rawgeti(L, -2, (lua_Integer)i + 1) != LUA_TSTRING)
            luaL_error(L, "option 'headers': entry %d is not a string", (int)i + 1);
        list[i] = lua_tolstring(L, -1, &bytes);
        if (strlen(list[i]) != bytes)
            luaL_error(L, "option 'headers': entry %d contains a NUL byte", (int)i + 1);
        lua_pop(L, 1);
    }
    spec->headers = list;
    spec->header_count = n;
}

static void check_spec(lua_State *L, struct ab_http_spec *spec)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    abl_check_keys(L, 1, options);
    spec->method = abl_opt_string(L, 1, "method", "GET");
    spec->url = abl_opt_string(L, 1, "url", "");
    spec->unix_socket = abl_opt_string(L, 1, "unix_socket", NULL);
    spec->proxy = abl_opt_string(L, 1, "proxy", NULL);
    spec->ca_file = abl_opt_string(L, 1, "ca_file", NULL);
    spec->ca_pem = abl_opt_string(L, 1, "ca_pem", NULL);
    spec->cert_pem = abl_opt_string(L, 1, "cert_pem", NULL);
    spec->key_pem = abl_opt_string(L, 1, "key_pem", NULL);
    spec->insecure = abl_opt_boolean(L, 1, "insecure", false);
    spec->once = !abl_opt_boolean(L, 1, "keep_alive", true);
    spec->connect_ms = opt_ms(L, "connect_timeout_s");
    spec->first_byte_ms = opt_ms(L, "first_byte_timeout_s");
    spec->idle_ms = opt_ms(L, "idle_timeout_s");
    spec->total_ms = opt_ms(L, "timeout_s");
    spec->max_body_bytes = (uint64_t)opt_count(L, "max_body_bytes");
    spec->max_redirects = (long)opt_count(L, "max_redirects");
    spec->host_limit = (unsigned)opt_count(L, "host_limit");
    check_headers(L, spec);
}

/* Pushes a stream that holds on to the body text: the transfer only borrows it. */
static struct stream *push_stream(lua_State *L, struct ab_http_spec *spec)
{
    struct stream *s = lua_newuserdatauv(L, sizeof *s, 1);
    s->t = NULL;
    luaL_setmetatable(L, STREAM_TYPE);
    int type = lua_getfield(L, 1, "body");
    if (type != LUA_TNIL && type != LUA_TSTRING)
        luaL_error(L, "option 'body': string expected, got %s", luaL_typename(L, -1));
    spec->body = lua_tolstring(L, -1, &spec->body_bytes);
    lua_setiuservalue(L, -2, 1);
    return s;
}

/* ---- the response ---- */

static void push_headers(lua_State *L, const struct ab_http_transfer *t)
{
    size_t bytes;
    const char *p = ab_http_head(t, &bytes), *end = p + bytes;
    lua_Integer n = 0;
    lua_newtable(L);
    while (p < end) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        const char *stop = eol ? eol : end, *colon = memchr(p, ':', (size_t)(stop - p));
        while (stop > p && (stop[-1] == '\r' || stop[-1] == ' '))
            stop--;
        if (colon && colon < stop + 1 && strncmp(p, "HTTP/", 5) != 0) {
            const char *value = colon + 1;
            while (value < stop && (*value == ' ' || *value == '\t'))
                value++;
            lua_createtable(L, 2, 0);
            lua_pushlstring(L, p, (size_t)(colon - p));
            lua_rawseti(L, -2, 1);
            lua_pushlstring(L, value, value < stop ? (size_t)(stop - value) : 0);
            lua_rawseti(L, -2, 2);
            lua_rawseti(L, -2, ++n);
        }
        p = eol ? eol + 1 : end;
    }
}

static void push_timing(lua_State *L, const struct ab_http_transfer *t)
{
    struct ab_http_timing timing = ab_http_timing(t);
    const struct {
        const char *key;
        double value;
    } fields[] = {
        {"queue_s", timing.queue_s},           {"dns_s", timing.dns_s},
        {"connect_s", timing.connect_s},       {"tls_s", timing.tls_s},
        {"first_byte_s", timing.first_byte_s}, {"total_s", timing.total_s},
    };
    lua_createtable(L, 0, 6);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (fields[i].value <= 0)
            continue;
        lua_pushnumber(L, fields[i].value);
        lua_setfield(L, -2, fields[i].key);
    }
}

static void push_response(lua_State *L, const struct ab_http_transfer *t)
{
    lua_createtable(L, 0, 6);
    lua_pushinteger(L, ab_http_status(t));
    lua_setfield(L, -2, "status");
    push_headers(L, t);
    lua_setfield(L, -2, "headers");
    lua_pushstring(L, ab_http_url(t));
    lua_setfield(L, -2, "url");
    lua_pushstring(L, ab_http_ip(t));
    lua_setfield(L, -2, "ip");
    push_timing(L, t);
    lua_setfield(L, -2, "timing");
}

/* nil, err; err.phase says how far the transfer came, err.queue_s how long it had to
 * queue. */
static int push_failure(lua_State *L, const struct ab_http_transfer *t)
{
    int n = abl_push_err(L, ab_http_error(t), "http");
    lua_pushstring(L, ab_http_phase(t));
    lua_setfield(L, -2, "phase");
    lua_pushnumber(L, ab_http_timing(t).queue_s);
    lua_setfield(L, -2, "queue_s");
    return n;
}

static int finish_request(lua_State *L, struct stream *s)
{
    int n = 1;
    if (ab_http_error(s->t))
        n = push_failure(L, s->t);
    else {
        size_t bytes;
        const char *body = ab_http_body(s->t, &bytes);
        push_response(L, s->t);
        lua_pushlstring(L, body, bytes);
        lua_setfield(L, -2, "body");
    }
    ab_http_close(s->t);
    s->t = NULL;
    return n;
}

static int finish_open(lua_State *L, struct stream *s)
{
    if (ab_http_error(s->t)) {
        int n = push_failure(L, s->t);
        ab_http_close(s->t);
        s->t = NULL;
        return n;
    }
    lua_pushvalue(L, 2);
    push_response(L, s->t);
    return 2;
}

static int finish_read(lua_State *L, struct stream *s)
{
    size_t bytes;
    const char *body = ab_http_body(s->t, &bytes);
    if (bytes) {
        lua_pushlstring(L, body, bytes);
        ab_http_consume(s->t);
        return 1;
    }
    if (ab_http_error(s->t))
        return push_failure(L, s->t);
    lua_pushnil(L);
    return 1;
}

/* Continuations: the stream's slot is where the function that waited put it. */
static int push_requested(lua_State *L, struct ab_op *op)
{
    (void)op;
    return finish_request(L, lua_touserdata(L, 2));
}

static int push_opened(lua_State *L, struct ab_op *op)
{
    (void)op;
    return finish_open(L, lua_touserdata(L, 2));
}

static int push_read(lua_State *L, struct ab_op *op)
{
    struct stream *s = lua_touserdata(L, 1);
    struct ab_err closed;
    if (s->t)
        return finish_read(L, s);
    ab_err_set(&closed, AB_ECANCELLED, "another fiber closed the stream");
    return abl_push_err(L, op->err ? op->err : &closed, "http");
}

/* Puts the stream into slot 2, starts, and gives the anchor to wait with; NULL when the
 * spec itself is unusable (err is set). */
static struct ab_anchor *start(lua_State *L, bool stream, bool bare, struct ab_err *err)
{
    struct ab_http_spec spec = {.stream = stream, .bare = bare};
    lua_settop(L, 1);
    lua_pushnil(L);
    struct ab_anchor *anchor = abl_anchor(L);
    check_spec(L, &spec);
    struct stream *s = push_stream(L, &spec);
    lua_replace(L, 2);
    struct ab_http *http = client(L, err);
    if (http)
        s->t = ab_http_start(http, &spec, err);
    lua_pushnil(L); /* a thousand waits need not hold a thousand tables of options */
    lua_replace(L, 1);
    return s->t ? anchor : NULL;
}

/* request(spec) -> { status, headers, body, url, ip, timing } | nil, err */
static int l_request(lua_State *L)
{
    struct ab_err err;
    struct ab_anchor *anchor = start(L, false, false, &err);
    if (!anchor)
        return abl_push_err(L, &err, "http");
    struct stream *s = lua_touserdata(L, 2);
    if (ab_http_ready(s->t, AB_HTTP_END))
        return finish_request(L, s);
    anchor->op = ab_http_wait(s->t, AB_HTTP_END);
    return abl_wait(L, anchor, push_requested);
}

/* open(spec) -> stream, { status, headers, url, ip, timing } | nil, err */
static int l_open(lua_State *L)
{
    struct ab_err err;
    struct ab_anchor *anchor = start(L, true, false, &err);
    if (!anchor)
        return abl_push_err(L, &err, "http");
    struct stream *s = lua_touserdata(L, 2);
    if (ab_http_ready(s->t, AB_HTTP_HEAD))
        return finish_open(L, s);
    anchor->op = ab_http_wait(s->t, AB_HTTP_HEAD);
    return abl_wait(L, anchor, push_opened);
}

static int push_connected(lua_State *L, struct ab_op *op)
{
    struct stream *s = lua_touserdata(L, 2);
    (void)op;
    if (ab_http_error(s->t)) {
        int n = push_failure(L, s->t);
        ab_http_close(s->t);
        s->t = NULL;
        return n;
    }
    return abl_push_bare(L, &s->t);
}

/* connect(spec) -> connection | nil, err: bytes, both ways; see l_http_bare.c */
static int l_connect(lua_State *L)
{
    struct ab_err err;
    struct ab_anchor *anchor = start(L, true, true, &err);
    if (!anchor)
        return abl_push_err(L, &err, "http");
    struct stream *s = lua_touserdata(L, 2);
    if (ab_http_ready(s->t, AB_HTTP_HEAD))
        return push_connected(L, NULL);
    anchor->op = ab_http_wait(s->t, AB_HTTP_HEAD);
    return abl_wait(L, anchor, push_connected);
}

/* stream:read() -> bytes | nil (the end) | nil, err */
static int l_read(lua_State *L)
{
    struct stream *s = luaL_checkudata(L, 1, STREAM_TYPE);
    if (!s->t)
        luaL_error(L, "the stream is closed");
    if (ab_http_waiting(s->t))
        luaL_error(L, "another fiber reads this stream");
    lua_settop(L, 1);
    if (ab_http_ready(s->t, AB_HTTP_CHUNK))
        return finish_read(L, s);
    struct ab_anchor *anchor = abl_anchor(L);
    anchor->op = ab_http_wait(s->t, AB_HTTP_CHUNK);
    return abl_wait(L, anchor, push_read);
}

/* stream:close(): aborts what still runs. May be called twice. */
static int l_close(lua_State *L)
{
    struct stream *s = luaL_checkudata(L, 1, STREAM_TYPE);
    struct ab_http_transfer *t = s->t;
    s->t = NULL;
    ab_http_close(t);
    return 0;
}

/* date(text) -> seconds since 1970 of an HTTP date, or nil */
static int l_date(lua_State *L)
{
    struct ab_err err;
    const char *text = luaL_checkstring(L, 1);
    struct ab_http *http = client(L, &err);
    int64_t at = http ? ab_http_date(http, text) : -1;
    if (at >= 0)
        lua_pushinteger(L, at);
    else
        lua_pushnil(L);
    return 1;
}

static void register_types(lua_State *L)
{
    static const luaL_Reg stream[] = {
        {"__gc", l_close},  {"__close", l_close}, {"read", l_read},
        {"close", l_close}, {NULL, NULL},
    };
    luaL_newmetatable(L, STREAM_TYPE);
    luaL_setfuncs(L, stream, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    luaL_newmetatable(L, CLIENT_TYPE);
    lua_pushcfunction(L, l_client_gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 2);
}

int luaopen_agentbox_sys_http(lua_State *L)
{
    static const luaL_Reg lib[] = {
        {"request", l_request}, {"open", l_open},     {"connect", l_connect},
        {"date", l_date},       {"forget", l_forget}, {NULL, NULL},
    };
    register_types(L);
    abl_bare_register(L);
    luaL_newlibtable(L, lib);
    struct client *c = lua_newuserdatauv(L, sizeof *c, 0);
    c->http = NULL;
    luaL_setmetatable(L, CLIENT_TYPE);
    luaL_setfuncs(L, lib, 1);
    return 1;
}
