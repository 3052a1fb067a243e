#include "base/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct in {
    const uint8_t *data;
    size_t len, pos;
    bool bad;
};

static void put_bytes(struct ab_wire_out *o, const void *data, size_t len)
{
    if (o->full || len > o->cap - o->len) {
        o->full = true;
        return;
    }
    if (len)
        memcpy(o->data + o->len, data, len);
    o->len += len;
}

static void put_u32(struct ab_wire_out *o, uint32_t v)
{
    uint8_t b[4] = {(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16),
                    (uint8_t)(v >> 24)};
    put_bytes(o, b, sizeof b);
}

static void put_u64(struct ab_wire_out *o, uint64_t v)
{
    put_u32(o, (uint32_t)v);
    put_u32(o, (uint32_t)(v >> 32));
}

static void put_str(struct ab_wire_out *o, const char *s)
{
    size_t len = s ? strlen(s) : 0;
    put_u32(o, (uint32_t)len);
    put_bytes(o, s, len);
    put_bytes(o, "", 1);
}

static struct ab_wire_out begin(uint8_t *buf, size_t cap, enum ab_wire_type type)
{
    struct ab_wire_out o = {.data = buf, .cap = cap};
    put_u32(&o, type);
    return o;
}

static long end(const struct ab_wire_out *o)
{
    return o->full ? -1 : (long)o->len;
}

static uint32_t get_u32(struct in *in)
{
    if (in->bad || in->len - in->pos < 4) {
        in->bad = true;
        return 0;
    }
    const uint8_t *b = in->data + in->pos;
    in->pos += 4;
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uint64_t get_u64(struct in *in)
{
    uint64_t low = get_u32(in);
    return low | (uint64_t)get_u32(in) << 32;
}

static const char *get_str(struct in *in)
{
    size_t len = get_u32(in);
    if (in->bad || len >= in->len - in->pos) {
        in->bad = true;
        return "";
    }
    const char *s = (const char *)in->data + in->pos;
    if (memchr(s, 0, len + 1) != s + len)
        in->bad = true;
    in->pos += len + 1;
    return in->bad ? "" : s;
}

static struct in open_packet(const uint8_t *buf, size_t len, enum ab_wire_type type)
{
    struct in in = {.data = buf, .len = len};
    if (get_u32(&in) != (uint32_t)type)
        in.bad = true;
    return in;
}

/* Nothing may be left over: it would mean that the two sides disagree about the message.
 */
static int close_packet(const struct in *in)
{
    return in->bad || in->pos != in->len ? -1 : 0;
}

long ab_wire_put_bare(uint8_t *buf, size_t cap, enum ab_wire_type type)
{
    struct ab_wire_out o = begin(buf, cap, type);
    return end(&o);
}

enum ab_wire_type ab_wire_type(const uint8_t *buf, size_t len)
{
    struct in in = {.data = buf, .len = len};
    uint32_t type = get_u32(&in);
    return in.bad || type >= AB_WIRE_TYPES ? 0 : (enum ab_wire_type)type;
}

long ab_wire_put_setup(uint8_t *buf, size_t cap, const struct ab_wire_setup *m)
{
    struct ab_wire_out o = begin(buf, cap, AB_WIRE_SETUP);
    put_u32(&o, m->parents);
    put_u32(&o, m->old_mounts);
    put_str(&o, m->ident);
    return end(&o);
}

int ab_wire_get_setup(const uint8_t *buf, size_t len, struct ab_wire_setup *m)
{
    struct in in = open_packet(buf, len, AB_WIRE_SETUP);
    m->parents = get_u32(&in);
    m->old_mounts = get_u32(&in);
    m->ident = get_str(&in);
    if (m->parents > AB_WIRE_CGROUPS + 1)
        in.bad = true;
    return close_packet(&in);
}

long ab_wire_put_create(uint8_t *buf, size_t cap, const struct ab_wire_create *m)
{
    struct ab_wire_out o = begin(buf, cap, AB_WIRE_CREATE);
    put_u32(&o, m->flags);
    put_u32(&o, m->slot);
    put_u32(&o, m->layers);
    put_u32(&o, m->v1);
    put_u64(&o, m->disk_bytes);
    put_u64(&o, m->inodes);
    put_u64(&o, m->shm_bytes);
    put_u64(&o, m->memory_bytes);
    put_u64(&o, m->pids);
    put_u64(&o, m->nofile);
    put_u32(&o, m->nports);
    for (uint32_t i = 0; i < m->nports; i++)
        put_u32(&o, m->ports[i]);
    put_str(&o, m->image);
    put_str(&o, m->hostname);
    put_str(&o, m->workspace);
    put_str(&o, m->cgroup);
    return end(&o);
}

int ab_wire_get_create(const uint8_t *buf, size_t len, struct ab_wire_create *m)
{
    struct in in = open_packet(buf, len, AB_WIRE_CREATE);
    m->flags = get_u32(&in);
    m->slot = get_u32(&in);
    m->layers = get_u32(&in);
    m->v1 = get_u32(&in);
    m->disk_bytes = get_u64(&in);
    m->inodes = get_u64(&in);
    m->shm_bytes = get_u64(&in);
    m->memory_bytes = get_u64(&in);
    m->pids = get_u64(&in);
    m->nofile = get_u64(&in);
    m->nports = get_u32(&in);
    if (m->nports > AB_WIRE_PORTS)
        in.bad = true;
    for (uint32_t i = 0; !in.bad && i < m->nports; i++)
        m->ports[i] = (uint16_t)get_u32(&in);
    m->image = get_str(&in);
    m->hostname = get_str(&in);
    m->workspace = get_str(&in);
    m->cgroup = get_str(&in);
    if (m->layers > AB_WIRE_LAYERS || m->v1 > AB_WIRE_CGROUPS)
        in.bad = true;
    return close_packet(&in);
}

long ab_wire_put_born(uint8_t *buf, size_t cap, const struct ab_wire_born *m)
{
    struct ab_wire_out o = begin(buf, cap, AB_WIRE_BORN);
    put_u32(&o, m->pid);
    put_u32(&o, m->slot);
    put_u32(&o, m->uid_first);
    put_u32(&o, m->uid_rest);
    put_u32(&o, m->uid_count);
    put_u32(&o, m->facts);
    return end(&o);
}

int ab_wire_get_born(const uint8_t *buf, size_t len, struct ab_wire_born *m)
{
    struct in in = open_packet(buf, len, AB_WIRE_BORN);
    m->pid = get_u32(&in);
    m->slot = get_u32(&in);
    m->uid_first = get_u32(&in);
    m->uid_rest = get_u32(&in);
    m->uid_count = get_u32(&in);
    m->facts = get_u32(&in);
    return close_packet(&in);
}

long ab_wire_put_failed(uint8_t *buf, size_t cap, const struct ab_wire_failed *m)
{
    struct ab_wire_out o = begin(buf, cap, AB_WIRE_FAILED);
    put_u32(&o, (uint32_t)m->errnum);
    put_str(&o, m->step);
    return end(&o);
}

int ab_wire_get_failed(const uint8_t *buf, size_t len, struct ab_wire_failed *m)
{
    struct in in = open_packet(buf, len, AB_WIRE_FAILED);
    m->errnum = (int32_t)get_u32(&in);
    m->step = get_str(&in);
    return close_packet(&in);
}

long ab_wire_put_exec(uint8_t *buf, size_t cap, const struct ab_wire_exec *m)
{
    struct ab_wire_out o = begin(buf, cap, AB_WIRE_EXEC);
    put_u32(&o, m->flags);
    put_u32(&o, m->uid);
    put_u32(&o, m->gid);
    put_u32(&o, m->argc);
    put_u32(&o, m->envc);
    put_u32(&o, m->rows);
    put_u32(&o, m->cols);
    put_u32(&o, m->leaf);
    put_u64(&o, m->nofile);
    put_u64(&o, m->strings_len);
    put_str(&o, m->cwd);
    if (!(m->flags & AB_WIRE_IN_FILE))
        put_bytes(&o, m->strings, (size_t)m->strings_len);
    return end(&o);
}

int ab_wire_get_exec(const uint8_t *buf, size_t len, struct ab_wire_exec *m)
{
    struct in in = open_packet(buf, len, AB_WIRE_EXEC);
    m->flags = get_u32(&in);
    m->uid = get_u32(&in);
    m->gid = get_u32(&in);
    m->argc = get_u32(&in);
    m->envc = get_u32(&in);
    m->rows = get_u32(&in);
    m->cols = get_u32(&in);
    m->leaf = get_u32(&in);
    m->nofile = get_u64(&in);
    m->strings_len = get_u64(&in);
    m->cwd = get_str(&in);
    m->strings = NULL;
    if (in.bad || m->argc < 1)
        return -1;
    if (m->flags & AB_WIRE_IN_FILE)
        return close_packet(&in);
    m->strings = (const char *)in.data + in.pos;
    size_t left = in.len - in.pos;
    if (m->strings_len != left ||
        !ab_wire_is_strings(m->strings, left, (size_t)m->argc + m->envc))
        return -1;
    return 0;
}

long ab_wire_put_exit(uint8_t *buf, size_t cap, const struct ab_wire_exit *m)
{
    struct ab_wire_out o = begin(buf, cap, AB_WIRE_EXIT);
    put_u32(&o, m->flags);
    put_u32(&o, (uint32_t)m->code);
    put_u32(&o, (uint32_t)m->signal);
    put_u32(&o, (uint32_t)m->errnum);
    put_u64(&o, m->user_us);
    put_u64(&o, m->system_us);
    put_u64(&o, m->max_rss_bytes);
    put_u64(&o, m->wall_us);
    return end(&o);
}

int ab_wire_get_exit(const uint8_t *buf, size_t len, struct ab_wire_exit *m)
{
    struct in in = open_packet(buf, len, AB_WIRE_EXIT);
    m->flags = get_u32(&in);
    m->code = (int32_t)get_u32(&in);
    m->signal = (int32_t)get_u32(&in);
    m->errnum = (int32_t)get_u32(&in);
    m->user_us = get_u64(&in);
    m->system_us = get_u64(&in);
    m->max_rss_bytes = get_u64(&in);
    m->wall_us = get_u64(&in);
    return close_packet(&in);
}

long ab_wire_put_group(uint8_t *buf, size_t cap, const struct ab_wire_group *m)
{
    struct ab_wire_out o = begin(buf, cap, AB_WIRE_GROUP);
    put_u32(&o, m->pid);
    put_u32(&o, m->alive);
    return end(&o);
}

int ab_wire_get_group(const uint8_t *buf, size_t len, struct ab_wire_group *m)
{
    struct in in = open_packet(buf, len, AB_WIRE_GROUP);
    m->pid = get_u32(&in);
    m->alive = get_u32(&in);
    return close_packet(&in);
}

bool ab_wire_is_strings(const char *data, size_t len, size_t count)
{
    size_t pos = 0;
    for (size_t i = 0; i < count; i++) {
        const char *nul = pos < len ? memchr(data + pos, 0, len - pos) : NULL;
        if (!nul)
            return false;
        pos = (size_t)(nul - data) + 1;
    }
    return pos == len;
}

void ab_wire_close_fds(const int *fds, int nfds)
{
    for (int i = 0; i < nfds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

union control {
    char data[CMSG_SPACE(sizeof(int) * AB_WIRE_FDS)];
    struct cmsghdr align;
};

int ab_wire_send(int sock, const uint8_t *buf, size_t len, const int *fds, int nfds,
                 int flags)
{
    union control control = {0};
    struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (nfds < 0 || nfds > AB_WIRE_FDS)
        return -EINVAL;
    if (nfds > 0) {
        msg.msg_control = control.data;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)nfds);
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)nfds);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * (size_t)nfds);
    }
    for (;;) {
        if (sendmsg(sock, &msg, flags | MSG_NOSIGNAL) >= 0)
            return 0;
        if (errno != EINTR)
            return -errno;
    }
}

static int take_fds(struct msghdr *msg, int fds[AB_WIRE_FDS])
{
    int n = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        int got = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(fds + n, CMSG_DATA(c), sizeof(int) * (size_t)got);
        n += got;
    }
    return n;
}

long ab_wire_recv(int sock, uint8_t *buf, int fds[AB_WIRE_FDS], int *nfds, int flags)
{
    union control control;
    struct iovec iov = {.iov_base = buf, .iov_len = AB_WIRE_MAX};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.data,
                         .msg_controllen = sizeof control.data};
    long n;
    /* The kernel tells of an end with something unread before it gives what was sent. */
    do
        n = recvmsg(sock, &msg, flags | MSG_CMSG_CLOEXEC);
    while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    *nfds = 0;
    if (n < 0)
        return -errno;
    *nfds = take_fds(&msg, fds);
    if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
        ab_wire_close_fds(fds, *nfds);
        *nfds = 0;
        return -EPROTO;
    }
    return n;
}
