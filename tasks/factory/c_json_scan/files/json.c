#include "json.h"

bool json_check(const char *text, size_t n, size_t *bad)
{
    (void)text;
    (void)n;
    (void)bad;
    return true;
}

bool json_find(const char *text, size_t n, const char *const path[], struct json_value *out)
{
    (void)text;
    (void)n;
    (void)path;
    (void)out;
    return false;
}

size_t json_string(const struct json_value *value, char *to, size_t room)
{
    (void)value;
    (void)to;
    (void)room;
    return 0;
}
