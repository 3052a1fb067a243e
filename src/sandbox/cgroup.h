/* cgroup.h - limits of memory, processes and CPU, by what this machine gives us.
 *
 *     level      limits by            whole-sandbox kill     out of memory is known by
 *     v2         cgroup2 controllers  cgroup of the sandbox  memory.events oom_kill
 *     hybrid     v1 controllers       empty cgroup2          memory.oom_control oom_kill
 *     v1         v1 controllers       pid 1                  the same
 *     none       resource limits      pid 1                  nothing: oom is never
 * claimed
 *
 * Layout, in each hierarchy: BASE/agentbox-BOOT-PID-START/sN, and /cN in that for a
 * command that runs beside others, in one hierarchy. BOOT is the start of the boot id,
 * PID and START name the engine, so that ab_cgroup_sweep() can tell a dead engine's from
 * a live one's. AGENTBOX_CGROUP=none in the environment gives the last level.
 */
#ifndef AB_SANDBOX_CGROUP_H
#define AB_SANDBOX_CGROUP_H

#include <sys/types.h>

#include "base/child.h"
#include "base/err.h"
#include "base/wire.h"

enum ab_cgroup_level { AB_CGROUP_NONE, AB_CGROUP_V1, AB_CGROUP_HYBRID, AB_CGROUP_V2 };

struct ab_cgroup_info {
    enum ab_cgroup_level level;
    bool memory, pids, cpu, kill;
    char why[160]; /* what keeps us from the best level; empty when nothing */
};

struct ab_limits {
    uint64_t memory_bytes, pids; /* 0: no limit */
    double cpus;
};

struct ab_cgroup {
    char name[32];    /* below the ident directory; empty when there is no cgroup */
    unsigned members; /* bit per hierarchy that has a directory of that name */
    struct ab_limits limits;
    uint64_t oom_before, cpu_before_us; /* of the sandboxes that had it before */
    unsigned leaves;                    /* how many there have been */
    int oom_fd; /* owns: where kills for memory are counted, or -1 */
};

struct ab_cgroup_usage {
    uint64_t memory_bytes, memory_peak_bytes, pids, oom_kills;
    double cpu_s;
    bool memory_known, pids_known, cpu_known; /* the others are 0 and mean nothing */
};

/* A process of ours that must go where this one goes, and outlives it to tidy up: the
 * zygote. announce is called before anything is made below one more parent, so that an
 * end at any moment leaves nothing that it has not heard of. Before the probe. */
void ab_cgroup_companion(pid_t pid, void (*announce)(void));

/* What this process can have. Looked up once. Borrowed. */
const struct ab_cgroup_info *ab_cgroup_probe(void);

/* "v2", "hybrid", "v1", "none". */
const char *ab_cgroup_level_name(enum ab_cgroup_level level);

/* Makes the directories that the limits need and sets them, or takes those of a sandbox
 * that is gone and had the same limits. Limits that no controller can
 * keep are left to the caller: see the flags of ab_cgroup_probe(). */
int ab_cgroup_create(struct ab_cgroup *cg, const struct ab_limits *limits,
                     struct ab_err *err) AB_MUST_CHECK;

/* Gives descriptors for CREATE: the cgroup2 directory (or -1), and the file to join each
 * v1 hierarchy. Returns how many of those; the caller closes them all. */
int ab_cgroup_join_fds(const struct ab_cgroup *cg, int *cgroup2, int v1[AB_WIRE_CGROUPS]);

/* A cgroup below, for one command, noted in t: one whose command is over and in which
 * nobody is left, or a new one. Gives a descriptor to join it by writing, or -1 when
 * there is none to be had: number is 0 then. */
int ab_cgroup_leaf(struct ab_cgroup *cg, struct ab_tally *t, uint32_t *number);

/* All of them; before ab_cgroup_remove(). */
void ab_cgroup_remove_leaves(struct ab_cgroup *cg, struct ab_tally *t);

void ab_cgroup_usage(struct ab_cgroup *cg, struct ab_cgroup_usage *out);

/* How many processes were killed for memory; one small read, 0 when not limited. */
uint64_t ab_cgroup_oom_kills(struct ab_cgroup *cg);

/* After the last process was reaped. It may be kept for another sandbox. Idempotent. */
void ab_cgroup_remove(struct ab_cgroup *cg);

/* By how many there are more frozen trees, which hold file systems as sandboxes do. */
void ab_cgroup_note_frozen(int by);

/* Removes the directories that are kept to be used again. */
void ab_cgroup_empty_stock(void);

/* For the zygote's own cleaning after our death. */
int ab_cgroup_parents(int fds[AB_WIRE_CGROUPS + 1]);
const char *ab_cgroup_ident(void);

/* Removes, with their processes, the cgroups of engines that are dead. Returns how many
 * sandboxes that were; dry only counts. */
int ab_cgroup_sweep(bool dry);

/* Removes this engine's own directory, when no sandbox is left; done at exit. */
void ab_cgroup_end(void);

#endif
