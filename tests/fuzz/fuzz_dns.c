/* fuzz_dns.c - questions as they come from inside a sandbox. The first byte chooses what
 * is answered; an answer begins as its question did, has its length, and fits. */
#include <stdlib.h>
#include <string.h>

#include "base/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(const struct ab_dns_question *q)
{
    size_t len = strnlen(q->name, sizeof q->name);
    if (len == sizeof q->name)
        AB_BUG("a name without its end");
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)q->name[i];
        if (c < '!' || c > '~' || (c >= 'A' && c <= 'Z'))
            AB_BUG("a byte that no name has");
    }
}

static void check_answer(const uint8_t *msg, const struct ab_dns_question *q, uint8_t how)
{
    static const enum ab_dns_code codes[] = {AB_DNS_OK, AB_DNS_FAILED, AB_DNS_NO_NAME,
                                             AB_DNS_NOT_DONE};
    uint8_t out[AB_DNS_MAX];
    uint32_t address = how & 4 ? 0xc6120001 : 0;
    size_t len = ab_dns_answer(msg, q, codes[how & 3], address, 60, out);
    if (len < q->end || len > sizeof out)
        AB_BUG("an answer of the wrong length");
    if (memcmp(out, msg, 2) != 0 || !(out[2] & 0x80) || (out[3] & 15) != codes[how & 3])
        AB_BUG("an answer to something else");
    if (memcmp(out + 12, msg + 12, q->end - 12) != 0)
        AB_BUG("another question in the answer");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ab_dns_question q;
    if (size == 0)
        return 0;
    /* In memory of its own size, so that one byte too many is noticed. */
    uint8_t *msg = ab_xcalloc(1, size);
    memcpy(msg, data + 1, size - 1);
    if (ab_dns_parse(msg, size - 1, &q)) {
        if (q.end > size - 1 || q.end < 12)
            AB_BUG("a question beyond its message");
        check_name(&q);
        check_answer(msg, &q, data[0]);
    }
    free(msg);
    return 0;
}
