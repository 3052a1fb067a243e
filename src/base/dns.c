#include "base/dns.h"

#include <stdio.h>
#include <string.h>

#define HEADER   12
#define CLASS_IN 1

/* One byte of a label; false when the name is full. */
static bool put_byte(struct ab_dns_question *q, size_t *n, uint8_t c)
{
    bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    if (c >= 'A' && c <= 'Z') {
        c = (uint8_t)(c - 'A' + 'a');
        plain = true;
    }
    size_t need = plain ? 1 : 4;
    if (*n + need >= sizeof q->name)
        return false;
    if (plain)
        q->name[(*n)++] = (char)c;
    else
        *n += (size_t)snprintf(q->name + *n, sizeof q->name - *n, "\\%03u", c);
    q->odd = q->odd || !plain;
    return true;
}

/* Labels from at on; the place after them, or 0. */
static size_t parse_name(const uint8_t *msg, size_t len, size_t at,
                         struct ab_dns_question *q)
{
    size_t n = 0;
    bool room = true;
    size_t start = at;
    while (at < len && msg[at] != 0) {
        size_t label = msg[at++];
        if (label > 63 || label >= len - at || at + label - start > 254)
            return 0; /* 64 and more would be a pointer, which a question has no use for
                       */
        if (n > 0 && n + 1 < sizeof q->name)
            q->name[n++] = '.';
        for (size_t i = 0; i < label; i++)
            room = room && put_byte(q, &n, msg[at + i]);
        at += label;
    }
    q->name[n] = 0;
    q->odd = q->odd || !room || n == 0;
    return at < len ? at + 1 : 0;
}

bool ab_dns_parse(const uint8_t *msg, size_t len, struct ab_dns_question *q)
{
    memset(q, 0, sizeof *q);
    if (len < HEADER || len > AB_DNS_MAX || msg[2] & 0xf8 || msg[4] != 0 || msg[5] != 1)
        return false; /* an answer, another operation, not one question */
    size_t at = parse_name(msg, len, HEADER, q);
    if (at == 0 || len - at < 4 || msg[at + 2] != 0 || msg[at + 3] != CLASS_IN)
        return false;
    q->type = (uint16_t)(msg[at] << 8 | msg[at + 1]);
    q->end = at + 4;
    return true;
}

size_t ab_dns_answer(const uint8_t *msg, const struct ab_dns_question *q,
                     enum ab_dns_code code, uint32_t address, uint32_t ttl_s,
                     uint8_t out[AB_DNS_MAX])
{
    size_t n = q->end;
    memcpy(out, msg, n);
    out[2] = (uint8_t)(0x80 | (msg[2] & 0x01)); /* an answer; recursion as was desired */
    out[3] = (uint8_t)(0x80 | code);            /* and is to be had */
    memset(out + 6, 0, 6);
    if (!address || n + 16 > AB_DNS_MAX)
        return n;
    const uint8_t record[16] = {
        0xc0,
        HEADER, /* the question's name */
        0,
        AB_DNS_A,
        0,
        CLASS_IN,
        (uint8_t)(ttl_s >> 24),
        (uint8_t)(ttl_s >> 16),
        (uint8_t)(ttl_s >> 8),
        (uint8_t)ttl_s,
        0,
        4,
        (uint8_t)(address >> 24),
        (uint8_t)(address >> 16),
        (uint8_t)(address >> 8),
        (uint8_t)address,
    };
    out[7] = 1;
    memcpy(out + n, record, sizeof record);
    return n + sizeof record;
}
