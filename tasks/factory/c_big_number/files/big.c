#include "big.h"

#include <stdlib.h>

void big_free(struct big *x)
{
    free(x->digits);
    *x = (struct big){0};
}

bool big_set(struct big *x, uint64_t value)
{
    (void)x;
    (void)value;
    return true;
}

bool big_parse(struct big *x, const char *text)
{
    (void)x;
    (void)text;
    return false;
}

char *big_text(const struct big *x)
{
    (void)x;
    return calloc(1, 1);
}

int big_compare(const struct big *a, const struct big *b)
{
    (void)a;
    (void)b;
    return 0;
}

bool big_add(struct big *out, const struct big *a, const struct big *b)
{
    (void)out;
    (void)a;
    (void)b;
    return true;
}

bool big_sub(struct big *out, const struct big *a, const struct big *b)
{
    (void)out;
    (void)a;
    (void)b;
    return true;
}

bool big_mul(struct big *out, const struct big *a, const struct big *b)
{
    (void)out;
    (void)a;
    (void)b;
    return true;
}

bool big_div(struct big *quotient, struct big *rest, const struct big *a, const struct big *b)
{
    (void)quotient;
    (void)rest;
    (void)a;
    (void)b;
    return true;
}

bool big_powmod(struct big *out, const struct big *base, const struct big *exponent, const struct big *m)
{
    (void)out;
    (void)base;
    (void)exponent;
    (void)m;
    return true;
}
