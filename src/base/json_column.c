#include "base/json_column.h"

#include <string.h>

#include "base/json_slice.h"

/* Inside an object: goes to the value of the member; false and behind the object when it
 * has none. */
static bool find_member(struct ab_json_walk *walk, const char *name, size_t len)
{
    struct ab_json_slice key;
    while (ab_json_next_key(walk, &key)) {
        if (ab_json_is_key(key, name, len))
            return true;
        ab_json_value(walk);
    }
    return false;
}

/* Inside an object: goes behind it. */
static void leave_object(struct ab_json_walk *walk)
{
    struct ab_json_slice key;
    while (ab_json_next_key(walk, &key))
        ab_json_value(walk);
}

static bool is_scalar(struct ab_json_slice value)
{
    return value.len > 0 && *value.s != '{' && *value.s != '[';
}

long ab_json_column(struct ab_buf *out, const char *text, size_t len, const char *inside,
                    const char *name)
{
    struct ab_json_walk walk = {text, text + len};
    size_t name_len = strlen(name);
    long n = 0;
    if (ab_json_open(&walk, '{') && !find_member(&walk, inside, strlen(inside)))
        return -1;
    if (!ab_json_open(&walk, '['))
        return -1;
    ab_buf_putc(out, '[');
    for (; ab_json_next(&walk); n++) {
        if (!ab_json_open(&walk, '{') || !find_member(&walk, name, name_len))
            return -1;
        struct ab_json_slice value = ab_json_value(&walk);
        if (!is_scalar(value))
            return -1;
        if (n > 0)
            ab_buf_putc(out, ',');
        ab_buf_put(out, value.s, value.len);
        leave_object(&walk);
    }
    ab_buf_putc(out, ']');
    return n;
}
