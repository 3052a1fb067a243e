#include "base/json_column.h"

#include <string.h>

struct cursor {
    const char *p, *end;
};

static void skip_space(struct cursor *c)
{
    while (c->p < c->end && (unsigned char)*c->p <= ' ')
        c->p++;
}

/* At the opening quote; moves behind the closing one. */
static void skip_string(struct cursor *c)
{
    for (c->p++; c->p < c->end && *c->p != '"'; c->p++) {
        if (*c->p == '\\')
            c->p++;
    }
    c->p++;
}

/* Moves behind the value that begins here. */
static void skip_value(struct cursor *c)
{
    int depth = 0;
    if (*c->p != '{' && *c->p != '[' && *c->p != '"') {
        while (c->p < c->end && *c->p != ',' && *c->p != '}' && *c->p != ']' &&
               *c->p > ' ')
            c->p++;
        return;
    }
    do {
        if (*c->p == '"') {
            skip_string(c);
            continue;
        }
        depth += (*c->p == '{' || *c->p == '[') - (*c->p == '}' || *c->p == ']');
        c->p++;
    } while (depth > 0 && c->p < c->end);
}

/* At '{': finds the member and stops at its value; or moves behind the object. */
static bool find_member(struct cursor *c, const char *name, size_t name_bytes)
{
    for (c->p++;;) {
        skip_space(c);
        if (c->p >= c->end || *c->p == '}')
            break;
        if (*c->p == ',') {
            c->p++;
            continue;
        }
        const char *key = c->p + 1;
        skip_string(c);
        bool found =
            (size_t)(c->p - 1 - key) == name_bytes && memcmp(key, name, name_bytes) == 0;
        skip_space(c);
        c->p++; /* the colon */
        skip_space(c);
        if (found)
            return true;
        skip_value(c);
    }
    c->p++;
    return false;
}

/* At a value inside an object; moves behind that object. */
static void leave_object(struct cursor *c)
{
    while (c->p < c->end && *c->p != '}') {
        skip_value(c);
        skip_space(c);
        if (c->p < c->end && (*c->p == ',' || *c->p == ':'))
            c->p++;
        skip_space(c);
    }
    c->p++;
}

long ab_json_column(struct ab_buf *out, const char *text, size_t len, const char *inside,
                    const char *name)
{
    struct cursor c = {text, text + len};
    size_t name_bytes = strlen(name);
    long n = 0;
    skip_space(&c);
    if (c.p < c.end && *c.p == '{' && !find_member(&c, inside, strlen(inside)))
        return -1;
    if (c.p >= c.end || *c.p != '[')
        return -1;
    ab_buf_putc(out, '[');
    for (c.p++;;) {
        skip_space(&c);
        if (c.p < c.end && *c.p == ',') {
            c.p++;
            continue;
        }
        if (c.p >= c.end || *c.p != '{')
            break;
        if (!find_member(&c, name, name_bytes) || *c.p == '{' || *c.p == '[')
            return -1;
        const char *value = c.p;
        skip_value(&c);
        if (n++ > 0)
            ab_buf_putc(out, ',');
        ab_buf_put(out, value, (size_t)(c.p - value));
        leave_object(&c);
    }
    ab_buf_putc(out, ']');
    return c.p < c.end && *c.p == ']' ? n : -1;
}
