/* wire.h - what the engine and agentbox-init say to each other.
 *
 *     engine --CREATE-> zygote  one socket, one way; its end kills every sandbox
 *     engine <--BORN--- zygote  a socket for each sandbox, passed with CREATE; FAILED may
 *     engine <-READY--- pid 1     stand in for either answer
 *     engine --EXEC---> pid 1     READY answers it; KILL is for everything inside
 *     engine --KILL---> pid 1   a socket for each command, passed with EXEC;
 *     engine <--EXIT--- pid 1     closing it means KILL; it may be kept (KEEP, KEPT)
 *
 * A message is one packet of a SOCK_SEQPACKET socket: a 32-bit type, then the fields in
 * the order of the struct, little endian, strings with their length and a final NUL.
 * Descriptors travel beside it. The decoders believe nothing: lengths, counts, NULs and
 * leftovers are checked, so a hostile pid 1 can at worst make its own sandbox fail.
 *
 * Uses libc only, allocates nothing; shared by the engine and the static init.
 */
#ifndef AB_BASE_WIRE_H
#define AB_BASE_WIRE_H

#include "base/ab.h"

#define AB_WIRE_MAX     65536 /* bytes in one packet */
#define AB_WIRE_FDS     72    /* descriptors beside one packet */
#define AB_WIRE_LAYERS  64    /* frozen layers below one sandbox */
#define AB_WIRE_CGROUPS 4     /* hierarchies of cgroup v1 that are joined */
#define AB_WIRE_PORTS   16    /* that a sandbox with a list may connect to */
#define AB_WIRE_SLOTS   4096  /* ranges of user ids */

enum ab_wire_type {
    AB_WIRE_SETUP = 1, /* engine to zygote, first; fds: cgroup parent directories */
    AB_WIRE_CREATE,    /* fds: control socket, pidfd of a swap, layers, cgroup2 directory,
                          v1's files to join by */
    AB_WIRE_BORN, /* fds: pidfd, file tree, upper file system, network namespace, user
                     namespace */
    AB_WIRE_READY,
    AB_WIRE_FAILED, /* fds: pidfd of a child to reap, if there is one */
    AB_WIRE_EXEC, /* fds: command socket, stdout, stderr, stdin, file to join the leaf by,
                     strings; those that apply */
    AB_WIRE_STARTED, /* fds: terminal */
    AB_WIRE_KILL,
    AB_WIRE_EXIT,
    AB_WIRE_GROUP, /* engine to zygote: a process group of the host, to die with us */
    AB_WIRE_LAID,  /* answers a swap, a merger, a view; fds: upper file system, file tree
                    */
    AB_WIRE_GATE, /* before BORN; fds: socket for names, one for each port, one that tells
                     of other attempts, if there is one */
    AB_WIRE_TYPES
};

enum ab_wire_create_flag {
    AB_WIRE_HOST_IMAGE = 1 << 0, /* the generated skeleton over the host's /usr */
    AB_WIRE_NET_FULL = 1 << 1, /* a namespace to be wired to the outside by the engine */
    AB_WIRE_CGROUP2 = 1 << 2,  /* a cgroup2 directory is among the descriptors */
    AB_WIRE_RLIMITS = 1 << 3,  /* no memory or pids controller: resource limits instead */
    AB_WIRE_SWAP = 1 << 4,     /* no new sandbox: another upper file system for one that
                                  lives, in which nobody but pid 1 does */
    AB_WIRE_MERGE = 1 << 5,    /* no sandbox at all: the layers, copied into one */
    AB_WIRE_VIEW = 1 << 6,     /* no sandbox at all: the file tree that one would have */
    AB_WIRE_NET_GATE =
        1 << 7, /* a namespace that leads to the engine: GATE comes first */
};

struct ab_wire_setup {
    uint32_t parents;    /* how many directories are passed */
    const char *ident;   /* prefix of the names of our cgroups below them */
    uint32_t old_mounts; /* do as on a kernel before 6.15 */
};

struct ab_wire_create {
    uint32_t flags;
    uint32_t slot; /* uid range to use; AB_WIRE_SLOTS + n: the first free one from n on */
    uint32_t layers; /* how many, topmost first */
    uint32_t v1;     /* how many files to join those of version 1 by */
    uint64_t disk_bytes, inodes, shm_bytes;
    uint64_t memory_bytes, pids, nofile;
    uint32_t nports; /* with AB_WIRE_NET_GATE */
    uint16_t ports[AB_WIRE_PORTS];
    const char *image; /* absolute directory unless AB_WIRE_HOST_IMAGE */
    const char *hostname;
    const char *workspace;
    const char *cgroup; /* name below the cgroup parents, for removal after our death */
};

/* Which way the zygote had to go here; found by trying, once. */
enum ab_wire_fact {
    AB_WIRE_OLD_MOUNTS = 1 << 0,   /* trees are attached while they are put together */
    AB_WIRE_USR_UNMAPPED = 1 << 1, /* /usr cannot map user ids: it is nobody's inside */
    AB_WIRE_SKEL_COPIED = 1 << 2,  /* nor can tmpfs: a skeleton for each uid range */
    AB_WIRE_NO_XATTR = 1 << 3,     /* tmpfs keeps none of users: the root is a copy */
    AB_WIRE_NO_SWAP = 1 << 4,      /* a snapshot of one that lives is a copy */
    AB_WIRE_MOUNTS = 1 << 5, /* the last descriptor of BORN is its mount namespace */
    AB_WIRE_IMAGE_UNMAPPED = 1 << 6, /* nor can an image's: its files are nobody's */
};

struct ab_wire_born {
    uint32_t pid; /* in the engine's pid namespace */
    uint32_t slot;
    uint32_t uid_first; /* host id of root inside */
    uint32_t uid_rest;  /* host id of user 1 inside */
    uint32_t uid_count; /* ids mapped, 1 for an ordinary user without ranges */
    uint32_t facts;     /* enum ab_wire_fact */
};

struct ab_wire_failed {
    int32_t errnum;
    const char *step;
};

enum ab_wire_exec_flag {
    AB_WIRE_TERMINAL = 1 << 0, /* stdin is a new pty; STARTED brings its other side */
    AB_WIRE_IN_FILE = 1 << 1, /* the strings are in a sealed memfd, the last descriptor */
    AB_WIRE_STDIN = 1 << 2,   /* stdin is passed; else it is /dev/null */
    AB_WIRE_KEEP = 1 << 3,    /* the command's socket may be kept */
    AB_WIRE_SAME = 1 << 4,    /* its socket is the one that was kept: none is passed */
};

struct ab_wire_exec {
    uint32_t flags;
    uint32_t uid, gid;
    uint32_t argc, envc;
    uint32_t rows, cols;
    uint32_t leaf;   /* 0, or the number of a cgroup of its own: cN below the sandbox's */
    uint64_t nofile; /* 0 keeps the sandbox's */
    uint64_t strings_len;
    const char *cwd;
    const char
        *strings; /* argc + envc NUL-terminated strings; NULL with AB_WIRE_IN_FILE */
};

enum ab_wire_exit_flag {
    AB_WIRE_KILLED = 1 << 0,  /* the engine asked for it */
    AB_WIRE_NO_EXEC = 1 << 1, /* the program could not be started: errnum says why */
    AB_WIRE_KEPT = 1 << 2,    /* this socket is kept, until it is closed or used */
};

struct ab_wire_exit {
    uint32_t flags;
    int32_t code;   /* exit status, or -1 when a signal ended it */
    int32_t signal; /* 0, or the signal */
    int32_t errnum;
    uint64_t user_us, system_us, max_rss_bytes, wall_us;
};

/* Of backend none: alive from its start to its end. */
struct ab_wire_group {
    uint32_t pid; /* of its leader */
    uint32_t alive;
};

struct ab_wire_out {
    uint8_t *data; /* borrowed */
    size_t cap, len;
    bool full; /* something did not fit: the packet is unusable */
};

/* Encoders start a packet in buf; -1 when it does not fit in cap, else its length. */
long ab_wire_put_setup(uint8_t *buf, size_t cap, const struct ab_wire_setup *m);
long ab_wire_put_create(uint8_t *buf, size_t cap, const struct ab_wire_create *m);
long ab_wire_put_born(uint8_t *buf, size_t cap, const struct ab_wire_born *m);
long ab_wire_put_failed(uint8_t *buf, size_t cap, const struct ab_wire_failed *m);
long ab_wire_put_exec(uint8_t *buf, size_t cap, const struct ab_wire_exec *m);
long ab_wire_put_exit(uint8_t *buf, size_t cap, const struct ab_wire_exit *m);
long ab_wire_put_group(uint8_t *buf, size_t cap, const struct ab_wire_group *m);
long ab_wire_put_bare(uint8_t *buf, size_t cap, enum ab_wire_type type);

/* The type of a packet, or 0 when it has none that we know. */
enum ab_wire_type ab_wire_type(const uint8_t *buf, size_t len);

/* Decoders fill m, with strings borrowed from buf; -1 when the packet is malformed. */
int ab_wire_get_setup(const uint8_t *buf, size_t len, struct ab_wire_setup *m)
    AB_MUST_CHECK;
int ab_wire_get_create(const uint8_t *buf, size_t len, struct ab_wire_create *m)
    AB_MUST_CHECK;
int ab_wire_get_born(const uint8_t *buf, size_t len, struct ab_wire_born *m)
    AB_MUST_CHECK;
int ab_wire_get_failed(const uint8_t *buf, size_t len, struct ab_wire_failed *m)
    AB_MUST_CHECK;
int ab_wire_get_exec(const uint8_t *buf, size_t len, struct ab_wire_exec *m)
    AB_MUST_CHECK;
int ab_wire_get_exit(const uint8_t *buf, size_t len, struct ab_wire_exit *m)
    AB_MUST_CHECK;
int ab_wire_get_group(const uint8_t *buf, size_t len, struct ab_wire_group *m)
    AB_MUST_CHECK;

/* True when data is exactly count NUL-terminated strings. */
bool ab_wire_is_strings(const char *data, size_t len, size_t count);

/* Sends one packet; 0, or -errno (-EAGAIN when flags has MSG_DONTWAIT and there is no
 * room). The descriptors stay the caller's. */
int ab_wire_send(int sock, const uint8_t *buf, size_t len, const int *fds, int nfds,
                 int flags);

/* Receives one packet into buf of AB_WIRE_MAX bytes. Gives the descriptors
 * (close-on-exec). Returns its length, 0 at the end of the stream, or -errno; a packet
 * that was cut is -EPROTO. An end with something of ours unread hides nothing sent. */
long ab_wire_recv(int sock, uint8_t *buf, int fds[AB_WIRE_FDS], int *nfds, int flags);

void ab_wire_close_fds(const int *fds, int nfds);

#endif
