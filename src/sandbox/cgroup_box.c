/* cgroup_box.c - the control groups of one sandbox.
 *
 * Those of version 1 are used again: to make and remove a directory in each of three
 * hierarchies costs the engine a quarter of what a whole sandbox takes, and the kernel's
 * workers as much after it. What one sandbox leaves in them is what the kernel has cached
 * in its name and can take back, and counters: they are set back, or where that cannot be
 * they are read at the start and subtracted. With cgroup2 the peak of memory cannot be
 * set back, and there is one directory only: they are new each time.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fault.h"
#include "sandbox/cgroup_dirs.h"

#define LEFT_AT_MOST 8 /* a part of the limit that may be cached for those before */

/* The kernel looks at every file system of the machine when a cgroup of the memory
 * controller goes, seven for each sandbox that lives or is frozen, and makes all who want
 * to make or remove one meanwhile wait: among a thousand sandboxes that is a millisecond.
 * So a crowd that ends keeps its cgroups until few are left. */
#define STOCK_LEAST    32
#define STOCK_OF_ALIVE 4

/* Files of one sandbox's cgroup are reached by name each time: a thousand sandboxes would
 * hold four thousand descriptors otherwise. */
static const char *member_path(const struct ab_cgroup *cg, const char *file,
                               char path[128])
{
    snprintf(path, 128, "%s/%s", cg->name, file);
    return path;
}

static bool is_member(const struct ab_cgroup *cg, int h)
{
    return cg->members & 1u << h;
}

static int read_member(const struct ab_cgroup *cg, int h, const char *file, char *text,
                       size_t room)
{
    char path[128];
    return is_member(cg, h) ? ab_cgroup_read(ab_cgroup_self.ident[h],
                                             member_path(cg, file, path), text, room)
                            : -1;
}

static int write_member(const struct ab_cgroup *cg, int h, const char *file,
                        const char *text)
{
    char path[128];
    return ab_cgroup_write(ab_cgroup_self.ident[h], member_path(cg, file, path), text);
}

/* "key value" among lines, as in memory.events. */
static uint64_t value_of(const char *text, const char *key)
{
    size_t len = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!strncmp(line, key, len) && line[len] == ' ')
            return strtoull(line + len + 1, NULL, 10);
    }
    return 0;
}

static int set_number(struct ab_cgroup *cg, int h, const char *file, uint64_t value,
                      struct ab_err *err)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    if (write_member(cg, h, file, text) < 0)
        return ab_err_sys(err, errno, "set %s to %s", file, text);
    return 0;
}

static int set_v1(struct ab_cgroup *cg, const struct ab_limits *l, struct ab_err *err)
{
    if (is_member(cg, MEMORY)) {
        if (set_number(cg, MEMORY, "memory.limit_in_bytes", l->memory_bytes, err) < 0)
            return -1;
        set_number(cg, MEMORY, "memory.memsw.limit_in_bytes", l->memory_bytes, err);
    }
    if (is_member(cg, PIDS) && set_number(cg, PIDS, "pids.max", l->pids, err) < 0)
        return -1;
    if (is_member(cg, CPU) &&
        set_number(cg, CPU, "cpu.cfs_quota_us", (uint64_t)(l->cpus * 100000), err) < 0)
        return -1;
    return 0;
}

static int set_v2(struct ab_cgroup *cg, const struct ab_limits *l, struct ab_err *err)
{
    char text[64];
    if (ab_cgroup_self.alias[MEMORY] && l->memory_bytes) {
        if (set_number(cg, V2, "memory.max", l->memory_bytes, err) < 0)
            return -1;
        write_member(cg, V2, "memory.swap.max", "0");
        write_member(cg, V2, "memory.oom.group", "0");
    }
    if (ab_cgroup_self.alias[PIDS] && l->pids &&
        set_number(cg, V2, "pids.max", l->pids, err) < 0)
        return -1;
    snprintf(text, sizeof text, "%llu 100000", (unsigned long long)(l->cpus * 100000));
    if (ab_cgroup_self.alias[CPU] && l->cpus > 0 &&
        write_member(cg, V2, "cpu.max", text) < 0)
        return ab_err_sys(err, errno, "set cpu.max");
    return 0;
}

static uint64_t read_number(const struct ab_cgroup *cg, int h, const char *file)
{
    char text[64];
    return read_member(cg, h, file, text, sizeof text) < 0 ? 0 : strtoull(text, NULL, 10);
}

/* Asked for before and after each command, so the file stays open. */
static uint64_t count_oom_kills(struct ab_cgroup *cg)
{
    char text[512], path[128];
    bool v2 = ab_cgroup_self.alias[MEMORY];
    if (!is_member(cg, v2 ? V2 : MEMORY))
        return 0;
    if (cg->oom_fd < 0)
        cg->oom_fd =
            openat(ab_cgroup_self.ident[v2 ? V2 : MEMORY],
                   member_path(cg, v2 ? "memory.events" : "memory.oom_control", path),
                   O_RDONLY | O_CLOEXEC);
    ssize_t n = cg->oom_fd < 0 ? -1 : pread(cg->oom_fd, text, sizeof text - 1, 0);
    if (n < 0)
        return 0;
    text[n] = 0;
    return value_of(text, "oom_kill");
}

static uint64_t cpu_us(const struct ab_cgroup *cg)
{
    char text[1024];
    return read_member(cg, V2, "cpu.stat", text, sizeof text) < 0
               ? 0
               : value_of(text, "usage_usec");
}

/* The file to join by. Who has one thread and joins by himself need not wait, with those
 * of version 1, until nobody on the machine forks or ends; with cgroup2 he must. */
static const char *join_file(int h)
{
    return h == V2 ? "cgroup.procs" : "tasks";
}

/* The hierarchy that has the leaves, or HIERARCHIES. */
static int leaf_hierarchy(const struct ab_cgroup *cg)
{
    static const int order[] = {PIDS, V2, CPU, MEMORY};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (is_member(cg, order[i]))
            return order[i];
    return HIERARCHIES;
}

static const char *leaf_path(const struct ab_cgroup *cg, unsigned number, char path[128])
{
    snprintf(path, 128, "%s/c%u", cg->name, number);
    return path;
}

void ab_cgroup_remove_leaves(struct ab_cgroup *cg, struct ab_tally *t)
{
    char path[128];
    int h = leaf_hierarchy(cg);
    for (int i = 0; h < HIERARCHIES && i < AB_LEAVES; i++) {
        struct ab_leaf *leaf = &t->leaf[i];
        if (leaf->number &&
            (unlinkat(ab_cgroup_self.ident[h], leaf_path(cg, leaf->number, path),
                      AT_REMOVEDIR) == 0 ||
             errno != EBUSY))
            *leaf = (struct ab_leaf){0};
    }
}

/* Whoever was started in one of those that were given up is killed with all that is in
 * it, at a time that nobody tells us. So no other command gets it; and a command that was
 * not started yet does not find it (src/init/command.c). */
static void remove_given_up(const struct ab_cgroup *cg, struct ab_tally *t)
{
    char path[128];
    for (int i = 0; i < AB_LEAVES; i++) {
        struct ab_leaf *leaf = &t->leaf[i];
        if (leaf->number && leaf->state == AB_LEAF_GIVEN_UP &&
            unlinkat(ab_cgroup_self.ident[leaf_hierarchy(cg)],
                     leaf_path(cg, leaf->number, path), AT_REMOVEDIR) == 0)
            *leaf = (struct ab_leaf){0};
    }
}

static int open_leaf(const struct ab_cgroup *cg, const struct ab_leaf *leaf)
{
    char path[128], file[160];
    int h = leaf_hierarchy(cg);
    snprintf(file, sizeof file, "%s/%s", leaf_path(cg, leaf->number, path), join_file(h));
    return openat(ab_cgroup_self.ident[h], file, O_RDWR | O_CLOEXEC);
}

/* One whose command is over and in which nobody is left: only who is in it could bring
 * others in. */
static struct ab_leaf *used_leaf(const struct ab_cgroup *cg, struct ab_tally *t, int *fd)
{
    char text[32];
    for (int i = 0; i < AB_LEAVES; i++) {
        struct ab_leaf *leaf = &t->leaf[i];
        if (!leaf->number || leaf->state != AB_LEAF_OVER ||
            (*fd = open_leaf(cg, leaf)) < 0)
            continue;
        if (read(*fd, text, sizeof text) == 0)
            return leaf;
        close(*fd); /* a daemon is in it */
    }
    return NULL;
}

static struct ab_leaf *new_leaf(struct ab_cgroup *cg, struct ab_tally *t, int *fd)
{
    char path[128];
    struct ab_leaf *leaf = t->leaf;
    while (leaf < t->leaf + AB_LEAVES && leaf->number)
        leaf++;
    if (leaf == t->leaf + AB_LEAVES ||
        mkdirat(ab_cgroup_self.ident[leaf_hierarchy(cg)],
                leaf_path(cg, cg->leaves + 1, path), 0755) < 0)
        return NULL;
    *leaf = (struct ab_leaf){.number = ++cg->leaves, .state = AB_LEAF_OVER};
    *fd = open_leaf(cg, leaf);
    return *fd < 0 ? NULL : leaf;
}

/* To make and remove one for each command would wait, each time, for whatever the machine
 * does to its cgroups. */
int ab_cgroup_leaf(struct ab_cgroup *cg, struct ab_tally *t, uint32_t *number)
{
    int fd = -1;
    *number = 0;
    if (leaf_hierarchy(cg) == HIERARCHIES)
        return -1;
    remove_given_up(cg, t);
    struct ab_leaf *leaf = used_leaf(cg, t, &fd);
    if (!leaf)
        leaf = new_leaf(cg, t, &fd);
    if (!leaf)
        return -1;
    leaf->state = AB_LEAF_TAKEN;
    *number = leaf->number;
    return fd;
}

static void discard(struct ab_cgroup *cg)
{
    for (int h = 0; cg->name[0] && h < HIERARCHIES; h++)
        if (is_member(cg, h))
            unlinkat(ab_cgroup_self.ident[h], cg->name, AT_REMOVEDIR);
    if (cg->oom_fd >= 0)
        close(cg->oom_fd);
    *cg = (struct ab_cgroup){.oom_fd = -1};
}

static int make_dir(struct ab_cgroup *cg, int h, struct ab_err *err)
{
    if (ab_cgroup_self.ident[h] < 0)
        return 0;
    int rc = mkdirat(ab_cgroup_self.ident[h], cg->name, 0755);
    if (rc < 0 && errno == ENOENT &&
        ab_cgroup_reopen(h) == 0) /* a zygote that ended took it along */
        rc = mkdirat(ab_cgroup_self.ident[h], cg->name, 0755);
    if (rc < 0)
        return ab_err_sys(err, errno, "make a cgroup");
    cg->members |= 1u << h;
    return 0;
}

static int make(struct ab_cgroup *cg, const struct ab_limits *limits, struct ab_err *err)
{
    *cg = (struct ab_cgroup){.limits = *limits, .oom_fd = -1};
    snprintf(cg->name, sizeof cg->name, "s%u", ++ab_cgroup_self.made);
    if (make_dir(cg, V2, err) == 0 &&
        (!limits->memory_bytes || make_dir(cg, MEMORY, err) == 0) &&
        (!limits->pids || make_dir(cg, PIDS, err) == 0) &&
        (limits->cpus <= 0 || make_dir(cg, CPU, err) == 0) &&
        set_v1(cg, limits, err) == 0 &&
        (!is_member(cg, V2) || set_v2(cg, limits, err) == 0))
        return 0;
    discard(cg);
    return -1;
}

static bool same_limits(const struct ab_limits *a, const struct ab_limits *b)
{
    return a->memory_bytes == b->memory_bytes && a->pids == b->pids && a->cpus == b->cpus;
}

/* True when nobody is in it and little is left of those who were. What they used is read
 * now and not when they ended: among many, who asks for the CPU of one waits until the
 * kernel has found it among all that ran since, and most of a crowd's are not used
 * again. */
static bool renew(struct ab_cgroup *cg)
{
    char text[1024];
    int h = V2;
    while (h < HIERARCHIES && !is_member(cg, h))
        h++;
    if (h == HIERARCHIES || read_member(cg, h, "cgroup.procs", text, sizeof text) < 0 ||
        text[0])
        return false;
    if (is_member(cg, MEMORY) &&
        (read_number(cg, MEMORY, "memory.usage_in_bytes") >
             cg->limits.memory_bytes / LEFT_AT_MOST ||
         write_member(cg, MEMORY, "memory.max_usage_in_bytes", "0") < 0))
        return false;
    cg->oom_before = count_oom_kills(cg);
    cg->cpu_before_us = cpu_us(cg);
    return true;
}

static struct ab_cgroup unstock(size_t at)
{
    struct ab_cgroup *stock = ab_cgroup_self.stock, cg = stock[at];
    memmove(stock + at, stock + at + 1, sizeof cg * (--ab_cgroup_self.stocked - at));
    return cg;
}

/* Takes one of the stock that has these limits, the last put there: the kernel finds what
 * ran last among all that did, first. False when there is none. */
static bool take_used(struct ab_cgroup *cg, const struct ab_limits *limits)
{
    for (size_t i = ab_cgroup_self.stocked; i-- > 0;) {
        if (!same_limits(&ab_cgroup_self.stock[i].limits, limits))
            continue;
        *cg = unstock(i);
        if (renew(cg))
            return true;
        discard(cg);
    }
    return false;
}

int ab_cgroup_create(struct ab_cgroup *cg, const struct ab_limits *limits,
                     struct ab_err *err)
{
    ab_cgroup_probe();
    int fault = AB_FAULT("cgroup_create");
    if (fault)
        return ab_err_sys(err, fault, "make a cgroup");
    if (!take_used(cg, limits) && make(cg, limits, err) < 0)
        return -1;
    ab_cgroup_self.alive += cg->members != 0;
    return 0;
}

static void trim_stock(void)
{
    struct ab_cgroup_self *self = &ab_cgroup_self;
    size_t most = STOCK_LEAST + STOCK_OF_ALIVE * (self->alive + (size_t)self->frozen);
    size_t n = self->stocked > most ? self->stocked - most : 0;
    for (size_t i = 0; i < n; i++)
        discard(&self->stock[i]);
    self->stocked -= n;
    memmove(self->stock, self->stock + n, self->stocked * sizeof *self->stock);
}

static void put_into_stock(const struct ab_cgroup *cg)
{
    struct ab_cgroup_self *self = &ab_cgroup_self;
    if (self->stocked == self->room) {
        self->room = self->room ? 2 * self->room : STOCK_LEAST;
        self->stock = ab_xrealloc(self->stock, self->room * sizeof *self->stock);
    }
    self->stock[self->stocked++] = *cg;
}

void ab_cgroup_remove(struct ab_cgroup *cg)
{
    const bool *alias = ab_cgroup_self.alias;
    bool again = cg->members && !alias[MEMORY] && !alias[PIDS] && !alias[CPU];
    ab_cgroup_self.alive -= cg->members != 0;
    if (!again) {
        discard(cg);
        return;
    }
    if (cg->oom_fd >= 0)
        close(cg->oom_fd);
    cg->oom_fd = -1;
    put_into_stock(cg);
    *cg = (struct ab_cgroup){.oom_fd = -1};
    trim_stock();
}

void ab_cgroup_note_frozen(int by)
{
    ab_cgroup_self.frozen += by;
}

void ab_cgroup_empty_stock(void)
{
    while (ab_cgroup_self.stocked > 0)
        discard(&ab_cgroup_self.stock[--ab_cgroup_self.stocked]);
    free(ab_cgroup_self.stock);
    ab_cgroup_self.stock = NULL;
    ab_cgroup_self.room = 0;
}

/* Root without the right to administer, as in a container: its zygote becomes somebody
 * else, who may not clone into a cgroup of root's. A file that root has opened can be
 * written to by anybody. */
static bool joins_by_writing(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    return geteuid() == 0 && syscall(SYS_capget, &head, data) == 0 &&
           !(data[0].effective & 1u << CAP_SYS_ADMIN);
}

int ab_cgroup_join_fds(const struct ab_cgroup *cg, int *cgroup2, int v1[AB_WIRE_CGROUPS])
{
    char path[128];
    int n = 0;
    bool writing = is_member(cg, V2) && joins_by_writing();
    *cgroup2 = is_member(cg, V2) && !writing
                   ? ab_cgroup_open_dir(ab_cgroup_self.ident[V2], cg->name)
                   : -1;
    for (int h = V2; h < HIERARCHIES; h++) {
        if (!is_member(cg, h) || (h == V2 && !writing))
            continue;
        int fd = openat(ab_cgroup_self.ident[h], member_path(cg, join_file(h), path),
                        O_WRONLY | O_CLOEXEC);
        if (fd >= 0)
            v1[n++] = fd;
    }
    return n;
}

uint64_t ab_cgroup_oom_kills(struct ab_cgroup *cg)
{
    return count_oom_kills(cg) - cg->oom_before;
}

void ab_cgroup_usage(struct ab_cgroup *cg, struct ab_cgroup_usage *out)
{
    *out = (struct ab_cgroup_usage){0};
    if (!cg->name[0])
        return;
    bool v2 = ab_cgroup_self.alias[MEMORY];
    int memory = v2 ? V2 : MEMORY, pids = ab_cgroup_self.alias[PIDS] ? V2 : PIDS;
    out->memory_known = is_member(cg, memory);
    out->pids_known = is_member(cg, pids);
    out->cpu_known = is_member(cg, V2);
    out->oom_kills = ab_cgroup_oom_kills(cg);
    out->memory_bytes =
        read_number(cg, memory, v2 ? "memory.current" : "memory.usage_in_bytes");
    out->memory_peak_bytes =
        read_number(cg, memory, v2 ? "memory.peak" : "memory.max_usage_in_bytes");
    out->pids = read_number(cg, pids, "pids.current");
    out->cpu_s = (double)(cpu_us(cg) - cg->cpu_before_us) / 1e6;
}
