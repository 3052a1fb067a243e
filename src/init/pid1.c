/* pid1.c - pid 1 of a sandbox: starts commands, reaps everything, kills on demand. Ends
 * when the engine closes the control socket; with it ends every process of the sandbox.
 */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "init/command.h"
#include "init/init.h"
#include "init/sys.h"

#define SETTLE_MS   1
#define PATIENCE_US 5000000

static struct pid1 self;
static uint8_t packet[AB_WIRE_MAX];

/* Asked of the kernel itself: see shed.c. */
uint64_t ab_now_us(void)
{
    struct timespec t;
    syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void say_ready(void)
{
    uint8_t buf[16];
    long n = ab_wire_put_bare(buf, sizeof buf, AB_WIRE_READY);
    if (ab_wire_send(self.sock, buf, (size_t)n, NULL, 0, 0) < 0)
        _exit(0);
}

static void reap(void)
{
    int status;
    struct rusage usage;
    pid_t pid;
    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
        for (int i = 0; i < self.used; i++) {
            struct command *c = &self.commands[i];
            if (c->pid != pid || c->reaped)
                continue;
            c->reaped = true;
            c->status = status;
            c->usage = usage;
            if (!c->killed)
                ab_command_finish(&self, c);
        }
    }
}

/* A command that is killed is over when everything that it started is gone, so that
 * whoever asked for it can rely on that. True while there is one to come back to. */
static bool settle(void)
{
    bool waiting = false;
    if (self.purging && ab_kill_everything(&self)) {
        self.purging = false;
        say_ready();
    }
    for (int i = 0; i < self.used; i++) {
        struct command *c = &self.commands[i];
        if (!c->pid || !c->killed)
            continue;
        bool late =
            ab_now_us() - c->kill_us > PATIENCE_US; /* what the kernel does not let go */
        if ((ab_command_kill(&self, c) || late) && c->reaped)
            ab_command_finish(&self, c);
        else
            waiting = true;
    }
    return waiting || self.purging;
}

/* One message; false when there is none. */
static bool serve_engine(void)
{
    int fds[AB_WIRE_FDS], nfds;
    struct ab_wire_exec m;
    long n = ab_wire_recv(self.sock, packet, fds, &nfds, MSG_DONTWAIT);
    if (n == -EAGAIN)
        return false;
    if (n <= 0)
        _exit(0);
    if (ab_wire_type(packet, (size_t)n) == AB_WIRE_KILL)
        self.purging = true;
    if (ab_wire_type(packet, (size_t)n) == AB_WIRE_EXEC &&
        ab_wire_get_exec(packet, (size_t)n, &m) == 0)
        ab_command_start(&self, &m, fds, nfds);
    else
        ab_wire_close_fds(fds, nfds);
    return true;
}

static void serve_command(struct command *c)
{
    int fds[AB_WIRE_FDS], nfds;
    long n = ab_wire_recv(c->ctl, packet, fds, &nfds, MSG_DONTWAIT);
    if (n == -EAGAIN)
        return;
    if (n > 0)
        ab_wire_close_fds(fds, nfds);
    if ((n <= 0 || ab_wire_type(packet, (size_t)n) == AB_WIRE_KILL) && !c->killed) {
        c->killed = true;
        c->kill_us = ab_now_us();
    }
    if (n <= 0)
        sys_close(&c->ctl);
}

/* Of a command that is over: its end, or a KILL that came too late. But what is in it may
 * be meant for the next command, and that one's EXEC was sent before: so that is looked
 * for first, and then it is no longer ours. */
static void serve_kept(void)
{
    int fds[AB_WIRE_FDS], nfds, kept = self.kept;
    while (serve_engine())
        ;
    if (self.kept != kept)
        return;
    long n = ab_wire_recv(self.kept, packet, fds, &nfds, MSG_DONTWAIT);
    if (n > 0)
        ab_wire_close_fds(fds, nfds);
    else if (n != -EAGAIN)
        sys_close(&self.kept);
}

/* Commands inherit what we do about signals, and shall find what a login gives them. As
 * pid 1 we are not touched by those that would end another. */
static int open_signals(void)
{
    signal(SIGPIPE, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void ab_pid1(int sock)
{
    self.sock = sock;
    self.kept = -1;
    self.proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    self.pts = open("/dev/pts", O_PATH | O_DIRECTORY | O_CLOEXEC);
    self.tick_ns = 1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK);
    int signals = open_signals();
    bool waiting = false;
    static struct pollfd p[AB_COMMANDS + 3];
    static struct command *by_slot[AB_COMMANDS];
    say_ready();
    for (;;) {
        p[0] = (struct pollfd){.fd = sock, .events = POLLIN};
        p[1] = (struct pollfd){.fd = signals, .events = POLLIN};
        p[2] = (struct pollfd){.fd = self.kept, .events = POLLIN};
        nfds_t n = 3;
        for (int i = 0; i < self.used; i++) {
            struct command *c = &self.commands[i];
            if (!c->pid || c->ctl < 0)
                continue;
            by_slot[n - 3] = c;
            p[n++] = (struct pollfd){.fd = c->ctl, .events = POLLIN};
        }
        if (poll(p, n, waiting ? SETTLE_MS : -1) < 0)
            continue;
        if (p[1].revents) {
            struct signalfd_siginfo info; /* pending once, however many ended */
            if (read(signals, &info, sizeof info) > 0)
                reap();
        }
        for (nfds_t i = 3; i < n; i++)
            if (p[i].revents && by_slot[i - 3]->pid && by_slot[i - 3]->ctl == p[i].fd)
                serve_command(by_slot[i - 3]);
        if (p[2].revents && self.kept == p[2].fd)
            serve_kept();
        if (p[0].revents)
            serve_engine();
        waiting = settle();
    }
}
