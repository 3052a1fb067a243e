/* dns.h - questions of the domain name system as they arrive, and our answers to them.
 * Nothing is believed about a question but its length. */
#ifndef AB_BASE_DNS_H
#define AB_BASE_DNS_H

#include "base/ab.h"

#define AB_DNS_MAX 512 /* bytes of a question, and of an answer */

enum { AB_DNS_A = 1, AB_DNS_AAAA = 28 };

enum ab_dns_code {
    AB_DNS_OK = 0,
    AB_DNS_FAILED = 2, /* try again later */
    AB_DNS_NO_NAME = 3,
    AB_DNS_NOT_DONE = 4,
};

struct ab_dns_question {
    uint16_t type;
    char name[256]; /* lower case, no final dot; other bytes than a name may have as \DDD,
                       cut when it does not fit */
    bool odd;       /* there were such bytes: no rule can mean it */
    size_t end;     /* of the question in the message */
};

/* False for what deserves no answer: too short, an answer itself, no question. */
bool ab_dns_parse(const uint8_t *msg, size_t len, struct ab_dns_question *q);

/* Writes the answer to msg, whose question is q, into out; gives its length. With an
 * address (IPv4, host order, not 0) it is one record that holds for ttl_s. */
size_t ab_dns_answer(const uint8_t *msg, const struct ab_dns_question *q,
                     enum ab_dns_code code, uint32_t address, uint32_t ttl_s,
                     uint8_t out[AB_DNS_MAX]);

#endif
