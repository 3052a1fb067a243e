/* names.h - the name server of one sandbox: a socket for questions, and what the names
 * that were asked for lead to. See door.h for what it promises. */
#ifndef AB_RT_NAMES_H
#define AB_RT_NAMES_H

#include "base/allow.h"
#include "rt/loop.h"

#define AB_NAME_ADDRS 8

/* A name that is allowed, and was asked for. */
struct ab_name {
    char *text;
    struct ab_addr addrs[AB_NAME_ADDRS];
    bool inner[AB_NAME_ADDRS]; /* not of the public internet, or this machine's own: only
                                  with a rule for the address */
    int count;                 /* 0 while it leads nowhere */
    bool trusted;              /* from the hosts table */
    bool known, asking;
    int code;          /* enum ab_dns_code of the answer, once known */
    uint64_t until_ms; /* then it is asked again, when the sandbox does */
};

struct ab_names;

struct ab_names_class {
    /* A name was asked for that may not be reached; addr when that is why. */
    void (*refused)(void *arg, const char *name, const struct ab_addr *addr, bool limit);
    void (*asked)(void *arg); /* there was a question */
};

/* Takes fd; the rest is borrowed until ab_names_close(). Gives. */
struct ab_names *ab_names_open(struct ab_loop *loop, int fd, const struct ab_allow *allow,
                               const struct ab_names_class *cls, void *arg);
void ab_names_close(struct ab_names *n);

/* Which name an address stands for inside, or NULL. False for an address that never
 * stands for one. */
bool ab_names_owns(const struct ab_addr *addr);
const struct ab_name *ab_names_find(const struct ab_names *n, const struct ab_addr *addr);

/* A new share of questions may be answered. */
void ab_names_tick(struct ab_names *n);

#endif
