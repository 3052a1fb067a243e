#include "guest/loop.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/wire.h"

#define POLLS_MAX 1024
#define OUT_HIGH  (1u << 20) /* then the engine is not heard until it has listened */

/* The engine has asked for the death of everything; one at a time. */
static uint32_t purge_channel;

static void purge(struct guest *g, uint32_t channel)
{
    uint8_t buf[16];
    struct ab_err err;
    long n = ab_wire_put_bare(buf, sizeof buf, AB_WIRE_KILL);
    if (purge_channel) {
        ab_err_set(&err, AB_EBUSY, "everything is being killed already");
        ab_files_reply(g, channel, -1, &err, NULL, 0);
        return;
    }
    purge_channel = channel;
    if (ab_wire_send(g->pid1.sock, buf, (size_t)n, NULL, 0, 0) < 0)
        _exit(1);
}

/* READY, once at the start and then after each purge. */
static void hear_pid1(struct guest *g)
{
    static uint8_t buf[AB_WIRE_MAX];
    int fds[AB_WIRE_FDS], nfds;
    long n = ab_wire_recv(g->pid1.sock, buf, fds, &nfds, MSG_DONTWAIT);
    if (n > 0)
        ab_wire_close_fds(fds, nfds);
    if (n <= 0 || !purge_channel)
        return;
    ab_files_reply(g, purge_channel, 0, NULL, NULL, 0);
    purge_channel = 0;
}

static void obey(struct guest *g, const struct ab_frame *f)
{
    struct ab_cursor c = {.p = f->data, .left = f->len};
    switch (f->type) {
    case AB_FRAME_EXEC:
        ab_commands_exec(g, f->channel, &c);
        break;
    case AB_FRAME_STDIN:
        ab_commands_stdin(g, f->channel, f->data, f->len);
        break;
    case AB_FRAME_STDIN_END:
        ab_commands_end_stdin(f->channel);
        break;
    case AB_FRAME_KILL:
        ab_commands_kill(f->channel);
        break;
    case AB_FRAME_RESIZE: {
        uint32_t rows = (uint32_t)ab_take_int(&c, 4);
        ab_commands_resize(f->channel, rows, (uint32_t)ab_take_int(&c, 4));
        break;
    }
    case AB_FRAME_CREDIT:
        ab_commands_credit(f->channel, ab_take_int(&c, 8));
        break;
    case AB_FRAME_FLOOD:
        ab_commands_flood(f->channel);
        break;
    case AB_FRAME_PURGE:
        purge(g, f->channel);
        break;
    default:
        ab_files_serve(g, f);
    }
}

static void hear_engine(struct guest *g)
{
    struct ab_frame f;
    int rc;
    if (!ab_frames_fill(&g->frames))
        _exit(0);
    while ((rc = ab_frames_take(&g->frames, &f)) > 0)
        obey(g, &f);
    if (rc < 0)
        _exit(1);
}

void ab_guest_loop(struct guest *g)
{
    static struct pollfd p[POLLS_MAX];
    for (;;) {
        struct ab_frames *f = &g->frames;
        if (!ab_frames_flush(f))
            _exit(0);
        /* A stream that ended is noticed by POLLHUP whatever is asked for. */
        p[0] =
            (struct pollfd){.fd = f->in, .events = f->outq.len < OUT_HIGH ? POLLIN : 0};
        p[1] = (struct pollfd){.fd = f->out, .events = f->outq.len ? POLLOUT : 0};
        p[2] = (struct pollfd){.fd = g->pid1.sock, .events = POLLIN};
        size_t n = 3 + ab_commands_polls(g, p + 3, POLLS_MAX - 3);
        if (poll(p, n, -1) < 0)
            continue;
        if (p[1].revents & POLLERR)
            _exit(0);
        ab_commands_serve(g, p + 3, n - 3);
        if (p[2].revents)
            hear_pid1(g);
        if (p[0].revents)
            hear_engine(g);
    }
}
