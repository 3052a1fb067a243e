/* cgroup_sweep.c - what engines that died, and their zygotes with them, left behind. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/cgroup_dirs.h"

/* True when the directory is of an engine that is alive, or of one whose pid we can't
 * judge, or is not ours at all. Cgroups do not outlive a boot. */
static bool is_alive(const char *name)
{
    char world[9], mine[9];
    int pid;
    unsigned long long start;
    if (sscanf(name, "agentbox-%8[0-9a-f]-%d-%llu", world, &pid, &start) != 3)
        return true;
    ab_cgroup_pid_world(mine);
    uint64_t now = ab_cgroup_start_time(pid); /* 0: there is no such process */
    return strcmp(world, mine) != 0 || (now && now == start);
}

static void kill_members(int dir)
{
    char line[32];
    ab_cgroup_write(dir, "cgroup.kill", "1");
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

/* One sandbox's, with those of its commands below. */
static void sweep_box(int parent, const char *name)
{
    int dir = ab_cgroup_open_dir(parent, name);
    DIR *d = dir < 0 ? NULL : fdopendir(dir);
    struct dirent *e;
    while (d && (e = readdir(d)))
        if (e->d_type == DT_DIR && e->d_name[0] == 'c')
            sweep_box(dirfd(d), e->d_name);
    if (d) {
        kill_members(dirfd(d));
        closedir(d);
    } else if (dir >= 0) {
        close(dir);
    }
    for (int i = 0; i < 100 && unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno == EBUSY;
         i++)
        usleep(2000);
}

static int sweep_ident(int parent, const char *name, bool dry)
{
    int found = 0, dir = ab_cgroup_open_dir(parent, name);
    DIR *d = dir < 0 ? NULL : fdopendir(dir);
    struct dirent *e;
    while (d && (e = readdir(d))) {
        if (e->d_type != DT_DIR || e->d_name[0] != 's')
            continue;
        found++;
        if (!dry)
            sweep_box(dirfd(d), e->d_name);
    }
    if (d)
        closedir(d);
    if (!dry)
        unlinkat(parent, name, AT_REMOVEDIR);
    return found;
}

/* Engines sit below the cgroup of whoever started them, so the whole hierarchy is looked
 * through. */
int ab_cgroup_sweep_below(int dir, bool dry, int depth)
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
        } else if (depth < AB_SWEEP_DEPTH) {
            found += ab_cgroup_sweep_below(ab_cgroup_open_dir(dirfd(d), e->d_name), dry,
                                           depth + 1);
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
        if (!ab_cgroup_mount_point(ab_cgroup_v1_names[h], at, sizeof at))
            continue;
        int found = ab_cgroup_sweep_below(ab_cgroup_open_dir(AT_FDCWD, at), dry, 0);
        most = found > most ? found : most; /* a sandbox is in several hierarchies */
    }
    return most;
}
