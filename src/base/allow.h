/* allow.h - a list of what may be reached: names and addresses, with ports.
 *
 *     example.org:443   *.example.org:80,443   *:443   10.1.2.3:8080   10.0.0.0/8:5432
 *     [2001:db8::1]:443   [fd00::/8]:443
 *
 * `*.x` is every name below x, not x; `*` is every name. A name never stands for an
 * address that is not of the public internet: that needs a rule for the address, or an
 * entry of the hosts table, which says what a name's address is and is trusted. */
#ifndef AB_BASE_ALLOW_H
#define AB_BASE_ALLOW_H

#include "base/addr.h"
#include "base/err.h"

#define AB_ALLOW_RULES 256
#define AB_ALLOW_PORTS 16 /* different ones in a list */
#define AB_ALLOW_HOSTS 64
#define AB_NAME_MAX    253

struct ab_allow;

struct ab_allow *ab_allow_new(void);
void ab_allow_free(struct ab_allow *a); /* NULL is fine */

/* AB_EBADARG names what is wrong with the text; AB_ETOOBIG when there are too many. */
int ab_allow_add(struct ab_allow *a, const char *rule, struct ab_err *err) AB_MUST_CHECK;
int ab_allow_host(struct ab_allow *a, const char *name, const char *address,
                  struct ab_err *err) AB_MUST_CHECK;

/* The ports that rules name, each once; gives their number. */
int ab_allow_ports(const struct ab_allow *a, uint16_t ports[AB_ALLOW_PORTS]);

/* Names are lower case and without a final dot. port 0: on any. */
bool ab_allow_name(const struct ab_allow *a, const char *name, uint16_t port);
bool ab_allow_addr(const struct ab_allow *a, const struct ab_addr *addr, uint16_t port);

/* The hosts table's address of a name, or NULL. Borrowed. */
const struct ab_addr *ab_allow_find_host(const struct ab_allow *a, const char *name);

/* Letters, digits, '-' and '_' in labels of at most 63 bytes, in any case. */
bool ab_name_is_valid(const char *name);

#endif
