/* addr.h - addresses of the internet: read, written, classified.
 *
 * One form for both families: 16 bytes as of IPv6, an IPv4 address as ::ffff:a.b.c.d, so
 * that whoever compares two does not meet the same host in two disguises. */
#ifndef AB_BASE_ADDR_H
#define AB_BASE_ADDR_H

#include <netinet/in.h>

#include "base/ab.h"

#define AB_ADDR_TEXT INET6_ADDRSTRLEN

struct ab_addr {
    uint8_t b[16];
};

/* A literal as inet_pton takes it: no "127.1", no zone, no brackets. */
bool ab_addr_parse(struct ab_addr *a, const char *text);

/* As people write it: an IPv4 address without its ::ffff:. */
void ab_addr_text(const struct ab_addr *a, char text[AB_ADDR_TEXT]);

struct ab_addr ab_addr_v4(uint32_t host_order);
bool ab_addr_is_v4(const struct ab_addr *a);
uint32_t ab_addr_to_v4(const struct ab_addr *a); /* host order, of one that is */
bool ab_addr_equal(const struct ab_addr *a, const struct ab_addr *b);

/* Whether the first `bits` bits (of 128) are those of net. */
bool ab_addr_within(const struct ab_addr *a, const struct ab_addr *net, unsigned bits);

/* 127.0.0.0/8 and ::1. */
bool ab_addr_is_loopback(const struct ab_addr *a);

/* NULL for an address of the public internet, else what it is: "loopback", "private",
 * "link-local", ... An IPv4 address inside an IPv6 one (mapped, compatible, NAT64, 6to4)
 * is seen through. */
const char *ab_addr_special(const struct ab_addr *a);

/* sa of either family; false for another one. */
bool ab_addr_from(const struct sockaddr *sa, struct ab_addr *a, uint16_t *port);
socklen_t ab_addr_to(const struct ab_addr *a, uint16_t port,
                     struct sockaddr_storage *out);

#endif
