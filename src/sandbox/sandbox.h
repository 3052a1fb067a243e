/* sandbox.h - one native sandbox, from the engine's side. No loop, no threads, no Lua:
 * every function returns at once, and what takes time is a descriptor to wait for.
 *
 *     ab_sandbox_begin(&spec, &sb, &err); ... wait until ab_sandbox_fd(sb) is readable,
 *     while (ab_sandbox_step(sb, &err) == 1); ab_sandbox_exec() any number of times;
 *     ab_sandbox_kill(sb); ... wait again, while (ab_sandbox_reap(sb, false) == 1);
 *     ab_sandbox_free(sb);
 *
 * A sandbox is pid 1 (src/init/pid1.c), a child of this process, and two trees of files.
 * Its own failure is AB_ESANDBOX; what this machine cannot do is AB_EUNSUPPORTED with the
 * next step.
 */
#ifndef AB_SANDBOX_SANDBOX_H
#define AB_SANDBOX_SANDBOX_H

#include <time.h>

#include "base/child.h"
#include "sandbox/cgroup.h"

#define AB_ARG_MAX       131071u /* one string of argv or environment, its NUL included */
#define AB_ARGS_MAX      (2u * 1024 * 1024) /* all of them, as the kernel counts */
#define AB_SANDBOX_FILES 3

/* A frozen upper file system, shared by the sandboxes that stand on it. Counted. */
struct ab_layer {
    int refs;
    int fd;        /* owns */
    uint32_t slot; /* uid range of its files */
    bool host_image;
    uint64_t weight; /* pages and inodes of this one alone: what copying it would take */
    uint64_t spent_bytes, spent_inodes; /* of the quota of whoever stands on it */
    int below_count;
    struct ab_layer *below[AB_WIRE_LAYERS]; /* owns a reference each; nearest first */
};

struct ab_layer *ab_layer_ref(struct ab_layer *layer);
void ab_layer_unref(struct ab_layer *layer);

/* Strings are borrowed during ab_sandbox_begin() only. 0 means the default or no limit.
 */
struct ab_sandbox_spec {
    const char *image; /* "host", or an absolute directory; it is never changed */
    struct ab_layer
        *layer; /* stands on it and on what that stood on; NULL for the bare image */
    const char *hostname;
    const char *workspace;   /* absolute; made when missing */
    bool net_full, net_gate; /* gate: connections to these ports end at the engine */
    uint16_t nports, ports[AB_WIRE_PORTS];
    struct ab_limits limits;
    uint64_t disk_bytes, inodes, nofile;
};

struct ab_ids {
    uint32_t first, rest,
        count; /* host ids of 0 and of 1.. inside, and how many there are */
};

/* One that is being taken, and what tells whether anything changed since the last. */
struct ab_snapshot {
    enum {
        AB_SNAPSHOT_NONE,
        AB_SNAPSHOT_SWAP,
        AB_SNAPSHOT_COPY,
        AB_SNAPSHOT_MERGE
    } doing;
    int merging;            /* so many layers, of those that are uppermost */
    int sock;               /* owns: the answer comes there; or -1 */
    struct ab_layer *taken; /* owns a reference, until given */
    struct timespec clean_root, clean_usr; /* of the upper directories when it began */
    uint64_t clean_bytes, clean_inodes;
    bool known; /* the last four are */
};

enum ab_sandbox_state {
    AB_SANDBOX_BORN,
    AB_SANDBOX_READY,
    AB_SANDBOX_DYING,
    AB_SANDBOX_GONE
};

struct ab_sandbox {
    enum ab_sandbox_state state;
    int sock, pidfd;                    /* owns */
    int files;                          /* owns: the tree for ab_file_* */
    int upper;                          /* owns: moves to the layer when frozen */
    int net, userns;                    /* owns: for wiring network full, or -1 */
    int mounts;                         /* owns: its mount namespace, or -1 */
    int gate[AB_WIRE_PORTS + 2], ngate; /* owns: what GATE brought, until taken */
    uint32_t pid, slot;
    pid_t zygote; /* who was asked for it */
    struct ab_ids ids;
    struct ab_cgroup cgroup;
    struct ab_limits limits;
    bool host_image;
    struct ab_layer *layer; /* owns a reference, or NULL */
    struct ab_layer *start; /* the same, as it was made */
    struct ab_tally *tally; /* owns a reference; or NULL */
    bool purging;
    char *image;                        /* owns: as it was asked for */
    uint64_t disk_bytes, inodes;        /* its quota */
    uint64_t spent_bytes, spent_inodes; /* of that, by what was frozen below it */
    struct ab_snapshot snapshot;
    unsigned number; /* counts the sandboxes of this engine from 1 */
};

struct ab_command {
    char *const *argv; /* at least one */
    char *const *envp; /* "K=V"; both borrowed during the call */
    size_t argc, envc;
    const char *cwd;
    uint32_t uid, gid;
    uint64_t nofile;
    int leaf;             /* cgroup.procs of ab_cgroup_leaf(), borrowed during the call */
    uint32_t leaf_number; /* 0: none */
    bool stdin_pipe;      /* else /dev/null */
    bool script; /* its stdin is a file that grows, its stderr the read end of the
                  * pipe that tells: struct ab_child */
    bool terminal;
    unsigned rows, cols;
};

/* Sends the request. Gives *out, also to be reaped and freed when a later step fails. */
int ab_sandbox_begin(const struct ab_sandbox_spec *spec, struct ab_sandbox **out,
                     struct ab_err *err) AB_MUST_CHECK;

/* What to wait for: the socket while it is being made, the pidfd once it is dying. */
int ab_sandbox_fd(const struct ab_sandbox *sb);

/* 0: ready. 1: not yet, wait again. -1: it failed; kill, reap and free it. */
int ab_sandbox_step(struct ab_sandbox *sb, struct ab_err *err) AB_MUST_CHECK;

/* It is not ready, and too much time has passed: says whose fault that is. A zygote that
 * did not answer is killed; the next request starts another. Kill, reap and free sb. */
void ab_sandbox_late(struct ab_sandbox *sb, struct ab_err *err);

/* Gives the engine's ends of a new command. AB_ETOOBIG before anything ran when the
 * kernel would refuse its arguments; AB_ESANDBOX when pid 1 is dead. */
int ab_sandbox_exec(struct ab_sandbox *sb, const struct ab_command *cmd,
                    struct ab_child *out, struct ab_err *err) AB_MUST_CHECK;

/* The sockets of a network with a list; gives their number. Once. */
int ab_sandbox_take_gate(struct ab_sandbox *sb, int fds[AB_WIRE_PORTS + 2]);

/* Asks for the death of all but pid 1, one at a time; ab_sandbox_step(): 0 when gone. */
int ab_sandbox_purge(struct ab_sandbox *sb, struct ab_err *err) AB_MUST_CHECK;

/* snapshot.c. Begins to take its changes as a layer, while it lives on. When nobody but
 * pid 1 is alive inside, they stay where they are, and the sandbox goes on writing above
 * them; until that is done it runs no commands and takes no files (AB_EBUSY). Otherwise
 * they are copied, as they are while others write. What was taken counts against its
 * quota, and against that of those who stand on it. */
int ab_sandbox_snapshot(struct ab_sandbox *sb, struct ab_err *err) AB_MUST_CHECK;

/* What to wait for; -1: nothing. */
int ab_sandbox_snapshot_fd(const struct ab_sandbox *sb);

/* 0: over, or there is none. 1: wait again. -1: it failed, or the sandbox with it. */
int ab_sandbox_snapshot_step(struct ab_sandbox *sb, struct ab_err *err) AB_MUST_CHECK;

/* After step gave 0. Gives, or NULL when somebody else took it. */
struct ab_layer *ab_sandbox_snapshot_take(struct ab_sandbox *sb);

/* Asks for the tree of files of a sandbox like sb that stood on layer (NULL: on the bare
 * image) alone. Gives a descriptor to wait for, or -1; then take_view() gives the tree,
 * or -1 with err. */
int ab_sandbox_view(struct ab_sandbox *sb, const struct ab_layer *layer,
                    struct ab_err *err) AB_MUST_CHECK;
int ab_sandbox_take_view(int sock, struct ab_err *err) AB_MUST_CHECK;

/* Settles what is over; -1, AB_EBUSY, while a snapshot keeps others from the files. */
int ab_sandbox_undisturbed(struct ab_sandbox *sb, struct ab_err *err) AB_MUST_CHECK;

/* Whether a process besides pid 1 is alive. Where it cannot be seen, one may be. */
bool ab_sandbox_inhabited(const struct ab_sandbox *sb);

/* Whether it is ready and its pid 1 has not ended. */
bool ab_sandbox_alive(const struct ab_sandbox *sb);

/* Kills everything inside and the sandbox with it. Idempotent. */
void ab_sandbox_kill(struct ab_sandbox *sb);

/* Gives what holds its files, for another thread to close, as the last to do so waits for
 * the kernel; not the upper file system of a layer to be. Returns how many. */
int ab_sandbox_take_files(struct ab_sandbox *sb, bool upper, int fds[AB_SANDBOX_FILES]);

/* 0: nothing of it is left but sb itself. 1: not dead yet, wait again. Without waiting at
 * all it blocks when `block` is set. */
int ab_sandbox_reap(struct ab_sandbox *sb, bool block);

/* After ab_sandbox_reap() gave 0: its changes as a layer. Gives. */
struct ab_layer *ab_sandbox_take_layer(struct ab_sandbox *sb);

/* Kills and reaps, blocking, if that was not done; then releases. */
void ab_sandbox_free(struct ab_sandbox *sb);

/* Bytes and inodes in use on its quota file system. */
int ab_sandbox_disk(const struct ab_sandbox *sb, uint64_t *bytes, uint64_t *inodes);

#endif
