/* cgroup_dirs.h - what the three files of control groups share: the hierarchies of this
 * machine and our directory in each. cgroup.c finds them, cgroup_box.c makes those of one
 * sandbox below, cgroup_sweep.c removes what dead engines left. */
#ifndef AB_SANDBOX_CGROUP_DIRS_H
#define AB_SANDBOX_CGROUP_DIRS_H

#include "sandbox/cgroup.h"

#define AB_SWEEP_DEPTH 5

enum { V2, MEMORY, PIDS, CPU, HIERARCHIES };
_Static_assert(HIERARCHIES <= AB_WIRE_CGROUPS + 1, "descriptors of one sandbox");

/* What was found: the directory below which ours is, and ours. One engine, one process.
 */
struct ab_cgroup_self {
    bool probed;
    struct ab_cgroup_info info;
    int parent[HIERARCHIES]; /* -1: not there, or the same directory as an earlier one */
    int ident[HIERARCHIES];
    bool alias[HIERARCHIES]; /* shares the directory of an earlier hierarchy, or of v2 */
    char name[96];
    pid_t companion;
    void (*announce)(void);
    unsigned made;           /* numbers the sandboxes' */
    size_t alive;            /* sandboxes that have some */
    int frozen;              /* trees of sandboxes that have ended */
    struct ab_cgroup *stock; /* owns; to be used again, longest rested first */
    size_t stocked, room;
    bool crowded; /* somebody else is in our cgroup, so that it cannot pass controllers on
                   */
};

extern struct ab_cgroup_self ab_cgroup_self;
extern const char *const ab_cgroup_v1_names[HIERARCHIES];

/* Small files: 0 or -1 with errno. */
int ab_cgroup_read(int dir, const char *path, char *text, size_t room);
int ab_cgroup_write(int dir, const char *path, const char *text);
int ab_cgroup_open_dir(int dir, const char *path);

/* Where a hierarchy is mounted; controller NULL is cgroup2. */
bool ab_cgroup_mount_point(const char *controller, char *out, size_t room);

/* In which boot and pid namespace a pid is to be understood: containers may share the
 * host's cgroups. */
void ab_cgroup_pid_world(char out[9]);
uint64_t ab_cgroup_start_time(pid_t pid);

/* Makes our directory again: a zygote that ended took it along. */
int ab_cgroup_reopen(int h);

/* Takes dir. Removes the directories of dead engines below it; gives their sandboxes'
 * number. */
int ab_cgroup_sweep_below(int dir, bool dry, int depth);

#endif
