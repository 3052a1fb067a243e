#include "rt/door.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rt/names.h"
#include "rt/relay.h"

#define TICK_MS  250
#define SETUP_MS 10000
#define ACCEPTS  512 /* in a tick */
#define PACKETS  128
#define BATCH    16

/* One of the sockets that the door waits at. */
struct post {
    struct ab_door *door;
    uv_poll_t poll;
    int fd; /* owns */
    uint16_t port;
};

struct ab_door {
    struct ab_loop *loop;
    struct ab_allow *allow; /* owns */
    struct ab_door_limits limits;
    struct ab_names *names; /* owns */
    struct post posts[AB_ALLOW_PORTS + 1];
    int nposts;
    bool watching;        /* the last post tells of packets */
    int accepts, packets; /* left until the next tick */
    bool paused, ticking;
    int handles;
    uv_timer_t tick;
    struct ab_list relays;
    struct ab_door_stats stats;
    struct ab_denial *denials; /* owns */
    size_t ndenials;
};

const char *ab_denied_name(enum ab_denied_why why)
{
    static const char *const names[] = {
        [AB_DENIED_NAME] = "name",          [AB_DENIED_ADDRESS] = "address",
        [AB_DENIED_PORT] = "port",          [AB_DENIED_PRIVATE] = "private_address",
        [AB_DENIED_SERVER] = "server_name", [AB_DENIED_LIMIT] = "limit",
    };
    return names[why];
}

/* ---- what was refused ---- */

static bool same(const struct ab_denial *a, const struct ab_denial *b)
{
    return a->port == b->port && a->why == b->why && a->has_addr == b->has_addr &&
           !strcmp(a->protocol, b->protocol) && !strcmp(a->name, b->name) &&
           (!a->has_addr || ab_addr_equal(&a->addr, &b->addr));
}

static void deny(struct ab_door *d, const char *protocol, enum ab_denied_why why,
                 const char *name, const struct ab_addr *addr, uint16_t port)
{
    uv_timeval64_t now;
    struct ab_denial one = {.port = port, .why = why, .count = 1};
    uv_gettimeofday(&now);
    one.first = one.last = (double)now.tv_sec + (double)now.tv_usec / 1e6;
    memcpy(one.protocol, protocol, strlen(protocol));
    if (name)
        memcpy(one.name, name, strnlen(name, sizeof one.name - 1));
    if (addr) {
        one.addr = *addr;
        one.has_addr = true;
    }
    d->stats.denied++;
    for (size_t i = 0; i < d->ndenials; i++)
        if (same(&d->denials[i], &one)) {
            d->denials[i].count++;
            d->denials[i].last = one.last;
            return;
        }
    if (d->ndenials == AB_DOOR_DENIALS)
        return;
    if (!d->denials)
        d->denials = ab_xcalloc(AB_DOOR_DENIALS, sizeof *d->denials);
    d->denials[d->ndenials++] = one;
}

const struct ab_denial *ab_door_denials(const struct ab_door *d, size_t *count)
{
    *count = d->ndenials;
    return d->denials;
}

struct ab_denial *ab_door_take_denials(struct ab_door *d, size_t *count)
{
    struct ab_denial *list = d->denials;
    *count = d->ndenials;
    d->denials = NULL;
    d->ndenials = 0;
    return list;
}

void ab_door_stats(const struct ab_door *d, struct ab_door_stats *out)
{
    *out = d->stats;
}

/* ---- time ---- */

static void on_accept(uv_poll_t *h, int status, int events);
static void on_packet(uv_poll_t *h, int status, int events);

static void start_posts(struct ab_door *d)
{
    d->paused = false;
    for (int i = 0; i < d->nposts; i++) {
        bool packets = d->watching && i == d->nposts - 1;
        uv_poll_start(&d->posts[i].poll, UV_READABLE, packets ? on_packet : on_accept);
    }
}

static void on_tick(uv_timer_t *t)
{
    struct ab_door *d = t->data;
    bool idle =
        d->accepts == ACCEPTS && d->packets == PACKETS && ab_list_empty(&d->relays);
    d->accepts = ACCEPTS;
    d->packets = PACKETS;
    if (d->paused)
        start_posts(d);
    ab_names_tick(d->names);
    ab_relay_expire(&d->relays, uv_now(&d->loop->uv), SETUP_MS, d->limits.idle_ms);
    if (idle) {
        uv_timer_stop(t);
        d->ticking = false;
    }
}

static void need_ticks(struct ab_door *d)
{
    if (d->ticking)
        return;
    d->ticking = true;
    uv_timer_start(&d->tick, on_tick, TICK_MS, TICK_MS);
}

/* A flood is left where it is until the next tick, so that others get their turn. */
static bool spend(struct ab_door *d, int *left, uv_poll_t *h)
{
    need_ticks(d);
    if (*left > 0) {
        --*left;
        return true;
    }
    uv_poll_stop(h);
    d->paused = true;
    return false;
}

/* ---- connections ---- */

static bool may_greet(void *arg, const char *server, uint16_t port)
{
    struct ab_door *d = arg;
    if (*server && ab_allow_name(d->allow, server, port))
        return true;
    deny(d, "tcp", AB_DENIED_SERVER, server, NULL, port);
    return false;
}

static bool carried(void *arg, size_t bytes)
{
    struct ab_door *d = arg;
    if (bytes > d->limits.bytes - d->stats.bytes) {
        deny(d, "tcp", AB_DENIED_LIMIT, "bytes", NULL, 0);
        d->stats.bytes =
            d->limits.bytes; /* used up, whatever the size of the last piece */
        return false;
    }
    d->stats.bytes += bytes;
    return true;
}

static void on_over(void *arg, bool failed)
{
    struct ab_door *d = arg;
    d->stats.open--;
    d->stats.failed += failed;
}

static const struct ab_relay_class relay_class = {
    .may_greet = may_greet, .carried = carried, .over = on_over};

/* Where a connection to a name goes: addresses that it led to when it was asked for, as
 * far as they may be reached on this port. */
static bool aim_at_name(struct ab_door *d, const struct ab_addr *addr, uint16_t port,
                        struct ab_relay_target *to)
{
    const struct ab_name *name = ab_names_find(d->names, addr);
    if (!name || !ab_allow_name(d->allow, name->text, port)) {
        deny(d, "tcp", name ? AB_DENIED_PORT : AB_DENIED_ADDRESS,
             name ? name->text : NULL, name ? NULL : addr, port);
        return false;
    }
    const struct ab_addr *bad = NULL;
    for (int i = 0; i < name->count; i++) {
        if (name->inner[i] && !ab_allow_addr(d->allow, &name->addrs[i], port))
            bad = &name->addrs[i];
        else
            to->addrs[to->count++] = name->addrs[i];
    }
    to->by_name = true;
    if (to->count == 0)
        deny(d, "tcp", AB_DENIED_PRIVATE, name->text, bad, port);
    return to->count > 0;
}

static bool aim(struct ab_door *d, int fd, uint16_t port, struct ab_relay_target *to)
{
    struct sockaddr_storage sa;
    socklen_t len = sizeof sa;
    struct ab_addr addr;
    uint16_t same_port;
    to->port = port;
    if (getsockname(fd, (struct sockaddr *)&sa, &len) < 0 ||
        !ab_addr_from((struct sockaddr *)&sa, &addr, &same_port) ||
        ab_addr_is_loopback(&addr)) /* its own: there is nothing of it on this port */
        return false;
    if (d->stats.open >= d->limits.connections || d->stats.bytes >= d->limits.bytes) {
        deny(d, "tcp", AB_DENIED_LIMIT,
             d->stats.bytes >= d->limits.bytes ? "bytes" : "connections", NULL, 0);
        return false;
    }
    if (ab_names_owns(&addr))
        return aim_at_name(d, &addr, port, to);
    to->addrs[to->count++] = addr;
    if (ab_allow_addr(d->allow, &addr, port))
        return true;
    deny(d, "tcp", AB_DENIED_ADDRESS, NULL, &addr, port);
    return false;
}

static void on_accept(uv_poll_t *h, int status, int events)
{
    struct post *post = h->data;
    struct ab_door *d = post->door;
    (void)status;
    (void)events;
    for (int i = 0; i < BATCH; i++) {
        if (!spend(d, &d->accepts, h))
            return;
        int fd = accept4(post->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            d->accepts += errno == EAGAIN;
            return; /* without descriptors it is tried again at the next turn */
        }
        struct ab_relay_target to = {0};
        if (!aim(d, fd, post->port, &to)) {
            ab_relay_refuse(fd);
            continue;
        }
        d->stats.connections++;
        d->stats.open++;
        ab_relay_start(d->loop, &d->relays, fd, &to, &relay_class, d);
    }
}

/* ---- attempts at other ports ---- */

static void take_packet(struct ab_door *d, const uint8_t *p, size_t len)
{
    struct ab_addr addr;
    size_t head;
    int protocol;
    if (len >= 20 && p[0] >> 4 == 4) {
        head = (size_t)(p[0] & 15) * 4;
        protocol = p[9];
        addr = ab_addr_v4((uint32_t)p[16] << 24 | (uint32_t)p[17] << 16 |
                          (uint32_t)p[18] << 8 | p[19]);
    } else if (len >= 40 && p[0] >> 4 == 6) {
        head = 40;
        protocol = p[6];
        memcpy(addr.b, p + 24, sizeof addr.b);
    } else {
        return;
    }
    if (len < head + 4)
        return;
    uint16_t port = (uint16_t)(p[head + 2] << 8 | p[head + 3]);
    const struct ab_name *name = ab_names_find(d->names, &addr);
    deny(d, protocol == IPPROTO_UDP ? "udp" : "tcp",
         name ? AB_DENIED_PORT : AB_DENIED_ADDRESS, name ? name->text : NULL,
         name ? NULL : &addr, port);
}

static void on_packet(uv_poll_t *h, int status, int events)
{
    struct post *post = h->data;
    struct ab_door *d = post->door;
    uint8_t packet[64];
    (void)status;
    (void)events;
    for (int i = 0; i < BATCH; i++) {
        if (!spend(d, &d->packets, h))
            return;
        ssize_t n = recv(post->fd, packet, sizeof packet, MSG_DONTWAIT);
        if (n < 0) {
            d->packets++;
            return;
        }
        take_packet(d, packet, (size_t)n);
    }
}

/* ---- questions ---- */

static void on_refused(void *arg, const char *name, const struct ab_addr *addr,
                       bool limit)
{
    struct ab_door *d = arg;
    deny(d, "dns",
         limit  ? AB_DENIED_LIMIT
         : addr ? AB_DENIED_PRIVATE
                : AB_DENIED_NAME,
         name, addr, 0);
}

static void on_asked(void *arg)
{
    struct ab_door *d = arg;
    d->stats.questions++;
    d->packets -= d->packets == PACKETS; /* so that the next tick is not taken for idle */
    need_ticks(d);
}

static const struct ab_names_class names_class = {.refused = on_refused,
                                                  .asked = on_asked};

/* ---- life ---- */

static void add_post(struct ab_door *d, int fd, uint16_t port)
{
    struct post *post = &d->posts[d->nposts++];
    *post = (struct post){.door = d, .fd = fd, .port = port};
    if (uv_poll_init(&d->loop->uv, &post->poll, fd) < 0)
        AB_BUG("a socket that cannot be polled");
    post->poll.data = post;
    uv_unref((uv_handle_t *)&post->poll);
    d->handles++;
}

struct ab_door *ab_door_open(struct ab_loop *loop, const int *fds, int nfds,
                             struct ab_allow *allow, const struct ab_door_limits *limits)
{
    struct ab_door *d = ab_xcalloc(1, sizeof *d);
    uint16_t ports[AB_ALLOW_PORTS];
    int nports = ab_allow_ports(allow, ports);
    d->loop = loop;
    d->allow = allow;
    d->limits = *limits;
    d->accepts = ACCEPTS;
    d->packets = PACKETS;
    ab_list_init(&d->relays);
    d->names = ab_names_open(loop, fds[0], allow, &names_class, d);
    for (int i = 0; i < nports; i++)
        add_post(d, fds[1 + i], ports[i]);
    d->watching = nfds > nports + 1;
    if (d->watching)
        add_post(d, fds[1 + nports], 0);
    uv_timer_init(&loop->uv, &d->tick);
    d->tick.data = d;
    uv_unref((uv_handle_t *)&d->tick);
    d->handles++;
    start_posts(d);
    return d;
}

static void let_go(struct ab_door *d)
{
    if (--d->handles == 0)
        free(d);
}

static void on_post_closed(uv_handle_t *h)
{
    struct post *post = h->data;
    let_go(post->door);
}

static void on_tick_closed(uv_handle_t *h)
{
    let_go(h->data);
}

void ab_door_close(struct ab_door *d)
{
    if (!d)
        return;
    ab_relay_end(&d->relays);
    ab_names_close(d->names);
    for (int i = 0; i < d->nposts; i++) {
        uv_close((uv_handle_t *)&d->posts[i].poll, on_post_closed);
        close(d->posts[i].fd);
    }
    uv_close((uv_handle_t *)&d->tick, on_tick_closed);
    ab_allow_free(d->allow);
    free(d->denials);
}
