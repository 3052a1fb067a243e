#include "rt/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/dns.h"

#define FIRST      0xc6120002u /* 198.18.0.2, the address of the first name */
#define RANGE      0xc6120000u
#define RANGE_BITS 15
#define NAMES      1024
#define LOOKUPS    8  /* under way */
#define WAITING    32 /* questions that wait for them */
#define SHARE      256
#define BATCH      32
#define TTL_S      30
#define KEEP_MS    30000
#define FORGET_MS  2000 /* of a name that leads nowhere */

/* Where an answer goes: whence the question came, and to which address it was sent. */
struct asker {
    struct sockaddr_storage from;
    socklen_t from_len;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(64)];
    } control;
    size_t control_len;
};

struct waiting {
    struct asker asker;
    struct ab_dns_question q;
    uint8_t msg[AB_DNS_MAX];
    int name; /* -1: free */
};

struct ab_names {
    struct ab_loop *loop;
    const struct ab_allow *allow;
    const struct ab_names_class *cls;
    void *arg;
    uv_poll_t poll;
    int fd;
    int share; /* questions until the next tick */
    bool paused;
    int lookups;
    struct ab_list asked; /* lookups under way */
    struct waiting waiting[WAITING];
    struct ab_name names[NAMES];
    int count;
};

struct lookup {
    uv_getaddrinfo_t req;
    struct ab_list link;
    struct ab_names *names; /* NULL when nobody waits any more */
    int name;
};

bool ab_names_owns(const struct ab_addr *addr)
{
    return ab_addr_is_v4(addr) && (ab_addr_to_v4(addr) ^ RANGE) >> (32 - RANGE_BITS) == 0;
}

const struct ab_name *ab_names_find(const struct ab_names *n, const struct ab_addr *addr)
{
    uint32_t at = ab_addr_to_v4(addr) - FIRST;
    return ab_names_owns(addr) && at < (uint32_t)n->count ? &n->names[at] : NULL;
}

static void answer(const struct ab_names *n, const struct asker *to, const uint8_t *msg,
                   const struct ab_dns_question *q, enum ab_dns_code code, int name)
{
    uint8_t out[AB_DNS_MAX];
    size_t len =
        ab_dns_answer(msg, q, code, name < 0 ? 0 : FIRST + (uint32_t)name, TTL_S, out);
    struct iovec iov = {out, len};
    struct msghdr m = {
        .msg_name = (void *)(uintptr_t)&to->from,
        .msg_namelen = to->from_len,
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = to->control_len ? (void *)(uintptr_t)to->control.bytes : NULL,
        .msg_controllen = to->control_len,
    };
    sendmsg(n->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL); /* who is not heard asks again */
}

static void answer_known(const struct ab_names *n, const struct asker *to,
                         const uint8_t *msg, const struct ab_dns_question *q, int name)
{
    const struct ab_name *e = &n->names[name];
    bool address = e->code == AB_DNS_OK && q->type == AB_DNS_A;
    answer(n, to, msg, q, (enum ab_dns_code)e->code, address ? name : -1);
}

static void answer_waiting(struct ab_names *n, int name)
{
    for (int i = 0; i < WAITING; i++) {
        struct waiting *w = &n->waiting[i];
        if (w->name != name)
            continue;
        answer_known(n, &w->asker, w->msg, &w->q, name);
        w->name = -1;
    }
}

/* Services of this machine listen on its other addresses too. */
static bool is_own(const struct ab_addr *addr)
{
    uv_interface_address_t *list;
    int count;
    bool own = false;
    if (uv_interface_addresses(&list, &count) < 0)
        return true; /* not known: rather not */
    for (int i = 0; i < count && !own; i++) {
        struct ab_addr mine;
        uint16_t port;
        const struct sockaddr *sa = (const struct sockaddr *)&list[i].address;
        own = ab_addr_from(sa, &mine, &port) && ab_addr_equal(&mine, addr);
    }
    uv_free_interface_addresses(list, count);
    return own;
}

static bool has_addr(const struct ab_name *e, const struct ab_addr *addr)
{
    for (int i = 0; i < e->count; i++)
        if (ab_addr_equal(&e->addrs[i], addr))
            return true;
    return false;
}

/* Keeps what may be reached; an address that may not be is told. */
static void take_addresses(struct ab_names *n, struct ab_name *e,
                           const struct addrinfo *list)
{
    struct ab_addr addr, bad;
    bool refused = false;
    e->count = 0;
    for (; list && e->count < AB_NAME_ADDRS; list = list->ai_next) {
        uint16_t port;
        if (!ab_addr_from(list->ai_addr, &addr, &port) || has_addr(e, &addr))
            continue;
        bool inner = ab_addr_special(&addr) || is_own(&addr);
        if (inner && !ab_allow_addr(n->allow, &addr, 0)) {
            bad = addr;
            refused = true;
            continue;
        }
        e->addrs[e->count] = addr;
        e->inner[e->count++] = inner;
    }
    if (refused)
        n->cls->refused(n->arg, e->text, &bad, false);
}

static void on_found(uv_getaddrinfo_t *req, int status, struct addrinfo *list)
{
    struct lookup *l = AB_CONTAINER(req, struct lookup, req);
    struct ab_names *n = l->names;
    if (n) {
        struct ab_name *e = &n->names[l->name];
        take_addresses(n, e, status == 0 ? list : NULL);
        bool none = status == 0 || status == UV_EAI_NONAME || status == UV_EAI_NODATA ||
                    status == UV_EAI_ADDRFAMILY;
        e->code = e->count ? AB_DNS_OK : none ? AB_DNS_NO_NAME : AB_DNS_FAILED;
        e->known = true;
        e->asking = false;
        e->until_ms = uv_now(&n->loop->uv) + (e->count ? KEEP_MS : FORGET_MS);
        n->lookups--;
        ab_list_remove(&l->link);
        answer_waiting(n, l->name);
    }
    uv_freeaddrinfo(list);
    free(l);
}

static void look_up(struct ab_names *n, int name)
{
    static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct lookup *l = ab_xcalloc(1, sizeof *l);
    l->names = n;
    l->name = name;
    int rc = uv_getaddrinfo(&n->loop->uv, &l->req, on_found, n->names[name].text, NULL,
                            &hints);
    if (rc < 0) {
        free(l);
        n->names[name].code = AB_DNS_FAILED;
        answer_waiting(n, name);
        return;
    }
    n->names[name].asking = true;
    n->lookups++;
    ab_list_append(&n->asked, &l->link);
}

/* The number of a name, which gets one when it is new; -1 when there are too many. */
static int number_of(struct ab_names *n, const char *text)
{
    for (int i = 0; i < n->count; i++)
        if (!strcmp(n->names[i].text, text))
            return i;
    if (n->count == NAMES)
        return -1;
    struct ab_name *e = &n->names[n->count];
    const struct ab_addr *host = ab_allow_find_host(n->allow, text);
    *e = (struct ab_name){.text = ab_xstrndup(text, strlen(text))};
    if (host) {
        e->addrs[0] = *host;
        e->count = 1;
        e->trusted = e->known = true;
        e->until_ms = UINT64_MAX;
    }
    return n->count++;
}

static void wait_for(struct ab_names *n, const struct asker *asker, const uint8_t *msg,
                     const struct ab_dns_question *q, int name)
{
    for (int i = 0; i < WAITING; i++) {
        struct waiting *w = &n->waiting[i];
        if (w->name >= 0)
            continue;
        w->asker = *asker;
        w->q = *q;
        memcpy(w->msg, msg, q->end);
        w->name = name;
        if (!n->names[name].asking)
            look_up(n, name);
        return;
    }
    answer(n, asker, msg, q, AB_DNS_FAILED, -1);
}

static void take_question(struct ab_names *n, const struct asker *asker,
                          const uint8_t *msg, size_t len)
{
    struct ab_dns_question q;
    if (!ab_dns_parse(msg, len, &q))
        return;
    if (q.odd || !ab_allow_name(n->allow, q.name, 0)) {
        n->cls->refused(n->arg, q.name, NULL, false);
        answer(n, asker, msg, &q, AB_DNS_NO_NAME, -1);
        return;
    }
    int name = q.type == AB_DNS_A ? number_of(n, q.name) : -1;
    if (q.type != AB_DNS_A) {
        answer(n, asker, msg, &q, AB_DNS_OK, -1); /* it has nothing of that kind */
    } else if (name < 0) {
        n->cls->refused(n->arg, q.name, NULL, true);
        answer(n, asker, msg, &q, AB_DNS_FAILED, -1);
    } else if (n->names[name].known && uv_now(&n->loop->uv) < n->names[name].until_ms) {
        answer_known(n, asker, msg, &q, name);
    } else if (n->names[name].asking || n->lookups < LOOKUPS) {
        wait_for(n, asker, msg, &q, name);
    } else {
        answer(n, asker, msg, &q, AB_DNS_FAILED, -1);
    }
}

static void on_question(uv_poll_t *h, int status, int events)
{
    struct ab_names *n = h->data;
    uint8_t msg[AB_DNS_MAX + 1];
    (void)status;
    (void)events;
    for (int i = 0; i < BATCH; i++) {
        struct asker a;
        struct iovec iov = {msg, sizeof msg};
        struct msghdr m = {.msg_name = &a.from,
                           .msg_namelen = sizeof a.from,
                           .msg_iov = &iov,
                           .msg_iovlen = 1,
                           .msg_control = a.control.bytes,
                           .msg_controllen = sizeof a.control.bytes};
        if (n->share == 0) {
            uv_poll_stop(h);
            n->paused = true;
            return;
        }
        ssize_t len = recvmsg(n->fd, &m, MSG_DONTWAIT);
        if (len < 0)
            return;
        n->share--;
        a.from_len = m.msg_namelen;
        a.control_len = m.msg_controllen;
        n->cls->asked(n->arg);
        take_question(n, &a, msg, (size_t)len);
    }
}

static void start(struct ab_names *n)
{
    n->paused = false;
    n->share = SHARE;
    uv_poll_start(&n->poll, UV_READABLE, on_question);
}

void ab_names_tick(struct ab_names *n)
{
    n->share = SHARE;
    if (n->paused)
        start(n);
}

static void on_closed(uv_handle_t *h)
{
    struct ab_names *n = h->data;
    for (int i = 0; i < n->count; i++)
        free(n->names[i].text);
    free(n);
}

struct ab_names *ab_names_open(struct ab_loop *loop, int fd, const struct ab_allow *allow,
                               const struct ab_names_class *cls, void *arg)
{
    struct ab_names *n = ab_xcalloc(1, sizeof *n);
    n->loop = loop;
    n->allow = allow;
    n->cls = cls;
    n->arg = arg;
    n->fd = fd;
    ab_list_init(&n->asked);
    for (int i = 0; i < WAITING; i++)
        n->waiting[i].name = -1;
    if (uv_poll_init(&loop->uv, &n->poll, fd) < 0)
        AB_BUG("a socket that cannot be polled");
    n->poll.data = n;
    uv_unref((uv_handle_t *)&n->poll);
    start(n);
    return n;
}

void ab_names_close(struct ab_names *n)
{
    while (!ab_list_empty(&n->asked)) {
        struct lookup *l = AB_CONTAINER(n->asked.next, struct lookup, link);
        l->names = NULL;
        ab_list_remove(&l->link);
        uv_cancel((uv_req_t *)&l->req);
    }
    uv_close((uv_handle_t *)&n->poll, on_closed);
    close(n->fd);
}
