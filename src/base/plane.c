#include "base/plane.h"

#include <math.h>
#include <string.h>

/* Integers up to here are doubles, too. */
#define MAX_EXACT ((int64_t)1 << 53)

static const char *const names[] = {
    [AB_PLANE_I4] = "i4",
    [AB_PLANE_F4] = "f4",
    [AB_PLANE_F8] = "f8",
};

const char *ab_plane_name(enum ab_plane_kind kind)
{
    return names[kind];
}

enum ab_plane_kind ab_plane_named(const char *name)
{
    for (enum ab_plane_kind k = AB_PLANE_I4; k <= AB_PLANE_F8; k++) {
        if (strcmp(names[k], name) == 0)
            return k;
    }
    return AB_PLANE_NONE;
}

static size_t size_of(enum ab_plane_kind kind)
{
    return kind == AB_PLANE_F8 ? 8 : 4;
}

static double value_of(const struct ab_json_node *node)
{
    return node->kind == AB_JSON_INT ? (double)node->integer : node->number;
}

int ab_plane_read(struct ab_json *doc, const char *text, size_t len,
                  struct ab_plane *plane)
{
    struct ab_err err;
    *plane = (struct ab_plane){0};
    if (ab_json_parse(doc, text, len, NULL, &err) < 0 ||
        doc->nodes[0].kind != AB_JSON_ARRAY || doc->count != doc->nodes[0].len + 1u)
        return -1;
    bool i4 = true, f4 = true, f8 = true;
    for (size_t i = 1; i < doc->count; i++) {
        const struct ab_json_node *node = &doc->nodes[i];
        if (node->kind != AB_JSON_INT && node->kind != AB_JSON_FLOAT)
            return -1;
        double v = value_of(node);
        if (node->kind == AB_JSON_FLOAT)
            i4 = false;
        else if (node->integer < INT32_MIN || node->integer > INT32_MAX)
            i4 = false;
        if (node->kind == AB_JSON_INT &&
            (node->integer > MAX_EXACT || node->integer < -MAX_EXACT))
            f8 = false;
        f4 = f4 && fabs(v) < 1e38 && (double)(float)v == v;
        plane->min = i == 1 || v < plane->min ? v : plane->min;
        plane->max = i == 1 || v > plane->max ? v : plane->max;
    }
    plane->count = doc->count - 1;
    plane->kind = i4 ? AB_PLANE_I4 : !f8 ? AB_PLANE_NONE : f4 ? AB_PLANE_F4 : AB_PLANE_F8;
    return 0;
}

/* In valid JSON these bytes are in every value that is neither a number nor an empty
 * object: quotes, brackets, and the u or l of true, false and null. */
static bool is_other(unsigned char c)
{
    return c == '"' || c == '[' || c == '{' || c == 'u' || c == 'l';
}

long ab_plane_count(const char *text, size_t len)
{
    size_t commas = 0, others = 0, digits = 0;
    while (len > 0 && *text == ' ')
        text++, len--;
    if (len == 0 || *text != '[')
        return -1;
    for (size_t i = 1; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        commas += c == ',';
        digits += c >= '0' && c <= '9';
        others += is_other(c);
    }
    return others > 0 ? -1 : digits > 0 ? (long)commas + 1 : 0;
}

/* The low bytes of bits, lowest first, whatever the machine's order is. */
static void put_bits(char *at, uint64_t bits, size_t size)
{
    for (size_t i = 0; i < size; i++)
        at[i] = (char)(bits >> (8 * i));
}

static uint64_t get_bits(const unsigned char *at, size_t size)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < size; i++)
        bits |= (uint64_t)at[i] << (8 * i);
    return bits;
}

static uint64_t bits_of(const struct ab_json_node *node, enum ab_plane_kind kind)
{
    uint64_t bits = 0;
    if (kind == AB_PLANE_I4)
        return (uint32_t)node->integer;
    double v = value_of(node);
    if (kind == AB_PLANE_F4) {
        float f = (float)v;
        uint32_t word;
        memcpy(&word, &f, sizeof word);
        return word;
    }
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

void ab_plane_pack(const struct ab_json *doc, const struct ab_plane *plane,
                   struct ab_buf *out)
{
    size_t size = size_of(plane->kind);
    if (plane->count == 0)
        return;
    char *at = ab_buf_reserve(out, plane->count * size);
    for (size_t i = 0; i < plane->count; i++)
        put_bits(at + i * size, bits_of(&doc->nodes[i + 1], plane->kind), size);
    ab_buf_advance(out, plane->count * size);
}

static int put_value(struct ab_buf *out, uint64_t bits, enum ab_plane_kind kind)
{
    double v;
    if (kind == AB_PLANE_I4) {
        ab_json_put_integer(out, (int32_t)(uint32_t)bits);
        return 0;
    }
    if (kind == AB_PLANE_F4) {
        uint32_t word = (uint32_t)bits;
        float f;
        memcpy(&f, &word, sizeof f);
        v = (double)f;
    } else {
        memcpy(&v, &bits, sizeof v);
    }
    if (!isfinite(v))
        return -1;
    ab_json_put_double(out, v);
    return 0;
}

int ab_plane_unpack(const void *data, size_t size, enum ab_plane_kind kind,
                    struct ab_buf *out)
{
    size_t one = size_of(kind);
    if (kind == AB_PLANE_NONE || size % one != 0)
        return -1;
    ab_buf_putc(out, '[');
    for (size_t i = 0; i < size; i += one) {
        if (i > 0)
            ab_buf_putc(out, ',');
        if (put_value(out, get_bits((const unsigned char *)data + i, one), kind) < 0)
            return -1;
    }
    ab_buf_putc(out, ']');
    return 0;
}
