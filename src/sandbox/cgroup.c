#include "sandbox/cgroup_dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct ab_cgroup_self ab_cgroup_self;

const char *const ab_cgroup_v1_names[HIERARCHIES] = {NULL, "memory", "pids", "cpu"};

int ab_cgroup_read(int dir, const char *path, char *text, size_t room)
{
    int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, text, room - 1);
    close(fd);
    text[n < 0 ? 0 : n] = 0;
    return n < 0 ? -1 : 0;
}

int ab_cgroup_write(int dir, const char *path, const char *text)
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

static bool has_word(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (const char *p = list; (p = strstr(p, word)); p += len)
        if ((p == list || strchr(" ,\n", p[-1])) && (!p[len] || strchr(" ,\n", p[len])))
            return true;
    return false;
}

uint64_t ab_cgroup_start_time(pid_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (ab_cgroup_read(AT_FDCWD, path, text, sizeof text) < 0)
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
void ab_cgroup_pid_world(char out[9])
{
    char text[64] = "00000000";
    struct stat ns = {0};
    ab_cgroup_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", text, sizeof text);
    text[8] = 0;
    stat("/proc/self/ns/pid", &ns);
    snprintf(out, 9, "%08x", (uint32_t)strtoul(text, NULL, 16) ^ (uint32_t)ns.st_ino);
}

const char *ab_cgroup_ident(void)
{
    if (!ab_cgroup_self.name[0]) {
        char world[9];
        ab_cgroup_pid_world(world);
        snprintf(ab_cgroup_self.name, sizeof ab_cgroup_self.name, "agentbox-%s-%d-%llu",
                 world, (int)getpid(),
                 (unsigned long long)ab_cgroup_start_time(getpid()));
    }
    return ab_cgroup_self.name;
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
bool ab_cgroup_mount_point(const char *controller, char *out, size_t room)
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

int ab_cgroup_open_dir(int dir, const char *path)
{
    return openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void move_into(int dir, const char *name)
{
    char text[32];
    int leaf = ab_cgroup_open_dir(dir, name);
    if (leaf < 0)
        return;
    ab_cgroup_write(leaf, "cgroup.procs", "0");
    snprintf(text, sizeof text, "%d", (int)ab_cgroup_self.companion);
    if (ab_cgroup_self.companion > 0)
        ab_cgroup_write(leaf, "cgroup.procs", text);
    close(leaf);
}

/* Controllers go down only through a cgroup without processes of its own: our process
 * moves into a leaf of our own cgroup first, unless we may use the root. */
static int open_v2_parent(const char *at, const char *own)
{
    char path[2200];
    int root = ab_cgroup_open_dir(AT_FDCWD, at);
    if (root >= 0 && faccessat(root, "cgroup.procs", W_OK, 0) == 0)
        return root;
    if (root >= 0)
        close(root);
    snprintf(path, sizeof path, "%s%s", at, own);
    int dir = ab_cgroup_open_dir(AT_FDCWD, path);
    if (dir < 0 || faccessat(dir, "cgroup.subtree_control", W_OK, 0) < 0) {
        if (dir >= 0)
            close(dir);
        return -1;
    }
    ab_cgroup_sweep_below(fcntl(dir, F_DUPFD_CLOEXEC, 3), false,
                          AB_SWEEP_DEPTH); /* what engines before us left */
    snprintf(path, sizeof path, "%s-engine", ab_cgroup_ident());
    if (mkdirat(dir, path, 0755) == 0 || errno == EEXIST)
        move_into(dir, path);
    return dir;
}

static int open_v1_parent(const char *at, const char *own)
{
    char path[2200];
    snprintf(path, sizeof path, "%s%s", at, own);
    int dir = ab_cgroup_open_dir(AT_FDCWD, path);
    return dir >= 0 ? dir
                    : ab_cgroup_open_dir(AT_FDCWD,
                                         at); /* a container sees its own as the root */
}

static bool open_hierarchy(int h)
{
    char at[1024], own[1024];
    if (!ab_cgroup_mount_point(ab_cgroup_v1_names[h], at, sizeof at) ||
        !own_path(ab_cgroup_v1_names[h], own, sizeof own))
        return false;
    int parent = h == V2 ? open_v2_parent(at, own) : open_v1_parent(at, own);
    if (parent < 0)
        return false;
    ab_cgroup_self.parent[h] = parent;
    if (ab_cgroup_self.announce)
        ab_cgroup_self.announce();
    if (mkdirat(parent, ab_cgroup_ident(), 0755) < 0 && errno != EEXIST) {
        close(parent);
        ab_cgroup_self.parent[h] = -1;
        return false;
    }
    ab_cgroup_self.ident[h] = ab_cgroup_open_dir(parent, ab_cgroup_ident());
    if (ab_cgroup_self.ident[h] < 0)
        unlinkat(parent, ab_cgroup_ident(), AT_REMOVEDIR);
    return ab_cgroup_self.ident[h] >= 0;
}

/* Turns the controllers of cgroup2 on for our children; true for each that is there. */
static bool enable_v2(const char *controller)
{
    char text[256], word[32];
    snprintf(word, sizeof word, "+%s", controller);
    if (ab_cgroup_write(ab_cgroup_self.parent[V2], "cgroup.subtree_control", word) < 0 &&
        errno == EBUSY)
        ab_cgroup_self.crowded = true;
    ab_cgroup_write(ab_cgroup_self.ident[V2], "cgroup.subtree_control", word);
    return ab_cgroup_read(ab_cgroup_self.ident[V2], "cgroup.subtree_control", text,
                          sizeof text) == 0 &&
           has_word(text, controller);
}

static void note_why(void)
{
    struct ab_cgroup_info *i = &ab_cgroup_self.info;
    if (i->memory && i->pids && i->cpu)
        return;
    if (ab_cgroup_self.crowded) {
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
    ab_cgroup_self.companion = pid;
    ab_cgroup_self.announce = announce;
}

const struct ab_cgroup_info *ab_cgroup_probe(void)
{
    if (ab_cgroup_self.probed)
        return &ab_cgroup_self.info;
    ab_cgroup_self.probed = true;
    atexit(ab_cgroup_end);
    for (int h = 0; h < HIERARCHIES; h++)
        ab_cgroup_self.parent[h] = ab_cgroup_self.ident[h] = -1;
    const char *forced = getenv("AGENTBOX_CGROUP");
    if (forced && !strcmp(forced, "none")) {
        snprintf(ab_cgroup_self.info.why, sizeof ab_cgroup_self.info.why,
                 "AGENTBOX_CGROUP=none");
        return &ab_cgroup_self.info;
    }
    struct ab_cgroup_info *i = &ab_cgroup_self.info;
    if (!ab_cgroup_start_time(getpid())) { /* no sweep could tell whose they are */
        snprintf(i->why, sizeof i->why, "/proc/self/stat cannot be read");
        return i;
    }
    ab_cgroup_ident(); /* while there is a descriptor to learn it with */
    i->kill = open_hierarchy(V2);
    bool memory2 = i->kill && enable_v2("memory"), pids2 = i->kill && enable_v2("pids");
    bool cpu2 = i->kill && enable_v2("cpu");
    i->memory = memory2 || open_hierarchy(MEMORY);
    i->pids = pids2 || open_hierarchy(PIDS);
    i->cpu = cpu2 || open_hierarchy(CPU);
    ab_cgroup_self.alias[MEMORY] = memory2;
    ab_cgroup_self.alias[PIDS] = pids2;
    ab_cgroup_self.alias[CPU] = cpu2;
    bool v1 = ab_cgroup_self.ident[MEMORY] >= 0 || ab_cgroup_self.ident[PIDS] >= 0 ||
              ab_cgroup_self.ident[CPU] >= 0;
    i->level = memory2 || pids2 || cpu2 ? AB_CGROUP_V2
               : v1 && i->kill          ? AB_CGROUP_HYBRID
               : v1                     ? AB_CGROUP_V1
                                        : AB_CGROUP_NONE;
    note_why();
    if (ab_cgroup_self.ident[MEMORY] >= 0) /* those below inherit it */
        ab_cgroup_write(ab_cgroup_self.ident[MEMORY], "memory.swappiness", "0");
    return i;
}

const char *ab_cgroup_level_name(enum ab_cgroup_level level)
{
    static const char *const names[] = {"none", "v1", "hybrid", "v2"};
    return names[level];
}

int ab_cgroup_reopen(int h)
{
    if (mkdirat(ab_cgroup_self.parent[h], ab_cgroup_self.name, 0755) < 0 &&
        errno != EEXIST)
        return -1;
    int dir = ab_cgroup_open_dir(ab_cgroup_self.parent[h], ab_cgroup_self.name);
    if (dir < 0)
        return -1;
    close(ab_cgroup_self.ident[h]);
    ab_cgroup_self.ident[h] = dir;
    if (h == V2) {
        for (int c = MEMORY; c < HIERARCHIES; c++)
            if (ab_cgroup_self.alias[c])
                enable_v2(ab_cgroup_v1_names[c]);
    }
    return 0;
}

int ab_cgroup_parents(int fds[AB_WIRE_CGROUPS + 1])
{
    int n = 0;
    ab_cgroup_probe();
    for (int h = 0; h < HIERARCHIES; h++)
        if (ab_cgroup_self.parent[h] >= 0)
            fds[n++] = ab_cgroup_self.parent[h];
    return n;
}

void ab_cgroup_end(void)
{
    if (!ab_cgroup_self.probed)
        return;
    ab_cgroup_empty_stock();
    for (int h = 0; h < HIERARCHIES; h++)
        if (ab_cgroup_self.ident[h] >= 0)
            unlinkat(ab_cgroup_self.parent[h], ab_cgroup_self.name, AT_REMOVEDIR);
}
