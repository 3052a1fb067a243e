#include "base/allow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { EXACT, BELOW, ADDRESS };

struct rule {
    enum kind kind;
    uint16_t port;
    char *name; /* owns; of BELOW without "*.", "" for every name */
    struct ab_addr addr;
    unsigned bits; /* of 128 */
};

struct host {
    char *name; /* owns */
    struct ab_addr addr;
};

struct ab_allow {
    struct rule rules[AB_ALLOW_RULES];
    int count;
    uint16_t ports[AB_ALLOW_PORTS];
    int nports;
    struct host hosts[AB_ALLOW_HOSTS];
    int nhosts;
};

struct ab_allow *ab_allow_new(void)
{
    return ab_xcalloc(1, sizeof(struct ab_allow));
}

void ab_allow_free(struct ab_allow *a)
{
    for (int i = 0; a && i < a->count; i++)
        free(a->rules[i].name);
    for (int i = 0; a && i < a->nhosts; i++)
        free(a->hosts[i].name);
    free(a);
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '-' || c == '_';
}

bool ab_name_is_valid(const char *name)
{
    size_t label = 0, len = strlen(name);
    if (len == 0 || len > AB_NAME_MAX)
        return false;
    for (size_t i = 0; i <= len; i++) {
        if (i < len && is_name_byte(name[i])) {
            if (++label > 63)
                return false;
            continue;
        }
        if (label == 0 || (i < len && name[i] != '.'))
            return false;
        label = 0;
    }
    return true;
}

static char *lower(const char *name)
{
    char *copy = ab_xstrndup(name, strlen(name));
    for (char *p = copy; *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
    return copy;
}

static int add_port(struct ab_allow *a, uint16_t port, struct ab_err *err)
{
    for (int i = 0; i < a->nports; i++)
        if (a->ports[i] == port)
            return 0;
    if (a->nports == AB_ALLOW_PORTS)
        return ab_err_set(err, AB_ETOOBIG, "more than %d different ports",
                          AB_ALLOW_PORTS);
    a->ports[a->nports++] = port;
    return 0;
}

static int parse_address(struct rule *r, const char *text, struct ab_err *err)
{
    char literal[AB_ADDR_TEXT + 8], *slash, *end = NULL;
    snprintf(literal, sizeof literal, "%s", text);
    slash = strchr(literal, '/');
    if (slash)
        *slash = 0;
    if (!ab_addr_parse(&r->addr, literal))
        return 1;
    unsigned most = ab_addr_is_v4(&r->addr) ? 32 : 128;
    unsigned long bits = slash ? strtoul(slash + 1, &end, 10) : most;
    if (bits > most || (slash && (slash[1] < '0' || slash[1] > '9' || *end)))
        return ab_err_set(err, AB_EBADARG, "'%.100s': the network's size is 0 to %u",
                          text, most);
    r->kind = ADDRESS;
    r->bits = (unsigned)bits + 128 - most;
    if (ab_addr_is_loopback(&r->addr))
        return ab_err_set(err, AB_EBADARG,
                          "'%.100s' is the sandbox's own loopback inside; to reach this "
                          "machine's give it a name in hosts, and allow that",
                          text);
    return 0;
}

static int parse_host(struct rule *r, const char *text, struct ab_err *err)
{
    int rc = parse_address(r, text, err);
    if (rc <= 0)
        return rc;
    bool all = !strcmp(text, "*"), below = all || !strncmp(text, "*.", 2);
    const char *name = all ? "" : below ? text + 2 : text;
    if (!all && !ab_name_is_valid(name))
        return ab_err_set(err, AB_EBADARG,
                          "'%.100s' is neither a name, \"*.NAME\" nor an address; names "
                          "in other scripts are written xn--...",
                          text);
    r->kind = below ? BELOW : EXACT;
    r->name = lower(name);
    return 0;
}

static int add_one(struct ab_allow *a, const char *host, uint16_t port,
                   struct ab_err *err)
{
    struct rule r = {.port = port};
    if (a->count == AB_ALLOW_RULES)
        return ab_err_set(err, AB_ETOOBIG, "more than %d rules", AB_ALLOW_RULES);
    if (parse_host(&r, host, err) < 0 || add_port(a, port, err) < 0) {
        free(r.name);
        return -1;
    }
    a->rules[a->count++] = r;
    return 0;
}

int ab_allow_add(struct ab_allow *a, const char *rule, struct ab_err *err)
{
    char host[AB_NAME_MAX + 16];
    const char *colon = strrchr(rule, ':'), *open = rule[0] == '[' ? rule + 1 : rule;
    size_t len = colon ? (size_t)(colon - open) : 0;
    if (open > rule && len > 0 && open[len - 1] == ']')
        len--;
    else if (open > rule || (colon && memchr(open, ':', len)))
        len = 0; /* an IPv6 address without its brackets, or half of them */
    if (!colon || len == 0 || len >= sizeof host)
        return ab_err_set(err, AB_EBADARG,
                          "'%.100s': \"NAME:PORT\", \"*.NAME:PORT\", \"ADDRESS:PORT\" or "
                          "\"[ADDRESS]:PORT\" expected",
                          rule);
    memcpy(host, open, len);
    host[len] = 0;
    for (const char *p = colon; *p;) {
        char *end;
        unsigned long port = p[1] >= '0' && p[1] <= '9' ? strtoul(p + 1, &end, 10) : 0;
        if (port == 0 || port > 65535 || (*end && *end != ','))
            return ab_err_set(err, AB_EBADARG, "'%.100s': a port is 1 to 65535", rule);
        if (port == 53)
            return ab_err_set(err, AB_EBADARG,
                              "'%.100s': port 53 is answered by the engine", rule);
        if (add_one(a, host, (uint16_t)port, err) < 0)
            return -1;
        p = end;
    }
    return 0;
}

int ab_allow_host(struct ab_allow *a, const char *name, const char *address,
                  struct ab_err *err)
{
    struct ab_addr addr;
    if (!ab_name_is_valid(name))
        return ab_err_set(err, AB_EBADARG, "hosts: '%.100s' is not a name", name);
    if (!ab_addr_parse(&addr, address))
        return ab_err_set(err, AB_EBADARG, "hosts: %.100s: '%.60s' is not an address",
                          name, address);
    if (a->nhosts == AB_ALLOW_HOSTS)
        return ab_err_set(err, AB_ETOOBIG, "hosts: more than %d names", AB_ALLOW_HOSTS);
    a->hosts[a->nhosts++] = (struct host){.name = lower(name), .addr = addr};
    return 0;
}

int ab_allow_ports(const struct ab_allow *a, uint16_t ports[AB_ALLOW_PORTS])
{
    memcpy(ports, a->ports, sizeof a->ports);
    return a->nports;
}

static bool is_below(const char *name, const char *domain)
{
    size_t n = strlen(name), d = strlen(domain);
    return d == 0 ||
           (n > d + 1 && name[n - d - 1] == '.' && !memcmp(name + n - d, domain, d));
}

bool ab_allow_name(const struct ab_allow *a, const char *name, uint16_t port)
{
    for (int i = 0; i < a->count; i++) {
        const struct rule *r = &a->rules[i];
        if (r->kind == ADDRESS || (port && r->port != port))
            continue;
        if (r->kind == EXACT ? !strcmp(name, r->name) : is_below(name, r->name))
            return true;
    }
    return false;
}

bool ab_allow_addr(const struct ab_allow *a, const struct ab_addr *addr, uint16_t port)
{
    for (int i = 0; i < a->count; i++) {
        const struct rule *r = &a->rules[i];
        if (r->kind == ADDRESS && (!port || r->port == port) &&
            ab_addr_within(addr, &r->addr, r->bits))
            return true;
    }
    return false;
}

const struct ab_addr *ab_allow_find_host(const struct ab_allow *a, const char *name)
{
    for (int i = 0; i < a->nhosts; i++)
        if (!strcmp(a->hosts[i].name, name))
            return &a->hosts[i].addr;
    return NULL;
}
