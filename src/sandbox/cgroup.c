#include "sandbox/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fault.h"

#define SWEEP_DEPTH 5

enum { V2, MEMORY, PIDS, CPU, HIERARCHIES };
_Static_assert(HIERARCHIES <= AB_WIRE_CGROUPS + 1, "descriptors of one sandbox");

/* What was found: the directory below which ours is, and ours. One engine, one process.
 */
static struct {
    bool probed;
    struct ab_cgroup_info info;
    int parent[HIERARCHIES]; /* -1: not there, or the same directory as an earlier one */
    int ident[HIERARCHIES];
    bool alias[HIERARCHIES]; /* shares the directory of an earlier hierarchy, or of v2 */
    char name[96];
    unsigned next;
    pid_t companion;
    void (*announce)(void);
    bool crowded; /* somebody else is in our cgroup, so that it cannot pass controllers on
                   */
} self;

static const char *const v1_names[HIERARCHIES] = {NULL, "memory", "pids", "cpu"};

static int read_text(int dir, const char *path, char *text, size_t room)
{
    int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, text, room - 1);
    close(fd);
    text[n < 0 ? 0 : n] = 0;
    return n < 0 ? -1 : 0;
}

static int write_text(int dir, const char *path, const char *text)
{
    int fd = openat(dir, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = write(fd, text, strlen(text));
    int saved = errno;
    close(fd);
    errno = saved;
    return n < 0 ? -1 : 0;
}

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
    return is_member(cg, h)
               ? read_text(self.ident[h], member_path(cg, file, path), text, room)
               : -1;
}

static int write_member(const struct ab_cgroup *cg, int h, const char *file,
                        const char *text)
{
    char path[128];
    return write_text(self.ident[h], member_path(cg, file, path), text);
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

static bool has_word(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (const char *p = list; (p = strstr(p, word)); p += len)
        if ((p == list || strchr(" ,\n", p[-1])) && (!p[len] || strchr(" ,\n", p[len])))
            return true;
    return false;
}

static uint64_t start_time(pid_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (read_text(AT_FDCWD, path, text, sizeof text) < 0)
        return 0;
    char *p = strrchr(text, ')');
    unsigned long long ticks = 0;
    if (p)
        sscanf(p + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
               "%*d %llu",
               &ticks);
    return ticks;
}

/* In which boot and pid namespace a pid is to be understood: containers may share the
 * host's cgroups. */
static void pid_world(char out[9])
{
    char text[64] = "00000000";
    struct stat ns = {0};
    read_text(AT_FDCWD, "/proc/sys/kernel/random/boot_id", text, sizeof text);
    text[8] = 0;
    stat("/proc/self/ns/pid", &ns);
    snprintf(out, 9, "%08x", (uint32_t)strtoul(text, NULL, 16) ^ (uint32_t)ns.st_ino);
}

const char *ab_cgroup_ident(void)
{
    if (!self.name[0]) {
        char world[9];
        pid_world(world);
        snprintf(self.name, sizeof self.name, "agentbox-%s-%d-%llu", world, (int)getpid(),
                 (unsigned long long)start_time(getpid()));
    }
    return self.name;
}

/* Our own cgroup in a hierarchy: controller NULL is cgroup2. */
static bool own_path(const char *controller, char *out, size_t room)
{
    char line[1024];
    bool found = false;
    FILE *f = fopen("/proc/self/cgroup", "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        char *list = strchr(line, ':');
        char *path = list ? strchr(list + 1, ':') : NULL;
        if (!path)
            continue;
        *list++ = 0;
        *path++ = 0;
        path[strcspn(path, "\n")] = 0;
        found = controller ? has_word(list, controller) : !strcmp(line, "0") && !*list;
        if (found)
            snprintf(out, room, "%s", path);
    }
    if (f)
        fclose(f);
    return found;
}

/* Where a hierarchy is mounted. */
static bool mount_point(const char *controller, char *out, size_t room)
{
    char line[2048], at[1024], type[64], options[512];
    bool found = false;
    FILE *f = fopen("/proc/self/mountinfo", "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        char *dash = strstr(line, " - ");
        if (!dash || sscanf(line, "%*s %*s %*s %*s %1023s", at) != 1 ||
            sscanf(dash + 3, "%63s %*s %511s", type, options) != 2)
            continue;
        found = controller ? !strcmp(type, "cgroup") && has_word(options, controller)
                           : !strcmp(type, "cgroup2");
        if (found)
            snprintf(out, room, "%s", at);
    }
    if (f)
        fclose(f);
    return found;
}

static int open_dir(int dir, const char *path)
{
    return openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void move_into(int dir, const char *name)
{
    char text[32];
    int leaf = open_dir(dir, name);
    if (leaf < 0)
        return;
    write_text(leaf, "cgroup.procs", "0");
    snprintf(text, sizeof text, "%d", (int)self.companion);
    if (self.companion > 0)
        write_text(leaf, "cgroup.procs", text);
    close(leaf);
}

static int sweep_below(int dir, bool dry, int depth);

/* Controllers go down only through a cgroup without processes of its own: our process
 * moves into a leaf of our own cgroup first, unless we may use the root. */
static int open_v2_parent(const char *at, const char *own)
{
    char path[2200];
    int root = open_dir(AT_FDCWD, at);
    if (root >= 0 && faccessat(root, "cgroup.procs", W_OK, 0) == 0)
        return root;
    if (root >= 0)
        close(root);
    snprintf(path, sizeof path, "%s%s", at, own);
    int dir = open_dir(AT_FDCWD, path);
    if (dir < 0 || faccessat(dir, "cgroup.subtree_control", W_OK, 0) < 0) {
        if (dir >= 0)
            close(dir);
        return -1;
    }
    sweep_below(fcntl(dir, F_DUPFD_CLOEXEC, 3), false,
                SWEEP_DEPTH); /* what engines before us left */
    snprintf(path, sizeof path, "%s-engine", ab_cgroup_ident());
    if (mkdirat(dir, path, 0755) == 0 || errno == EEXIST)
        move_into(dir, path);
    return dir;
}

static int open_v1_parent(const char *at, const char *own)
{
    char path[2200];
    snprintf(path, sizeof path, "%s%s", at, own);
    int dir = open_dir(AT_FDCWD, path);
    return dir >= 0 ? dir
                    : open_dir(AT_FDCWD, at); /* a container sees its own as the root */
}

static bool open_hierarchy(int h)
{
    char at[1024], own[1024];
    if (!mount_point(v1_names[h], at, sizeof at) ||
        !own_path(v1_names[h], own, sizeof own))
        return false;
    int parent = h == V2 ? open_v2_parent(at, own) : open_v1_parent(at, own);
    if (parent < 0)
        return false;
    self.parent[h] = parent;
    if (self.announce)
        self.announce();
    if (mkdirat(parent, ab_cgroup_ident(), 0755) < 0 && errno != EEXIST) {
        close(parent);
        self.parent[h] = -1;
        return false;
    }
    self.ident[h] = open_dir(parent, ab_cgroup_ident());
    return self.ident[h] >= 0;
}

/* Turns the controllers of cgroup2 on for our children; true for each that is there. */
static bool enable_v2(const char *controller)
{
    char text[256], word[32];
    snprintf(word, sizeof word, "+%s", controller);
    if (write_text(self.parent[V2], "cgroup.subtree_control", word) < 0 && errno == EBUSY)
        self.crowded = true;
    write_text(self.ident[V2], "cgroup.subtree_control", word);
    return read_text(self.ident[V2], "cgroup.subtree_control", text, sizeof text) == 0 &&
           has_word(text, controller);
}

static void note_why(void)
{
    struct ab_cgroup_info *i = &self.info;
    if (i->memory && i->pids && i->cpu)
        return;
    if (self.crowded) {
        snprintf(i->why, sizeof i->why,
                 "other processes are in our cgroup: start agentbox itself with "
                 "systemd-run --user --scope -p Delegate=yes, not a shell");
        return;
    }
    snprintf(i->why, sizeof i->why,
             "no control over%s%s%s: run as root, or under systemd-run --user --scope -p "
             "Delegate=yes",
             i->memory ? "" : " memory", i->pids ? "" : " pids", i->cpu ? "" : " cpu");
}

void ab_cgroup_companion(pid_t pid, void (*announce)(void))
{
    self.companion = pid;
    self.announce = announce;
}

const struct ab_cgroup_info *ab_cgroup_probe(void)
{
    if (self.probed)
        return &self.info;
    self.probed = true;
    atexit(ab_cgroup_end);
    for (int h = 0; h < HIERARCHIES; h++)
        self.parent[h] = self.ident[h] = -1;
    const char *forced = getenv("AGENTBOX_CGROUP");
    if (forced && !strcmp(forced, "none")) {
        snprintf(self.info.why, sizeof self.info.why, "AGENTBOX_CGROUP=none");
        return &self.info;
    }
    struct ab_cgroup_info *i = &self.info;
    i->kill = open_hierarchy(V2);
    bool memory2 = i->kill && enable_v2("memory"), pids2 = i->kill && enable_v2("pids");
    bool cpu2 = i->kill && enable_v2("cpu");
    i->memory = memory2 || open_hierarchy(MEMORY);
    i->pids = pids2 || open_hierarchy(PIDS);
    i->cpu = cpu2 || open_hierarchy(CPU);
    self.alias[MEMORY] = memory2;
    self.alias[PIDS] = pids2;
    self.alias[CPU] = cpu2;
    bool v1 = self.ident[MEMORY] >= 0 || self.ident[PIDS] >= 0 || self.ident[CPU] >= 0;
    i->level = memory2 || pids2 || cpu2 ? AB_CGROUP_V2
               : v1 && i->kill          ? AB_CGROUP_HYBRID
               : v1                     ? AB_CGROUP_V1
                                        : AB_CGROUP_NONE;
    note_why();
    return i;
}

const char *ab_cgroup_level_name(enum ab_cgroup_level level)
{
    static const char *const names[] = {"none", "v1", "hybrid", "v2"};
    return names[level];
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
        set_number(cg, MEMORY, "memory.swappiness", 0, err);
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
    if (self.alias[MEMORY] && l->memory_bytes) {
        if (set_number(cg, V2, "memory.max", l->memory_bytes, err) < 0)
            return -1;
        write_member(cg, V2, "memory.swap.max", "0");
        write_member(cg, V2, "memory.oom.group", "0");
    }
    if (self.alias[PIDS] && l->pids && set_number(cg, V2, "pids.max", l->pids, err) < 0)
        return -1;
    snprintf(text, sizeof text, "%llu 100000", (unsigned long long)(l->cpus * 100000));
    if (self.alias[CPU] && l->cpus > 0 && write_member(cg, V2, "cpu.max", text) < 0)
        return ab_err_sys(err, errno, "set cpu.max");
    return 0;
}

static int reopen_ident(int h)
{
    if (mkdirat(self.parent[h], self.name, 0755) < 0 && errno != EEXIST)
        return -1;
    int dir = open_dir(self.parent[h], self.name);
    if (dir < 0)
        return -1;
    close(self.ident[h]);
    self.ident[h] = dir;
    if (h == V2) {
        for (int c = MEMORY; c < HIERARCHIES; c++)
            if (self.alias[c])
                enable_v2(v1_names[c]);
    }
    return 0;
}

static int make_dir(struct ab_cgroup *cg, int h, struct ab_err *err)
{
    if (self.ident[h] < 0)
        return 0;
    int rc = mkdirat(self.ident[h], cg->name, 0755);
    if (rc < 0 && errno == ENOENT &&
        reopen_ident(h) == 0) /* a zygote that ended took it along */
        rc = mkdirat(self.ident[h], cg->name, 0755);
    if (rc < 0)
        return ab_err_sys(err, errno, "make a cgroup");
    cg->members |= 1u << h;
    return 0;
}

int ab_cgroup_create(struct ab_cgroup *cg, const struct ab_limits *limits,
                     struct ab_err *err)
{
    ab_cgroup_probe();
    snprintf(cg->name, sizeof cg->name, "s%u", ++self.next);
    cg->members = 0;
    int fault = AB_FAULT("cgroup_create");
    if (fault)
        return ab_err_sys(err, fault, "make a cgroup");
    if (make_dir(cg, V2, err) == 0 &&
        (!limits->memory_bytes || make_dir(cg, MEMORY, err) == 0) &&
        (!limits->pids || make_dir(cg, PIDS, err) == 0) &&
        (limits->cpus <= 0 || make_dir(cg, CPU, err) == 0) &&
        set_v1(cg, limits, err) == 0 &&
        (!is_member(cg, V2) || set_v2(cg, limits, err) == 0))
        return 0;
    ab_cgroup_remove(cg);
    return -1;
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
    *cgroup2 = is_member(cg, V2) && !writing ? open_dir(self.ident[V2], cg->name) : -1;
    for (int h = V2; h < HIERARCHIES; h++) {
        if (!is_member(cg, h) || (h == V2 && !writing))
            continue;
        int fd = openat(self.ident[h], member_path(cg, "cgroup.procs", path),
                        O_WRONLY | O_CLOEXEC);
        if (fd >= 0)
            v1[n++] = fd;
    }
    return n;
}

uint64_t ab_cgroup_oom_kills(const struct ab_cgroup *cg)
{
    char text[512];
    if (read_member(cg, MEMORY, "memory.oom_control", text, sizeof text) == 0 ||
        (self.alias[MEMORY] &&
         read_member(cg, V2, "memory.events", text, sizeof text) == 0))
        return value_of(text, "oom_kill");
    return 0;
}

static uint64_t read_number(const struct ab_cgroup *cg, int h, const char *file)
{
    char text[64];
    return read_member(cg, h, file, text, sizeof text) < 0 ? 0 : strtoull(text, NULL, 10);
}

void ab_cgroup_usage(const struct ab_cgroup *cg, struct ab_cgroup_usage *out)
{
    char text[1024];
    *out = (struct ab_cgroup_usage){0};
    if (!cg->name[0])
        return;
    bool v2 = self.alias[MEMORY];
    int memory = v2 ? V2 : MEMORY;
    out->known = true;
    out->oom_kills = ab_cgroup_oom_kills(cg);
    out->memory_bytes =
        read_number(cg, memory, v2 ? "memory.current" : "memory.usage_in_bytes");
    out->memory_peak_bytes =
        read_number(cg, memory, v2 ? "memory.peak" : "memory.max_usage_in_bytes");
    out->pids = read_number(cg, self.alias[PIDS] ? V2 : PIDS, "pids.current");
    if (read_member(cg, V2, "cpu.stat", text, sizeof text) == 0)
        out->cpu_s = (double)value_of(text, "usage_usec") / 1e6;
}

void ab_cgroup_remove(struct ab_cgroup *cg)
{
    for (int h = 0; cg->name[0] && h < HIERARCHIES; h++)
        if (is_member(cg, h))
            unlinkat(self.ident[h], cg->name, AT_REMOVEDIR);
    cg->name[0] = 0;
    cg->members = 0;
}

int ab_cgroup_parents(int fds[AB_WIRE_CGROUPS + 1])
{
    int n = 0;
    ab_cgroup_probe();
    for (int h = 0; h < HIERARCHIES; h++)
        if (self.parent[h] >= 0)
            fds[n++] = self.parent[h];
    return n;
}

void ab_cgroup_end(void)
{
    if (!self.probed)
        return;
    for (int h = 0; h < HIERARCHIES; h++)
        if (self.ident[h] >= 0)
            unlinkat(self.parent[h], self.name, AT_REMOVEDIR);
}

/* ---- what others left ---- */

/* True when the directory is of an engine that is alive, or of one whose pid we can't
 * judge, or is not ours at all. Cgroups do not outlive a boot. */
static bool is_alive(const char *name)
{
    char world[9], mine[9];
    int pid;
    unsigned long long start;
    if (sscanf(name, "agentbox-%8[0-9a-f]-%d-%llu", world, &pid, &start) != 3)
        return true;
    pid_world(mine);
    return strcmp(world, mine) != 0 || start_time(pid) == start;
}

static void kill_members(int dir)
{
    char line[32];
    write_text(dir, "cgroup.kill", "1");
    int fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    while (f && fgets(line, sizeof line, f)) {
        int pid = atoi(line);
        if (pid > 1)
            kill(pid, SIGKILL);
    }
    if (f)
        fclose(f);
    else if (fd >= 0)
        close(fd);
}

static int sweep_ident(int parent, const char *name, bool dry)
{
    int found = 0, dir = open_dir(parent, name);
    DIR *d = dir < 0 ? NULL : fdopendir(dir);
    struct dirent *e;
    while (d && (e = readdir(d))) {
        if (e->d_type != DT_DIR || e->d_name[0] != 's')
            continue;
        found++;
        int sub = dry ? -1 : open_dir(dirfd(d), e->d_name);
        if (sub < 0)
            continue;
        kill_members(sub);
        close(sub);
        for (int i = 0;
             i < 100 && unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR) < 0 && errno == EBUSY;
             i++)
            usleep(2000);
    }
    if (d)
        closedir(d);
    if (!dry)
        unlinkat(parent, name, AT_REMOVEDIR);
    return found;
}

/* Engines sit below the cgroup of whoever started them, so the whole hierarchy is looked
 * through. */
static int sweep_below(int dir, bool dry, int depth)
{
    int found = 0;
    DIR *d = dir < 0 ? NULL : fdopendir(dir);
    struct dirent *e;
    while (d && (e = readdir(d))) {
        if (e->d_type != DT_DIR || e->d_name[0] == '.')
            continue;
        if (!strncmp(e->d_name, "agentbox-", 9)) {
            if (!is_alive(e->d_name))
                found += sweep_ident(dirfd(d), e->d_name, dry);
        } else if (depth < SWEEP_DEPTH) {
            found += sweep_below(open_dir(dirfd(d), e->d_name), dry, depth + 1);
        }
    }
    if (d)
        closedir(d);
    return found;
}

int ab_cgroup_sweep(bool dry)
{
    char at[1024];
    int most = 0;
    for (int h = 0; h < HIERARCHIES; h++) {
        if (!mount_point(v1_names[h], at, sizeof at))
            continue;
        int found = sweep_below(open_dir(AT_FDCWD, at), dry, 0);
        most = found > most ? found : most; /* a sandbox is in several hierarchies */
    }
    return most;
}
