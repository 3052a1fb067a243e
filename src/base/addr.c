#include "base/addr.h"

#include <arpa/inet.h>
#include <string.h>

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

struct ab_addr ab_addr_v4(uint32_t v)
{
    struct ab_addr a;
    memcpy(a.b, mapped, sizeof mapped);
    for (int i = 0; i < 4; i++)
        a.b[12 + i] = (uint8_t)(v >> (24 - 8 * i));
    return a;
}

bool ab_addr_is_v4(const struct ab_addr *a)
{
    return memcmp(a->b, mapped, sizeof mapped) == 0;
}

static uint32_t word(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

uint32_t ab_addr_to_v4(const struct ab_addr *a)
{
    return word(a->b + 12);
}

bool ab_addr_equal(const struct ab_addr *a, const struct ab_addr *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

bool ab_addr_parse(struct ab_addr *a, const char *text)
{
    struct in_addr v4;
    if (inet_pton(AF_INET, text, &v4) == 1) {
        *a = ab_addr_v4(ntohl(v4.s_addr));
        return true;
    }
    return inet_pton(AF_INET6, text, a->b) == 1;
}

void ab_addr_text(const struct ab_addr *a, char text[AB_ADDR_TEXT])
{
    bool v4 = ab_addr_is_v4(a);
    inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? a->b + 12 : a->b, text, AB_ADDR_TEXT);
}

bool ab_addr_within(const struct ab_addr *a, const struct ab_addr *net, unsigned bits)
{
    if (memcmp(a->b, net->b, bits / 8) != 0)
        return false;
    unsigned rest = bits % 8;
    return rest == 0 || (a->b[bits / 8] ^ net->b[bits / 8]) >> (8 - rest) == 0;
}

bool ab_addr_is_loopback(const struct ab_addr *a)
{
    static const struct ab_addr one = {{[15] = 1}};
    return ab_addr_is_v4(a) ? a->b[12] == 127 : ab_addr_equal(a, &one);
}

/* The special-purpose registries of IANA, as far as they are not public hosts. */
static const char *special_v4(uint32_t v)
{
    static const struct {
        uint32_t net;
        unsigned bits;
        const char *what;
    } ranges[] = {
        {0x00000000, 8, "unspecified"},    {0x0a000000, 8, "private"},
        {0x64400000, 10, "carrier"},       {0x7f000000, 8, "loopback"},
        {0xa9fe0000, 16, "link-local"},    {0xac100000, 12, "private"},
        {0xc0000000, 24, "reserved"},      {0xc0000200, 24, "documentation"},
        {0xc0586300, 24, "reserved"},      {0xc0a80000, 16, "private"},
        {0xc6120000, 15, "benchmarking"},  {0xc6336400, 24, "documentation"},
        {0xcb007100, 24, "documentation"}, {0xe0000000, 4, "multicast"},
        {0xf0000000, 4, "reserved"},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if ((v ^ ranges[i].net) >> (32 - ranges[i].bits) == 0)
            return ranges[i].what;
    return NULL;
}

const char *ab_addr_special(const struct ab_addr *a)
{
    static const struct {
        struct ab_addr net;
        unsigned bits, v4_at; /* where an IPv4 address is inside, or 0 */
        const char *what;
    } ranges[] = {
        {{{[10] = 0xff, [11] = 0xff}}, 96, 12, NULL},
        {{{0x00, 0x64, 0xff, 0x9b}}, 96, 12, NULL},
        {{{0x20, 0x02}}, 16, 2, NULL},
        {{{[15] = 1}}, 128, 0, "loopback"},
        {{{0}}, 96, 0, "unspecified"}, /* and the compatible ones, long gone */
        {{{0xfc}}, 7, 0, "private"},
        {{{0xfe, 0x80}}, 10, 0, "link-local"},
        {{{0xfe, 0xc0}}, 10, 0, "private"},
        {{{0xff}}, 8, 0, "multicast"},
        {{{0x20, 0x01, 0x0d, 0xb8}}, 32, 0, "documentation"},
        {{{0x3f, 0xff}}, 20, 0, "documentation"},
        {{{0x20, 0x01}}, 23, 0, "reserved"}, /* Teredo among them */
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (ab_addr_within(a, &ranges[i].net, ranges[i].bits))
            return ranges[i].v4_at ? special_v4(word(a->b + ranges[i].v4_at))
                                   : ranges[i].what;
    return a->b[0] >> 5 == 1 ? NULL : "reserved"; /* 2000::/3 is all that is public */
}

bool ab_addr_from(const struct sockaddr *sa, struct ab_addr *a, uint16_t *port)
{
    if (sa->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, sa, sizeof in);
        *a = ab_addr_v4(ntohl(in.sin_addr.s_addr));
        *port = ntohs(in.sin_port);
        return true;
    }
    if (sa->sa_family != AF_INET6)
        return false;
    struct sockaddr_in6 in6;
    memcpy(&in6, sa, sizeof in6);
    memcpy(a->b, &in6.sin6_addr, sizeof a->b);
    *port = ntohs(in6.sin6_port);
    return true;
}

socklen_t ab_addr_to(const struct ab_addr *a, uint16_t port, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof *out);
    if (ab_addr_is_v4(a)) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
        memcpy(&in.sin_addr, a->b + 12, 4);
        memcpy(out, &in, sizeof in);
        return sizeof in;
    }
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    memcpy(&in6.sin6_addr, a->b, 16);
    memcpy(out, &in6, sizeof in6);
    return sizeof in6;
}
