/* The decoders of the protocol with init, which believe nothing: the first byte chooses
 * one, so that a corpus file is that byte and a packet. What was decoded is read to its
 * end. */
#include <stddef.h>
#include <string.h>

#include "base/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t sink;

static void look(const char *text)
{
    sink += strlen(text);
}

static void decode_create(const uint8_t *p, size_t n)
{
    struct ab_wire_create m;
    if (ab_wire_get_create(p, n, &m) < 0)
        return;
    look(m.image);
    look(m.hostname);
    look(m.workspace);
    look(m.cgroup);
}

static void decode_exec(const uint8_t *p, size_t n)
{
    struct ab_wire_exec m;
    if (ab_wire_get_exec(p, n, &m) < 0)
        return;
    look(m.cwd);
    const char *s = m.strings;
    for (size_t i = 0; s && i < (size_t)m.argc + m.envc; i++) {
        look(s);
        s += strlen(s) + 1;
    }
}

static void decode_small(const uint8_t *p, size_t n)
{
    struct ab_wire_failed failed;
    struct ab_wire_setup setup;
    struct ab_wire_born born;
    struct ab_wire_exit over;
    struct ab_wire_group group;
    if (ab_wire_get_failed(p, n, &failed) == 0)
        look(failed.step);
    if (ab_wire_get_setup(p, n, &setup) == 0)
        look(setup.ident);
    sink += (size_t)ab_wire_get_born(p, n, &born) +
            (size_t)ab_wire_get_exit(p, n, &over) +
            (size_t)ab_wire_get_group(p, n, &group);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    switch (data[0] % 3) {
    case 0:
        decode_create(data + 1, size - 1);
        break;
    case 1:
        decode_exec(data + 1, size - 1);
        break;
    default:
        decode_small(data + 1, size - 1);
    }
    return 0;
}
