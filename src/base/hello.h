/* hello.h - the server's name in the first message of TLS, which is sent in the clear. */
#ifndef AB_BASE_HELLO_H
#define AB_BASE_HELLO_H

#include "base/ab.h"

#define AB_HELLO_MAX 16384 /* bytes; a longer one is none that we know */

enum ab_hello {
    AB_HELLO_NONE,   /* not TLS */
    AB_HELLO_MORE,   /* so far it could be; more bytes are needed */
    AB_HELLO_BROKEN, /* it begins like TLS and is not well formed, or too long */
    AB_HELLO_BARE,   /* without a name */
    AB_HELLO_NAMED,
};

/* Reads what a client sent first. The name is in lower case; one with other bytes than a
 * name has is AB_HELLO_BROKEN. */
enum ab_hello ab_hello_read(const uint8_t *data, size_t len, char name[256]);

#endif
