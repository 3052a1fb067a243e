/* door.h - the engine's end of a sandbox's network with a list: answers its questions for
 * names, accepts what it connects to, goes there itself where the list allows it, and
 * remembers what it was refused.
 *
 *     names       resolved here, by this machine's resolver. Each that is allowed gets an
 *                 address of the sandbox's own (198.18.0.0/15), so that a connection
 *                 tells which name it is meant for. Where that leads was found when the
 *                 name was asked for, and nothing that the sandbox does changes it.
 *     addresses   a name that leads to this machine or to what is not the public internet
 *                 leads nowhere, unless a rule for that address and port says so or the
 *                 hosts table gave it.
 *     bounds      connections at once, bytes in all, silence of a connection, new
 *                 connections and questions in a second, names, questions under way.
 *
 * The sockets come from agentbox-init (src/init/gate.c). Everything ends with
 * ab_door_close(); a lookup that is still under way ends by itself. */
#ifndef AB_RT_DOOR_H
#define AB_RT_DOOR_H

#include "base/allow.h"
#include "rt/loop.h"

#define AB_DOOR_DENIALS 256          /* different ones that are kept */
#define AB_DOOR_OWN_DNS "198.18.0.1" /* a name server's address: any would do */

struct ab_door;

struct ab_door_limits {
    unsigned connections;
    uint64_t bytes;
    uint64_t idle_ms;
};

enum ab_denied_why {
    AB_DENIED_NAME,    /* not on the list */
    AB_DENIED_ADDRESS, /* not on the list */
    AB_DENIED_PORT,    /* the name is, with other ports */
    AB_DENIED_PRIVATE, /* an allowed name led there */
    AB_DENIED_SERVER,  /* TLS asked for another server than the list has, or for none that
                          can be read */
    AB_DENIED_LIMIT,
};

/* An attempt that was refused; the same one again only counts. */
struct ab_denial {
    char name[256]; /* "" when an address was used */
    struct ab_addr addr;
    bool has_addr;
    uint16_t port;    /* 0: a question for the name */
    char protocol[4]; /* "tcp", "udp", "dns" */
    enum ab_denied_why why;
    uint64_t count;
    double first, last; /* seconds since 1970 */
};

struct ab_door_stats {
    uint64_t connections, failed, denied, bytes, questions;
    unsigned open;
};

/* fds: the socket for questions, nports listening ones in the order of the list's ports,
 * and perhaps one that tells of attempts at others. Takes them, and the list. Gives. */
struct ab_door *ab_door_open(struct ab_loop *loop, const int *fds, int nfds,
                             struct ab_allow *allow, const struct ab_door_limits *limits);
void ab_door_close(struct ab_door *d); /* NULL is fine */

/* Borrowed until the loop turns. More were refused than are kept when stats.denied says
 * so. */
const struct ab_denial *ab_door_denials(const struct ab_door *d, size_t *count);
void ab_door_stats(const struct ab_door *d, struct ab_door_stats *out);

/* The same list, to outlive the door. Gives, or NULL. */
struct ab_denial *ab_door_take_denials(struct ab_door *d, size_t *count);

/* "not_allowed", ...: stable. */
const char *ab_denied_name(enum ab_denied_why why);

#endif
