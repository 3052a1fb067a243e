#include "base/hello.h"

#include <string.h>

#define RECORD_HANDSHAKE 22
#define CLIENT_HELLO     1
#define EXT_SERVER_NAME  0
#define NAME_HOST        0

/* What is left to read; reading beyond the end is noted and gives zeros. */
struct in {
    const uint8_t *p;
    size_t left;
    bool bad;
};

static size_t number(struct in *in, size_t bytes)
{
    size_t v = 0;
    if (in->bad || in->left < bytes) {
        in->bad = true;
        return 0;
    }
    for (size_t i = 0; i < bytes; i++)
        v = v << 8 | in->p[i];
    in->p += bytes;
    in->left -= bytes;
    return v;
}

/* The next thing, which has its length in front. */
static struct in part(struct in *in, size_t length_bytes)
{
    struct in sub = {.left = number(in, length_bytes)};
    if (in->bad || sub.left > in->left) {
        in->bad = true;
        return (struct in){.bad = true};
    }
    sub.p = in->p;
    in->p += sub.left;
    in->left -= sub.left;
    return sub;
}

static enum ab_hello take_name(struct in ext, char name[256])
{
    struct in list = part(&ext, 2);
    size_t kind = number(&list, 1);
    struct in host = part(&list, 2);
    if (host.bad || ext.left || list.left || kind != NAME_HOST || host.left == 0 ||
        host.left > 255)
        return AB_HELLO_BROKEN;
    for (size_t i = 0; i < host.left; i++) {
        uint8_t c = host.p[i];
        if (c >= 'A' && c <= 'Z')
            c = (uint8_t)(c - 'A' + 'a');
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
              c == '.'))
            return AB_HELLO_BROKEN;
        name[i] = (char)c;
    }
    name[host.left] = 0;
    return AB_HELLO_NAMED;
}

static enum ab_hello read_hello(struct in hello, char name[256])
{
    enum ab_hello found = AB_HELLO_BARE;
    number(&hello, 2);  /* version */
    number(&hello, 16); /* random */
    number(&hello, 16);
    part(&hello, 1); /* session */
    part(&hello, 2); /* ciphers */
    part(&hello, 1); /* compression */
    if (hello.bad)
        return AB_HELLO_BROKEN;
    if (hello.left == 0)
        return AB_HELLO_BARE;
    struct in all = part(&hello, 2);
    if (hello.bad || hello.left)
        return AB_HELLO_BROKEN;
    while (all.left > 0 && !all.bad) {
        size_t type = number(&all, 2);
        struct in ext = part(&all, 2);
        if (ext.bad || (type == EXT_SERVER_NAME && found != AB_HELLO_BARE))
            return AB_HELLO_BROKEN; /* a second name: which would the server take? */
        if (type == EXT_SERVER_NAME && (found = take_name(ext, name)) == AB_HELLO_BROKEN)
            return found;
    }
    return all.bad ? AB_HELLO_BROKEN : found;
}

/* The message may be cut into records of any size. */
enum ab_hello ab_hello_read(const uint8_t *data, size_t len, char name[256])
{
    uint8_t message[AB_HELLO_MAX];
    size_t got = 0, at = 0;
    if (len == 0)
        return AB_HELLO_MORE;
    if (data[0] != RECORD_HANDSHAKE)
        return AB_HELLO_NONE;
    for (;;) {
        size_t want =
            got < 4
                ? 4
                : 4 + ((size_t)message[1] << 16 | (size_t)message[2] << 8 | message[3]);
        if ((got > 0 && message[0] != CLIENT_HELLO) || want > sizeof message)
            return AB_HELLO_BROKEN;
        if (got >= 4 && got >= want)
            return read_hello((struct in){.p = message + 4, .left = want - 4}, name);
        if (len - at < 5)
            break;
        size_t record = (size_t)data[at + 3] << 8 | data[at + 4];
        if (data[at] != RECORD_HANDSHAKE || data[at + 1] != 3 || record == 0)
            return AB_HELLO_BROKEN;
        size_t here = len - at - 5 < record ? len - at - 5 : record;
        size_t fits = here < sizeof message - got ? here : sizeof message - got;
        memcpy(message + got, data + at + 5, fits);
        got += fits;
        at += 5 + here;
        if (here < record)
            break;
    }
    if (got > 0 && message[0] != CLIENT_HELLO)
        return AB_HELLO_BROKEN;
    if (len > 1 && data[1] != 3)
        return AB_HELLO_BROKEN;
    return len >= AB_HELLO_MAX ? AB_HELLO_BROKEN : AB_HELLO_MORE;
}
