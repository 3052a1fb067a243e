/* kill.c - which processes belong to a command, and their end.
 *
 * A process belongs to the command whose leader is its nearest ancestor, else to the one
 * whose session it is in. What has left both (a daemon: its parent is pid 1, its session
 * its own) belongs, with its children, to the command that is being killed if it was born
 * after it. So a server that an earlier command left behind survives, and nothing that
 * this command started does.
 *
 * A command that was started while another one ran has a cgroup of its own, which nothing
 * that it starts can leave: there it is certain. Where none can be had a daemon that was
 * born meanwhile dies too, whoever's it is, rather than that one escapes.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "init/command.h"
#include "init/sys.h"

#define ROUNDS        8
#define CLIMB_MAX     4096
#define PROCESSES_MAX 65536

struct process {
    pid_t pid, parent, session;
    uint64_t start_ticks;
    unsigned leaf; /* the number of its command's cgroup, or 0 */
    bool killed;
    bool ours; /* of the command that is being killed */
};

static struct process *list;
static size_t count, room;

static bool read_process(int proc, const char *name, struct process *out)
{
    char path[32], text[512];
    snprintf(path, sizeof path, "%.16s/stat", name);
    int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = 0;
    /* The name may hold anything, so fields are counted from the last parenthesis. */
    char *p = strrchr(text, ')');
    char state;
    unsigned long long ticks;
    if (!p || sscanf(p + 1,
                     " %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                     "%*d %*d %llu",
                     &state, &out->parent, &out->session, &ticks) != 4)
        return false;
    out->pid = atoi(name);
    out->killed = false;
    out->start_ticks = ticks;
    return state != 'Z' && state != 'X';
}

/* Our cgroup namespace begins at the sandbox's own cgroup: in all hierarchies the path is
 * "/", but for a leaf. */
static unsigned leaf_of(int proc, pid_t pid)
{
    char path[32], text[2048];
    unsigned number = 0;
    snprintf(path, sizeof path, "%d/cgroup", (int)pid);
    int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    sys_close(&fd);
    text[n < 0 ? 0 : n] = 0;
    const char *leaf = strstr(text, ":/c");
    if (leaf)
        sscanf(leaf, ":/c%u", &number);
    return number;
}

static void list_processes(const struct pid1 *p)
{
    int proc = p->proc;
    count = 0;
    int fd = openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        sys_close(&fd);
        return;
    }
    struct dirent *e;
    while ((e = readdir(d)) && count < PROCESSES_MAX) {
        if (e->d_name[0] < '1' || e->d_name[0] > '9')
            continue;
        if (count == room) {
            size_t more = room ? room * 2 : 256;
            struct process *grown = realloc(list, more * sizeof *grown);
            if (!grown)
                break;
            list = grown;
            room = more;
        }
        struct process *found = &list[count];
        if (!read_process(proc, e->d_name, found) || found->pid == 1)
            continue;
        found->leaf = p->leaves ? leaf_of(proc, found->pid) : 0;
        count++;
    }
    closedir(d);
}

static const struct process *find(pid_t pid)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].pid == pid)
            return &list[i];
    return NULL;
}

static const struct command *led_by(const struct pid1 *p, pid_t pid)
{
    for (int i = 0; i < p->used; i++)
        if (p->commands[i].pid == pid)
            return &p->commands[i];
    return NULL;
}

static bool born_after(const struct process *x, const struct command *c)
{
    if (x->start_ticks != c->start_ticks)
        return x->start_ticks > c->start_ticks;
    return x->pid >=
           c->pid; /* the same hundredth of a second: numbers are given in order */
}

static bool belongs(const struct pid1 *p, const struct process *x,
                    const struct command *c)
{
    if (c->leaf || x->leaf)
        return x->leaf == c->leaf;
    const struct process *top = x;
    for (int i = 0; i < CLIMB_MAX; i++) {
        const struct command *leader = led_by(p, top->pid);
        const struct process *up = top->parent > 1 ? find(top->parent) : NULL;
        if (leader)
            return leader == c;
        if (!up)
            break;
        top = up;
    }
    const struct command *session = led_by(p, top->session);
    return session ? session == c : born_after(top, c);
}

/* A process that was killed is seen for a while yet; what counts is who was not killed
 * before. */
static bool kill_again(struct process *x, const struct process *before, size_t nbefore)
{
    for (size_t i = 0; i < nbefore; i++)
        if (before[i].pid == x->pid && before[i].start_ticks == x->start_ticks &&
            before[i].killed)
            return (x->killed = true);
    x->killed = kill(x->pid, SIGKILL) == 0;
    return false;
}

/* One look at all processes. Tells how many of c's were new; the earlier look is given
 * up. */
static size_t kill_round(struct pid1 *p, const struct command *c, size_t *alive)
{
    struct process *before = list;
    size_t nbefore = count, fresh = 0;
    list = NULL;
    room = 0;
    *alive = 0;
    list_processes(p);
    for (size_t i = 0; i < count; i++)
        *alive += list[i].ours = belongs(p, &list[i], c);
    /* The usual case, and the one call that no maker of processes can outrun. */
    if (*alive == count && count > 0)
        kill(-1, SIGKILL);
    for (size_t i = 0; i < count && *alive < count; i++)
        if (list[i].ours && !kill_again(&list[i], before, nbefore))
            fresh++;
    free(before);
    return fresh;
}

bool ab_command_kill(struct pid1 *p, struct command *c)
{
    size_t alive = 0;
    c->killed = true;
    count = 0;
    for (int round = 0; round < ROUNDS; round++)
        if (kill_round(p, c, &alive) == 0)
            return alive == 0;
    /* It makes processes faster than we find them: whatever else is here goes with it. */
    kill(-1, SIGKILL);
    return false;
}

bool ab_kill_everything(struct pid1 *p)
{
    kill(-1, SIGKILL);
    list_processes(p);
    return count == 0;
}
