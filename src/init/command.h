/* command.h - the commands that run below pid 1. */
#ifndef AB_INIT_COMMAND_H
#define AB_INIT_COMMAND_H

#include <sys/resource.h>
#include <sys/types.h>

#include "base/wire.h"

#define AB_COMMANDS 256

struct command {
    pid_t pid; /* 0: free entry */
    int ctl;
    bool killed; /* and not over before everything of it is gone */
    bool reaped;
    bool keep;  /* ctl, for another command */
    int status; /* of its leader, once reaped */
    struct rusage usage;
    int errnum;           /* why exec failed, or 0 */
    unsigned leaf;        /* its cgroup is /cN of the sandbox's; 0: that itself */
    uint64_t start_ticks; /* boot time in clock ticks, as in /proc/PID/stat */
    uint64_t start_us, kill_us;
};

struct pid1 {
    int sock;
    int proc; /* our /proc, opened before anybody could touch it */
    int pts;
    int kept; /* ctl of a command that is over, for the next; or -1 */
    uint64_t tick_ns;
    bool leaves;  /* some command has had one */
    bool purging; /* the engine waits until nothing else is alive */
    int used;     /* commands from here on were never */
    struct command commands[AB_COMMANDS];
};

/* Starts what EXEC asks for. fds are taken. An answer that cannot be started is told on
 * its ctl. */
void ab_command_start(struct pid1 *p, const struct ab_wire_exec *m, int *fds, int nfds);

/* Sends EXIT and frees the entry, whose leader was reaped. */
void ab_command_finish(struct pid1 *p, struct command *c);

/* Kills c and everything that it started; true when nothing of that is alive any more. */
bool ab_command_kill(struct pid1 *p, struct command *c);

/* The same for all that lives in the sandbox but us. */
bool ab_kill_everything(struct pid1 *p);

uint64_t ab_now_us(void);

#endif
