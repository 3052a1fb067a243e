#include "base/yaml_scalar.h"

#include <math.h>
#include <string.h>

#include "base/json_index.h"

static bool is_one_of(const char *s, size_t len, const char *const *words)
{
    for (; *words; words++) {
        if (strlen(*words) == len && memcmp(*words, s, len) == 0)
            return true;
    }
    return false;
}

static size_t digits(const char *s, size_t len)
{
    size_t n = 0;
    while (n < len && s[n] >= '0' && s[n] <= '9')
        n++;
    return n;
}

/* 0x1F and 0o17; a value beyond int64 stays a string. */
static bool resolve_based(const char *s, size_t len, int64_t *v)
{
    if (len < 3 || s[0] != '0' || (s[1] != 'x' && s[1] != 'o'))
        return false;
    unsigned base = s[1] == 'x' ? 16 : 8;
    uint64_t u = 0;
    for (size_t i = 2; i < len; i++) {
        unsigned c = (unsigned char)s[i];
        unsigned d = c - '0';
        if (d > 9)
            d = (c | 0x20) >= 'a' ? (c | 0x20) - 'a' + 10 : 99;
        if (d >= base || u > ((uint64_t)INT64_MAX - d) / base)
            return false;
        u = u * base + d;
    }
    *v = (int64_t)u;
    return true;
}

/* [-+]? digits. One beyond int64 keeps its text, so it must be a number in JSON too. */
static bool resolve_decimal(const char *s, size_t len, struct ab_json_node *node)
{
    bool minus = len && *s == '-';
    size_t sign = len && (minus || *s == '+');
    if (len == sign || digits(s + sign, len - sign) != len - sign)
        return false;
    uint64_t u = 0, max = (uint64_t)INT64_MAX + minus;
    node->kind = AB_JSON_INT;
    for (size_t i = sign; i < len; i++) {
        unsigned d = (unsigned)(s[i] - '0');
        if (u > (max - d) / 10) {
            node->kind = s[sign] == '0' ? AB_JSON_STRING : AB_JSON_NUMBER;
            return true;
        }
        u = u * 10 + d;
    }
    node->integer = minus ? (int64_t)(0 - u) : (int64_t)u;
    return true;
}

/* [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool is_float(const char *s, size_t len)
{
    size_t i = len && (*s == '-' || *s == '+');
    size_t whole = digits(s + i, len - i);
    i += whole;
    if (i < len && s[i] == '.') {
        size_t part = digits(s + i + 1, len - i - 1);
        if (whole + part == 0)
            return false;
        i += 1 + part;
    } else if (whole == 0) {
        return false;
    }
    if (i < len && (s[i] == 'e' || s[i] == 'E')) {
        i++;
        if (i < len && (s[i] == '-' || s[i] == '+'))
            i++;
        size_t exp = digits(s + i, len - i);
        if (exp == 0)
            return false;
        i += exp;
    }
    return i == len;
}

static bool resolve_special(const char *s, size_t len, double *v)
{
    static const char *const inf[] = {".inf", ".Inf", ".INF", NULL};
    static const char *const nan_words[] = {".nan", ".NaN", ".NAN", NULL};
    size_t sign = len && (*s == '-' || *s == '+');
    if (is_one_of(s + sign, len - sign, inf))
        *v = *s == '-' ? -HUGE_VAL : HUGE_VAL;
    else if (is_one_of(s, len, nan_words))
        *v = NAN;
    else
        return false;
    return true;
}

struct ab_json_node ab_yaml_resolve(const char *s, size_t len)
{
    static const char *const null[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const yes[] = {"true", "True", "TRUE", NULL};
    static const char *const no[] = {"false", "False", "FALSE", NULL};
    struct ab_json_node node = {.kind = AB_JSON_STRING};
    if (len > 0 && !strchr("~nNtTfF.+-0123456789", *s))
        return node;
    if (is_one_of(s, len, null)) {
        node.kind = AB_JSON_NULL;
    } else if (is_one_of(s, len, yes)) {
        node.kind = AB_JSON_TRUE;
    } else if (is_one_of(s, len, no)) {
        node.kind = AB_JSON_FALSE;
    } else if (resolve_based(s, len, &node.integer)) {
        node.kind = AB_JSON_INT;
    } else if (resolve_special(s, len, &node.number)) {
        node.kind = AB_JSON_FLOAT;
    } else if (!resolve_decimal(s, len, &node) && is_float(s, len)) {
        size_t plus = *s == '+';
        if (ab_json_read_double(s + plus, len - plus, &node.number))
            node.kind = AB_JSON_FLOAT;
    }
    return node;
}
