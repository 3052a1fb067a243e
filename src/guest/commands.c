/* commands.c - commands and copies: bytes between their pipes and the stream. The rules
 * are those of src/rt/child.c, kept here so that what nobody wants never travels: of each
 * stream the head, up to what the engine has room for; the rest is drained and counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest/guest.h"

#define CHANNELS    300 /* pid 1 refuses more than 256 commands, and says so */
#define CHUNK       65536
#define OUT_HIGH    (1u << 20)
#define DRAIN_MAX   (2u << 20)   /* after the end: no pipe holds more */
#define STDIN_PIECE (256u << 10) /* then what was written is let go */
#define STDIN_HIGH  (4u << 20)   /* more than the engine ever has under way */

enum exec_flag {
    EXEC_STDIN = 1 << 0,
    EXEC_TERMINAL = 1 << 1,
    EXEC_INTERACTIVE = 1 << 2,
};

struct channel {
    uint32_t number; /* 0: free */
    struct ab_child io;
    bool interactive;    /* stdout waits for CREDIT */
    struct winsize size; /* of its terminal, once asked for */
    uint64_t room[2];    /* what the engine takes of stdout and stderr */
    uint64_t dropped[2];
    struct ab_buf input;
    size_t written;
    bool input_over;
    uint64_t oom_before;
    struct ab_copy_job *job; /* owns once told to be over; NULL: a command */
    bool over;
};

static struct channel channels[CHANNELS];

static struct channel *find(uint32_t number)
{
    for (size_t i = 0; number && i < CHANNELS; i++)
        if (channels[i].number == number)
            return &channels[i];
    return NULL;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static struct channel *open_channel(uint32_t number)
{
    for (size_t i = 0; i < CHANNELS; i++) {
        if (channels[i].number)
            continue;
        channels[i] = (struct channel){.number = number,
                                       .io = {.in = -1, .out = -1, .err = -1, .ctl = -1}};
        return &channels[i];
    }
    return NULL;
}

static void close_channel(struct channel *ch)
{
    close_fd(&ch->io.in);
    close_fd(&ch->io.out);
    close_fd(&ch->io.err);
    close_fd(&ch->io.ctl);
    ab_buf_fini(&ch->input);
    ch->number = 0;
}

/* ---- the end ---- */

static void put_exit(struct guest *g, uint32_t channel, const struct ab_wire_exit *m,
                     bool lost, const struct channel *ch)
{
    struct ab_buf b;
    uint64_t oom = ch ? ab_oom_kills() - ch->oom_before : 0;
    ab_buf_init(&b, 0);
    ab_put_int(&b, m->flags, 4);
    ab_put_int(&b, (uint32_t)m->code, 4);
    ab_put_int(&b, (uint32_t)m->signal, 4);
    ab_put_int(&b, (uint32_t)m->errnum, 4);
    ab_put_int(&b, m->user_us, 8);
    ab_put_int(&b, m->system_us, 8);
    ab_put_int(&b, m->max_rss_bytes, 8);
    ab_put_int(&b, m->wall_us, 8);
    ab_put_int(&b, ch ? ch->dropped[0] : 0, 8);
    ab_put_int(&b, ch ? ch->dropped[1] : 0, 8);
    ab_put_int(&b, oom, 8);
    ab_put_int(&b, lost, 1);
    const char *why = m->errnum ? strerror(m->errnum) : "";
    ab_buf_put(&b, why, strlen(why) + 1);
    ab_frames_put(&g->frames, AB_FRAME_EXIT, channel, b.data, b.len, NULL, 0);
    ab_buf_fini(&b);
}

/* Reads once; false when there is nothing now, or nothing ever again. */
static bool read_some(struct guest *g, struct channel *ch, int which, size_t *total)
{
    static char chunk[CHUNK];
    int *fd = which ? &ch->io.err : &ch->io.out;
    uint64_t room = ch->room[which];
    bool stops = ch->interactive && !which; /* instead of dropping */
    ssize_t n = read(*fd, chunk, stops && room < CHUNK ? (size_t)room : CHUNK);
    if (n < 0 && errno == EINTR)
        return true;
    if (n < 0 && errno == EAGAIN)
        return false;
    if (n <= 0) { /* a terminal says EIO when its last user is gone */
        close_fd(fd);
        return false;
    }
    *total += (size_t)n;
    size_t take = (uint64_t)n < room ? (size_t)n : (size_t)room;
    if (take)
        ab_frames_put(&g->frames, which ? AB_FRAME_ERR : AB_FRAME_OUT, ch->number, chunk,
                      take, NULL, 0);
    ch->room[which] -= take;
    ch->dropped[which] += (size_t)n - take;
    return true;
}

static void drain(struct guest *g, struct channel *ch)
{
    for (int which = 0; which < 2; which++) {
        size_t total = 0;
        while ((which ? ch->io.err : ch->io.out) >= 0 && total < DRAIN_MAX &&
               read_some(g, ch, which, &total))
            ;
    }
}

static void set_size(struct channel *ch)
{
    if (ch->io.out >= 0 && ch->size.ws_row)
        ioctl(ch->io.out, TIOCSWINSZ, &ch->size);
}

static void take_terminal(struct channel *ch, int *fds, int nfds)
{
    if (!ch->io.tty || ch->io.out >= 0 || nfds != 1) {
        ab_wire_close_fds(fds, nfds);
        return;
    }
    ch->io.out = fds[0];
    ch->io.in = fcntl(fds[0], F_DUPFD_CLOEXEC, 10);
    set_size(ch);
}

static void hear_command(struct guest *g, struct channel *ch)
{
    static uint8_t buf[AB_WIRE_MAX];
    struct ab_wire_exit m = {.code = -1};
    int fds[AB_WIRE_FDS], nfds;
    long n = ab_wire_recv(ch->io.ctl, buf, fds, &nfds, MSG_DONTWAIT);
    if (n == -EAGAIN)
        return;
    if (n > 0 && ab_wire_type(buf, (size_t)n) == AB_WIRE_STARTED) {
        take_terminal(ch, fds, nfds);
        return;
    }
    ab_wire_close_fds(fds, nfds);
    bool lost = n <= 0 || ab_wire_get_exit(buf, (size_t)n, &m) < 0;
    if (ch->interactive) /* its reader is slow, and gets what the pipe holds all the same
                          */
        ch->room[0] = DRAIN_MAX;
    drain(g, ch);
    put_exit(g, ch->number, &m, lost, ch);
    close_channel(ch);
}

/* ---- the beginning ---- */

static char **split(struct ab_cursor *c, size_t count)
{
    char **list = ab_xcalloc(count + 1, sizeof *list);
    for (size_t i = 0; i < count && !c->bad; i++)
        list[i] = (char *)(uintptr_t)ab_take_text(c);
    return list;
}

static void refuse(struct guest *g, uint32_t channel, const struct ab_err *err)
{
    ab_files_reply(g, channel, -1, err, NULL, 0);
}

void ab_commands_exec(struct guest *g, uint32_t channel, struct ab_cursor *c)
{
    struct ab_err err;
    uint8_t flags = (uint8_t)ab_take_int(c, 1);
    struct ab_command cmd = {.uid = (uint32_t)ab_take_int(c, 4)};
    cmd.gid = (uint32_t)ab_take_int(c, 4);
    cmd.nofile = ab_take_int(c, 8);
    cmd.rows = (unsigned)ab_take_int(c, 4);
    cmd.cols = (unsigned)ab_take_int(c, 4);
    uint64_t room = ab_take_int(c, 8);
    cmd.argc = (size_t)ab_take_int(c, 4);
    cmd.envc = (size_t)ab_take_int(c, 4);
    cmd.cwd = ab_take_text(c);
    cmd.stdin_pipe = flags & EXEC_STDIN;
    cmd.terminal = flags & EXEC_TERMINAL;
    if (c->bad || cmd.argc == 0 || cmd.argc + cmd.envc > c->left || find(channel))
        _exit(1);
    char **argv = split(c, cmd.argc), **envp = split(c, cmd.envc);
    cmd.argv = argv;
    cmd.envp = envp;
    struct channel *ch = open_channel(channel);
    if (!ch)
        ab_err_set(&err, AB_EBUSY, "too many commands at once");
    else
        ch->oom_before = ab_oom_kills();
    if (!ch || ab_sandbox_exec(&g->pid1, &cmd, &ch->io, &err) < 0) {
        refuse(g, channel, &err);
        if (ch) {
            ch->io = (struct ab_child){.in = -1, .out = -1, .err = -1, .ctl = -1};
            close_channel(ch);
        }
    } else {
        ch->interactive = flags & EXEC_INTERACTIVE;
        ch->room[0] = ch->room[1] = room;
        ab_buf_init(&ch->input, 0);
    }
    free(argv);
    free(envp);
}

/* ---- stdin ---- */

static void put_taken(struct guest *g, const struct channel *ch, uint64_t bytes)
{
    struct ab_buf b;
    ab_buf_init(&b, 0);
    ab_put_int(&b, bytes, 8);
    ab_frames_put(&g->frames, AB_FRAME_TAKEN, ch->number, b.data, b.len, NULL, 0);
    ab_buf_fini(&b);
}

/* A command that does not read its stdin to the end is not an error: the rest is
 * forgotten. */
static void feed(struct guest *g, struct channel *ch)
{
    bool waits_for_terminal = ch->io.tty && ch->io.out < 0;
    uint64_t done = 0;
    while (ch->written < ch->input.len && !waits_for_terminal) {
        ssize_t n = ch->io.in < 0 ? -1
                                  : write(ch->io.in, ch->input.data + ch->written,
                                          ch->input.len - ch->written);
        if (n < 0 && ch->io.in >= 0 && errno == EINTR)
            continue;
        if (n < 0 && ch->io.in >= 0 && errno == EAGAIN)
            break;
        if (n < 0) {
            n = (ssize_t)(ch->input.len - ch->written);
            close_fd(&ch->io.in);
        }
        ch->written += (size_t)n;
        done += (uint64_t)n;
    }
    if (ch->written >= STDIN_PIECE || ch->written == ch->input.len) {
        ab_buf_consume(&ch->input, ch->written);
        ch->written = 0;
    }
    if (ch->input.len == 0) {
        if (ch->input_over && !waits_for_terminal)
            close_fd(&ch->io.in);
    }
    if (done)
        put_taken(g, ch, done);
}

void ab_commands_stdin(struct guest *g, uint32_t channel, const void *data, size_t len)
{
    struct channel *ch = find(channel);
    if (!ch)
        return; /* it has ended meanwhile */
    if (ch->input.len + len > STDIN_HIGH)
        _exit(1);
    ab_buf_put(&ch->input, data, len);
    feed(g, ch);
}

void ab_commands_end_stdin(uint32_t channel)
{
    struct channel *ch = find(channel);
    if (!ch)
        return;
    ch->input_over = true;
    if (ch->written == ch->input.len && !(ch->io.tty && ch->io.out < 0))
        close_fd(&ch->io.in);
}

/* ---- control ---- */

/* A copy ends when its pipe does. */
void ab_commands_kill(uint32_t channel)
{
    uint8_t buf[16];
    struct channel *ch = find(channel);
    if (ch && ch->job) {
        close_fd(&ch->io.in);
        close_fd(&ch->io.out);
    } else if (ch && ch->io.ctl >= 0) {
        long n = ab_wire_put_bare(buf, sizeof buf, AB_WIRE_KILL);
        ab_wire_send(ch->io.ctl, buf, (size_t)n, NULL, 0, MSG_DONTWAIT);
    }
}

void ab_commands_resize(uint32_t channel, uint32_t rows, uint32_t cols)
{
    struct channel *ch = find(channel);
    if (!ch || !ch->io.tty)
        return;
    ch->size =
        (struct winsize){.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};
    set_size(ch);
}

void ab_commands_credit(uint32_t channel, uint64_t bytes)
{
    struct channel *ch = find(channel);
    if (ch)
        ch->room[0] += bytes;
}

void ab_commands_flood(uint32_t channel)
{
    struct channel *ch = find(channel);
    if (ch)
        ch->interactive = false;
}

/* ---- copies ---- */

static void *run_job(void *arg)
{
    struct ab_copy_job *job = arg;
    char done = 1;
    job->rc = job->work(job);
    close(job->fd);
    if (send(job->ctl, &done, 1, MSG_NOSIGNAL) < 0)
        _exit(1);
    return NULL;
}

static void free_job(struct ab_copy_job *job)
{
    close_fd(&job->ctl);
    free(job->path);
    free(job);
}

void ab_commands_copy(struct guest *g, uint32_t channel, struct ab_copy_job *job,
                      bool writes)
{
    struct ab_err err;
    int pipe_ends[2] = {-1, -1}, ctl[2] = {-1, -1};
    pthread_t thread;
    struct channel *ch = find(channel) ? NULL : open_channel(channel);
    if (!ch || pipe2(pipe_ends, O_CLOEXEC) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ctl) < 0) {
        ab_err_sys(&err, ch ? errno : EMFILE, "copy");
        refuse(g, channel, &err);
        close_fd(&pipe_ends[0]);
        close_fd(&pipe_ends[1]);
        if (ch)
            close_channel(ch);
        job->ctl = -1;
        free_job(job);
        return;
    }
    job->fd = pipe_ends[writes];
    job->ctl = ctl[1];
    ch->io.ctl = ctl[0];
    *(writes ? &ch->io.out : &ch->io.in) = pipe_ends[!writes];
    fcntl(pipe_ends[!writes], F_SETFL, O_NONBLOCK);
    ch->interactive = writes;
    ch->job = job;
    ab_buf_init(&ch->input, 0);
    if (pthread_create(&thread, NULL, run_job, job) != 0)
        _exit(1);
    pthread_detach(thread);
}

/* Counts as the engine's copy tells them; all that was read has been sent before. */
static void finish_copy(struct guest *g, struct channel *ch)
{
    struct ab_copy_job *job = ch->job;
    struct ab_buf b;
    ab_buf_init(&b, 0);
    ab_put_int(&b, job->copy.files, 8);
    ab_put_int(&b, job->copy.dirs, 8);
    ab_put_int(&b, job->copy.links, 8);
    ab_put_int(&b, job->copy.bytes, 8);
    ab_put_int(&b, job->copy.skipped, 8);
    ab_files_reply(g, ch->number, job->rc, &job->err, b.data, b.len);
    ab_buf_fini(&b);
    free_job(job);
    close_channel(ch);
}

static void hear_copy(struct guest *g, struct channel *ch)
{
    char done;
    if (recv(ch->io.ctl, &done, 1, MSG_DONTWAIT) == 1)
        ch->over = true;
    if (ch->over && ch->io.out < 0)
        finish_copy(g, ch);
}

/* ---- the loop's part ---- */

static bool wants(const struct guest *g, const struct channel *ch, int which)
{
    if (g->frames.outq.len >= OUT_HIGH)
        return false;
    return which || !ch->interactive || ch->room[0] > 0;
}

size_t ab_commands_polls(struct guest *g, struct pollfd *p, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < CHANNELS && n + 4 <= room; i++) {
        struct channel *ch = &channels[i];
        if (!ch->number)
            continue;
        bool heard = ch->over;
        if (!heard)
            p[n++] = (struct pollfd){.fd = ch->io.ctl, .events = POLLIN};
        if (ch->io.out >= 0 && wants(g, ch, 0))
            p[n++] = (struct pollfd){.fd = ch->io.out, .events = POLLIN};
        if (ch->io.err >= 0 && wants(g, ch, 1))
            p[n++] = (struct pollfd){.fd = ch->io.err, .events = POLLIN};
        if (ch->io.in >= 0 && ch->written < ch->input.len)
            p[n++] = (struct pollfd){.fd = ch->io.in, .events = POLLOUT};
    }
    return n;
}

/* stdout before the end: what a command printed is sent before its EXIT. */
static void serve_fd(struct guest *g, struct channel *ch, int fd)
{
    size_t total = 0;
    if (fd == ch->io.out)
        read_some(g, ch, 0, &total);
    else if (fd == ch->io.err)
        read_some(g, ch, 1, &total);
    else if (fd == ch->io.in)
        feed(g, ch);
    else if (fd == ch->io.ctl)
        ch->job ? hear_copy(g, ch) : hear_command(g, ch);
    if (ch->number && ch->job && ch->over && ch->io.out < 0)
        finish_copy(g, ch);
}

void ab_commands_serve(struct guest *g, const struct pollfd *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!p[i].revents)
            continue;
        for (size_t k = 0; k < CHANNELS; k++) {
            struct channel *ch = &channels[k];
            if (ch->number && (p[i].fd == ch->io.out || p[i].fd == ch->io.err ||
                               p[i].fd == ch->io.in || p[i].fd == ch->io.ctl)) {
                serve_fd(g, ch, p[i].fd);
                break;
            }
        }
    }
}
