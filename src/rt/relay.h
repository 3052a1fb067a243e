/* relay.h - one connection that a sandbox made to the outside: two sockets, and what one
 * side says copied to the other.
 *
 * A side that does not read stops the other one; at most one piece for each direction is
 * held. The end of one direction is passed on and the other goes on; an error of one side
 * is a reset for the other. When the connection was made by name and begins with TLS, the
 * server's name in it must be allowed too.
 */
#ifndef AB_RT_RELAY_H
#define AB_RT_RELAY_H

#include "base/addr.h"
#include "base/list.h"
#include "rt/loop.h"

#define AB_RELAY_TRIES 8 /* addresses of one name */

struct ab_relay;

struct ab_relay_class {
    /* Whether TLS may ask for this server. Called at most once. */
    bool (*may_greet)(void *arg, const char *server, uint16_t port);
    /* `bytes` more were carried; false ends the connection. */
    bool (*carried)(void *arg, size_t bytes);
    /* It is over; link is out of the list. failed: no address could be reached. */
    void (*over)(void *arg, bool failed);
};

struct ab_relay_target {
    struct ab_addr addrs[AB_RELAY_TRIES];
    int count;
    uint16_t port;
    bool by_name;
};

/* Takes the accepted socket, dials, and appends itself to list until it is over. cls and
 * arg are borrowed; nothing is called any more after ab_relay_end(). */
void ab_relay_start(struct ab_loop *loop, struct ab_list *list, int inside,
                    const struct ab_relay_target *to, const struct ab_relay_class *cls,
                    void *arg);

/* Ends those of the list that carried nothing for idle_ms, or have not
 * reached the outside after setup_ms. */
void ab_relay_expire(struct ab_list *list, uint64_t now_ms, uint64_t setup_ms,
                     uint64_t idle_ms);

/* Ends all of the list, with a reset. */
void ab_relay_end(struct ab_list *list);

/* Closes a socket so that the other side sees a reset at once. */
void ab_relay_refuse(int fd);

#endif
