/* Each host has a door and a doorman: a queue when the caller set a limit, and one name
 * lookup for everybody who waits. Left alone, curl would make a thread for each cold
 * transfer. */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "rt/http_client.h"

#define ADDRESS_LIFE_MS 60000u
#define MAX_ADDRESSES   8
#define KEPT_HOSTS      64

static void host_free(struct ab_http_host *host)
{
    free(host->addresses);
    free(host->name);
    free(host->port);
    free(host);
}

static void forget_unused(struct ab_http *http)
{
    size_t n = 0;
    for (struct ab_list *it = http->hosts.next, *next; it != &http->hosts; it = next) {
        struct ab_http_host *host = AB_CONTAINER(it, struct ab_http_host, link);
        next = it->next;
        if (++n <= KEPT_HOSTS || host->users || host->looking_up)
            continue;
        ab_list_remove(&host->link);
        host_free(host);
    }
}

struct ab_http_host *ab_http_host_get(struct ab_http *http, const char *name,
                                      const char *port, bool numeric)
{
    for (struct ab_list *it = http->hosts.next; it != &http->hosts; it = it->next) {
        struct ab_http_host *host = AB_CONTAINER(it, struct ab_http_host, link);
        if (strcmp(host->name, name) == 0 && strcmp(host->port, port) == 0)
            return host;
    }
    forget_unused(http);
    struct ab_http_host *host = ab_xcalloc(1, sizeof *host);
    host->http = http;
    ab_list_init(&host->queue);
    ab_list_init(&host->resolving);
    host->name = ab_xstrndup(name, strlen(name));
    host->port = ab_xstrndup(port, strlen(port));
    host->numeric = numeric;
    ab_list_append(&http->hosts, &host->link);
    return host;
}

static char *join_addresses(const struct addrinfo *list)
{
    char text[MAX_ADDRESSES * (INET6_ADDRSTRLEN + 3)] = "";
    size_t used = 0;
    int n = 0;
    for (const struct addrinfo *a = list; a && n < MAX_ADDRESSES; a = a->ai_next) {
        char ip[INET6_ADDRSTRLEN];
        bool v6 = a->ai_family == AF_INET6;
        const void *raw =
            v6 ? (const void *)&((const struct sockaddr_in6 *)(const void *)a->ai_addr)
                     ->sin6_addr
               : (const void *)&((const struct sockaddr_in *)(const void *)a->ai_addr)
                     ->sin_addr;
        if ((!v6 && a->ai_family != AF_INET) ||
            !inet_ntop(a->ai_family, raw, ip, sizeof ip))
            continue;
        used += (size_t)snprintf(text + used, sizeof text - used, v6 ? "%s[%s]" : "%s%s",
                                 n ? "," : "", ip);
        n++;
    }
    return n ? ab_xstrndup(text, used) : NULL;
}

/* Everybody who waited goes on, or fails, together. The list is emptied first: what runs
 * may come back here. */
static void release_resolving(struct ab_http_host *host, const struct ab_err *err)
{
    while (!ab_list_empty(&host->resolving)) {
        struct ab_list *link = host->resolving.next;
        struct ab_http_transfer *t =
            AB_CONTAINER(link, struct ab_http_transfer, host_link);
        ab_list_remove(link);
        if (err)
            ab_http_transfer_fail(t, err);
        else
            ab_http_transfer_launch(t);
    }
}

static void on_looked_up(uv_getaddrinfo_t *req, int status, struct addrinfo *list)
{
    struct ab_http_host *host = req->data;
    struct ab_err err;
    host->looking_up = false;
    if (!host->http) {
        uv_freeaddrinfo(list);
        host_free(host);
        return;
    }
    char *addresses = status == 0 ? join_addresses(list) : NULL;
    uv_freeaddrinfo(list);
    if (!addresses) {
        ab_err_set(&err, AB_ENETWORK, "could not resolve %.100s: %s", host->name,
                   status < 0 ? uv_strerror(status) : "no address");
        release_resolving(host, &err);
        return;
    }
    free(host->addresses);
    host->addresses = addresses;
    host->expires_ms = uv_now(&host->http->op.loop->uv) + ADDRESS_LIFE_MS;
    release_resolving(host, NULL);
}

static void look_up(struct ab_http_host *host)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    if (host->looking_up)
        return;
    host->lookup.data = host;
    int rc = uv_getaddrinfo(&host->http->op.loop->uv, &host->lookup, on_looked_up,
                            host->name, NULL, &hints);
    if (rc == 0) {
        host->looking_up = true;
        return;
    }
    struct ab_err err;
    ab_err_set(&err, AB_ENETWORK, "could not resolve %.100s: %s", host->name,
               uv_strerror(rc));
    release_resolving(host, &err);
}

static void admit(struct ab_http_host *host, struct ab_http_transfer *t)
{
    uint64_t now = uv_now(&host->http->op.loop->uv);
    host->active++;
    ab_http_transfer_admitted(t);
    if (host->numeric || (host->addresses && now < host->expires_ms)) {
        ab_http_transfer_launch(t);
        return;
    }
    ab_list_append(&host->resolving, &t->host_link);
    look_up(host);
}

static void admit_waiting(struct ab_http_host *host)
{
    while (!ab_list_empty(&host->queue)) {
        struct ab_list *link = host->queue.next;
        struct ab_http_transfer *t =
            AB_CONTAINER(link, struct ab_http_transfer, host_link);
        if (t->host_limit && host->active >= t->host_limit)
            return;
        ab_list_remove(link);
        admit(host, t);
    }
}

void ab_http_host_enter(struct ab_http_host *host, struct ab_http_transfer *t)
{
    host->users++;
    ab_list_append(&host->queue, &t->host_link);
    admit_waiting(host);
}

void ab_http_host_leave(struct ab_http_host *host, struct ab_http_transfer *t)
{
    bool admitted = t->state != AB_HTTP_QUEUED;
    ab_list_remove(&t->host_link);
    host->users--;
    if (admitted)
        host->active--;
    if (host->http && !host->http->closing)
        admit_waiting(host);
}

void ab_http_hosts_fini(struct ab_http *http)
{
    while (!ab_list_empty(&http->hosts)) {
        struct ab_http_host *host =
            AB_CONTAINER(http->hosts.next, struct ab_http_host, link);
        ab_list_remove(&host->link);
        host->http = NULL;
        if (!host->looking_up)
            host_free(host);
        else
            uv_cancel((uv_req_t *)&host
                          ->lookup); /* refused when it runs; then it is waited for */
    }
}
