/* init.h - agentbox-init: the zygote, and pid 1 of each sandbox.
 *
 *     engine
 *       └─ zygote            exec'd from a memfd before the engine has threads, heap or
 * secrets └─ pid 1 of sandbox  cloned by the zygote with CLONE_PARENT, never exec'd └─
 * commands     vfork and exec; stdio are pipes that the engine made
 *
 * The zygote prepares, with the rights of its caller, everything that needs the host:
 * trees, quotas, network namespaces, uid ranges. The child, with the rights of a root
 * that exists only in its own user namespace, puts it together and gives the rights up.
 * One thread, no exec.
 *
 *     main.c      socket to the engine, event loop, death of the engine
 *     shed.c      once: memory that we and our children do without
 *     host.c      once: user namespace, private mounts, uid ranges
 *     ranges.c    once: several users for an ordinary user
 *     lean.c      once: the mount namespace that sandboxes begin with
 *     net.c       networks: made, kept ready, used again
 *     gate.c      networks whose connections end at the engine
 *     skeleton.c  once: the generated root file system of image "host"
 *     tree.c      per sandbox: quota, overlays, the engine's tree and the child's
 *     tree_old.c  the same before Linux 6.15, in the namespace of store.c
 *     copy.c      layers, copied over each other
 *     born.c      per sandbox: clone, uid maps, answer
 *     underlay.c  layers below sandboxes that live
 *     setup.c     in the child: the order of set-up, ending with the filter
 *     pid1.c      in the child: the loop, reaping, the end
 *     command.c   in the child: one command from EXEC to execve
 *     kill.c      in the child: which processes belong to a command
 *
 * Functions return 0 or -1 with errno; the step that failed is noted with ab_at() for
 * FAILED.
 */
#ifndef AB_INIT_INIT_H
#define AB_INIT_INIT_H

#include <sys/types.h>

#include "base/wire.h"

#define AB_SLOTS     AB_WIRE_SLOTS
#define AB_UID_BASE  0x70000000u /* above what systemd hands out to containers */
#define AB_UID_RANGE 65536u
#define AB_NET_POOL  6  /* made ahead, when there is nothing else to do */
#define AB_NET_KEPT  32 /* and used ones that are like new */

/* Descriptors that stay, of which there are several for each sandbox, are numbered from
 * here: a child takes only those below, or it would carry thousands. */
#define AB_KEPT_FD 128

/* Names the step being done; true, so that it can stand before a condition. */
extern const char *ab_step;
static inline bool ab_at(const char *step)
{
    ab_step = step;
    return true;
}

/* A uid range and the trees mapped to it; all -1 until first used. Reused by later
 * sandboxes. */
struct slot {
    int refs;
    int userns;         /* a namespace with this mapping, for idmapped mounts */
    int skel, usr, dev; /* detached trees */
};

struct zygote {
    int sock;
    bool ready;
    bool root; /* root of the initial user namespace with all ids; else our own namespace
                */
    bool traces; /* may enter a sandbox's mount namespace by its pidfd. Who may not, as an
                    ordinary user and mostly a container's root, opens it while the child
                    has given up nothing yet */
    bool old_mounts; /* attach before use, as kernels before 6.15 want it */
    uint32_t facts;  /* enum ab_wire_fact, so far */
    int store_ns;    /* where they are attached, or -1 */
    uint32_t uid_first, uid_rest,
        uid_count; /* of an ordinary user, as the engine sees it */
    int host_ns,
        lean_ns;     /* mount namespaces: the host's tree, and ours with nearly nothing */
    int proc;        /* the host's /proc */
    int proc_net;    /* there, what tells of the network that we are in */
    int self_userns; /* ours, for who wires the network of an ordinary user; or -1 */
    int skel, dev;   /* unmapped trees */
    int perch;       /* where a sandbox sits while its root is changed */
    int own_net;     /* where we rest; the host's network is left at set-up */
    int net[AB_NET_KEPT], nets;
    int go[2];  /* pipe: uid maps are written; its end: we died before that */
    int parted; /* eventfd: the child has descriptors of its own */
    int parents[AB_WIRE_CGROUPS + 1], nparents;
    char ident[96];
    struct slot slots[AB_SLOTS];
};

/* What one sandbox needs, owned by ab_born(); -1 where absent. */
struct box {
    struct ab_wire_create spec;
    int sock;
    int pidfd; /* of a swap: the sandbox, or its mount namespace */
    int layers[AB_WIRE_LAYERS];
    int cgroup2;
    int v1[AB_WIRE_CGROUPS];
    struct slot *slot;
    int upper, files, tree; /* quota tmpfs, engine's tree, child's tree */
    int dev;
    int net;
    int mounts;       /* its mount namespace, or -1 */
    int upper_number; /* in the store, or -1 */
    bool unmapped;    /* the image's file system cannot map user ids */
};

/* main.c: gives fd a number from AB_KEPT_FD on, if it can. */
int ab_keep_fd(int fd);

/* host.c */
int ab_host_prepare(struct zygote *z);
int ab_host_own_ns(const struct zygote *z, const char *kind); /* "mnt", "net"; gives */
struct slot *ab_host_slot(struct zygote *z, uint32_t wanted);
int ab_host_map_ids(struct zygote *z, pid_t pid, const struct slot *s);
uint32_t ab_host_uid(const struct zygote *z, const struct slot *s, uint32_t inside);

int ab_lean_enter(struct zygote *z); /* lean.c */
int ab_lean_writable(void);          /* in a copy of it */

/* net.c. Network namespaces: where a sandbox has nothing but its own loopback. */
int ab_net_rest(struct zygote *z); /* leaves the host's network; once */
int ab_net_take(struct zygote *z); /* gives */
void ab_net_give(struct zygote *z,
                 int net);            /* takes one whose sandbox is gone; -1 is nothing */
bool ab_net_refill(struct zygote *z); /* true when it made one and another is wanted */
int ab_host_open_image(struct zygote *z, const char *path);
int ab_host_mapped_clone(int tree, int userns);
int ab_host_idmap(int tree, int userns);
int ab_host_empty_tmpfs(const char *size, unsigned attr);
int ab_host_new_skeleton(struct zygote *z);
int ab_host_new_dev(uint32_t uid); /* root only: device nodes, read-only */

/* gate.c: in the namespace that we are in, which is new. Gives the number of descriptors
 * that GATE carries, or -1. */
int ab_gate_open(const uint16_t *ports, int nports, int fds[AB_WIRE_PORTS + 2]);

/* ranges.c: ask, enter the user namespace, wait; 0 when its ids are mapped. */
struct ab_ranges {
    pid_t pid;
    int go;
    uint32_t first, count;
};
pid_t ab_ranges_ask(struct ab_ranges *r);
int ab_ranges_wait(struct ab_ranges *r, bool entered);

/* skeleton.c: fills an empty tree from the host's /etc; runs in the host's mount
 * namespace. */
int ab_skeleton_fill(int tree);
int ab_skeleton_own(int tree, uint32_t uid); /* gives everything in it to uid */

/* tree.c */
int ab_tree_build(struct zygote *z, struct box *b);
int ab_tree_upper(struct box *b, uint32_t uid);
int ab_tree_image(struct zygote *z,
                  struct box *b); /* mapped, or unmapped and b->unmapped */
int ab_tree_complete(int tree, uint32_t uid, bool take);

/* tree_old.c */
bool ab_tree_is_old(int detached);
int ab_tree_prepare_old(struct zygote *z, struct slot *s);
int ab_tree_build_old(struct zygote *z, struct box *b);

/* copy.c: what is in from, over what is in to; both must be open for reading. */
int ab_copy_tree(const struct zygote *z, int from, int to);

/* store.c. Between enter and leave, which keeps errno, we are in its namespace. */
#define AB_STORE_PATH 24
int ab_store_enter(struct zygote *z);
int ab_store_leave(struct zygote *z);
int ab_store_attach(int tree, const char *at);
int ab_store_add(int tree);   /* attaches a quota file system; gives its number */
int ab_store_find(int layer); /* the number of one that somebody has a descriptor of */
void ab_store_path(int n, char path[AB_STORE_PATH]);
void ab_store_end(int n); /* its sandbox is gone; -1 is nothing */
bool ab_store_sweep(
    struct zygote *z); /* lets go what nobody holds; true while some are held */

/* born.c: answers on b->sock; gives the pidfd, or -1 after FAILED was sent. */
int ab_born(struct zygote *z, struct box *b);
void ab_box_close(struct box *b);

/* underlay.c: answers a swap, a merger or a view on b->sock. */
void ab_underlay(struct zygote *z, struct box *b);

/* setup.c: never returns. */
AB_NORETURN void ab_setup(struct zygote *z, struct box *b);

/* shed.c: first of all; never returns, nor does go_on(). */
AB_NORETURN void ab_shed(void (*go_on)(void));

/* pid1.c: never returns. */
AB_NORETURN void ab_pid1(int sock);

#endif
