#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rt/http_client.h"

/* Small, because a thousand transfers wait at once and each has both: the least that curl
 * takes. */
#define READ_BUFFER_BYTES   1024L
#define UPLOAD_BUFFER_BYTES 16384L

#define MAX_NAME_BYTES 253

static char *part(struct ab_http *http, CURLU *url, CURLUPart what)
{
    char *curls = NULL;
    if (http->lib.url_get(url, what, &curls, CURLU_DEFAULT_PORT) != CURLUE_OK)
        return NULL;
    char *ours = ab_xstrndup(curls, strlen(curls));
    http->lib.free(curls);
    return ours;
}

static bool is_numeric(const char *name)
{
    unsigned char raw[sizeof(struct in6_addr)];
    return name[0] == '[' || inet_pton(AF_INET, name, raw) == 1;
}

/* Where the connection goes: the URL's host, or its proxy. */
static int find_host(struct ab_http_transfer *t, const char *text, bool proxy,
                     struct ab_err *err)
{
    const struct ab_http_lib *lib = &t->http->lib;
    CURLU *url = lib->url();
    if (!url)
        AB_BUG("out of memory (curl_url)");
    CURLUcode rc = lib->url_set(url, CURLUPART_URL, text,
                                proxy ? CURLU_NON_SUPPORT_SCHEME | CURLU_DEFAULT_SCHEME
                                      : CURLU_NON_SUPPORT_SCHEME);
    char *scheme = rc == CURLUE_OK ? part(t->http, url, CURLUPART_SCHEME) : NULL;
    char *name = rc == CURLUE_OK ? part(t->http, url, CURLUPART_HOST) : NULL;
    char *port = rc == CURLUE_OK ? part(t->http, url, CURLUPART_PORT) : NULL;
    int result = 0;
    lib->url_cleanup(url);
    if (rc != CURLUE_OK || !scheme || !name)
        result =
            ab_err_set(err, AB_EBADARG, "%s is not usable: %s", proxy ? "proxy" : "url",
                       rc == CURLUE_OK ? "no host in it" : lib->url_strerror(rc));
    else if (!proxy && strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)
        result =
            ab_err_set(err, AB_EBADARG,
                       "url must begin with http:// or https://, not %.20s:", scheme);
    else if (strlen(name) > MAX_NAME_BYTES)
        result = ab_err_set(err, AB_EBADARG, "host name of %zu bytes", strlen(name));
    else
        t->host = ab_http_host_get(t->http, name, port ? port : "1080", is_numeric(name));
    free(scheme);
    free(name);
    free(port);
    return result;
}

static bool has_name(const char *header, const char *name)
{
    size_t n = strlen(name);
    return strncasecmp(header, name, n) == 0 && header[n] == ':';
}

static void add_header(struct ab_http_transfer *t, const char *header)
{
    struct curl_slist *list = t->http->lib.slist_append(t->headers, header);
    if (!list)
        AB_BUG("out of memory (curl_slist_append)");
    t->headers = list;
}

static int set_headers(struct ab_http_transfer *t, const struct ab_http_spec *spec,
                       struct ab_err *err)
{
    bool typed = false, encoded = false;
    for (size_t i = 0; i < spec->header_count; i++) {
        const char *header = spec->headers[i];
        size_t name_bytes = strcspn(header, ":");
        if (strpbrk(header, "\r\n") || !name_bytes || !header[name_bytes])
            return ab_err_set(err, AB_EBADARG,
                              "header %zu is not of the form Name: value", i + 1);
        typed = typed || has_name(header, "Content-Type");
        encoded = encoded || has_name(header, "Accept-Encoding");
        /* For curl "Name:" means "do not send it"; an empty value is spelled with a
         * semicolon. */
        if (header[name_bytes + 1 + strspn(header + name_bytes + 1, " ")])
            add_header(t, header);
        else {
            char *empty = ab_xstrndup(header, name_bytes + 1);
            empty[name_bytes] = ';';
            add_header(t, empty);
            free(empty);
        }
    }
    if (!typed)
        add_header(t, "Content-Type:"); /* curl would claim a form */
    if (!encoded)
        add_header(
            t, "Accept-Encoding: identity"); /* pausing compressed data is not bounded */
    add_header(
        t, "Expect:"); /* a second of waiting for servers that do not know 100-continue */
    t->http->lib.easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
    return 0;
}

static void set_method(struct ab_http_transfer *t, const struct ab_http_spec *spec)
{
    const struct ab_http_lib *lib = &t->http->lib;
    if (strcmp(spec->method, "HEAD") == 0) {
        lib->easy_setopt(t->easy, CURLOPT_NOBODY, 1L);
        return;
    }
    if (spec->body || strcmp(spec->method, "POST") == 0) {
        lib->easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                         (curl_off_t)spec->body_bytes);
        lib->easy_setopt(t->easy, CURLOPT_POSTFIELDS, spec->body ? spec->body : "");
    }
    if (strcmp(spec->method, "GET") != 0 || spec->body)
        lib->easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, spec->method);
}

static void set_blob(struct ab_http_transfer *t, CURLoption option, const char *pem)
{
    struct curl_blob blob = {(void *)(uintptr_t)pem, strlen(pem), CURL_BLOB_COPY};
    t->http->lib.easy_setopt(t->easy, option, &blob);
}

static void set_tls(struct ab_http_transfer *t, const struct ab_http_spec *spec)
{
    const struct ab_http_lib *lib = &t->http->lib;
    if (spec->ca_file)
        lib->easy_setopt(t->easy, CURLOPT_CAINFO, spec->ca_file);
    if (spec->ca_pem)
        set_blob(t, CURLOPT_CAINFO_BLOB, spec->ca_pem);
    if (spec->cert_pem)
        set_blob(t, CURLOPT_SSLCERT_BLOB, spec->cert_pem);
    if (spec->key_pem)
        set_blob(t, CURLOPT_SSLKEY_BLOB, spec->key_pem);
    if (spec->insecure) {
        lib->easy_setopt(t->easy, CURLOPT_SSL_VERIFYPEER, 0L);
        lib->easy_setopt(t->easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
}

static void set_route(struct ab_http_transfer *t, const struct ab_http_spec *spec)
{
    const struct ab_http_lib *lib = &t->http->lib;
    if (spec->unix_socket)
        lib->easy_setopt(t->easy, CURLOPT_UNIX_SOCKET_PATH, spec->unix_socket);
    /* An empty proxy keeps curl from reading the environment. */
    lib->easy_setopt(t->easy, CURLOPT_PROXY, spec->proxy ? spec->proxy : "");
    lib->easy_setopt(t->easy, CURLOPT_NOPROXY, "");
    lib->easy_setopt(t->easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    lib->easy_setopt(t->easy, CURLOPT_FOLLOWLOCATION, spec->max_redirects > 0 ? 1L : 0L);
    lib->easy_setopt(t->easy, CURLOPT_MAXREDIRS, spec->max_redirects);
    lib->easy_setopt(t->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    lib->easy_setopt(t->easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
}

/* Curl says only "could not connect" when no descriptor is left. */
/* A model may think for longer than any silence that could be called an error, so a
 * path that went away without a word has to be noticed below: within half a minute. */
static void watch_peer(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},          {IPPROTO_TCP, TCP_KEEPIDLE, 10},
        {IPPROTO_TCP, TCP_KEEPINTVL, 5},        {IPPROTO_TCP, TCP_KEEPCNT, 4},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, 30000},
    };
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) /* a hint, no more */
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                         sizeof(int));
}

static curl_socket_t on_open_socket(void *arg, curlsocktype purpose,
                                    struct curl_sockaddr *a)
{
    struct ab_http_transfer *t = arg;
    (void)purpose;
    int fd = socket(a->family, a->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->protocol);
    if (fd < 0) {
        t->open_errno = errno;
        return CURL_SOCKET_BAD;
    }
    if (a->family != AF_UNIX)
        watch_peer(fd);
    ab_http_multi_opened(t->http, fd);
    return fd;
}

static void set_connection(struct ab_http_transfer *t, const struct ab_http_spec *spec)
{
    const struct ab_http_lib *lib = &t->http->lib;
    lib->easy_setopt(t->easy, CURLOPT_NOSIGNAL, 1L);
    lib->easy_setopt(t->easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    lib->easy_setopt(t->easy, CURLOPT_BUFFERSIZE, READ_BUFFER_BYTES);
    lib->easy_setopt(t->easy, CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BUFFER_BYTES);
    lib->easy_setopt(t->easy, CURLOPT_FORBID_REUSE, spec->once && !spec->bare ? 1L : 0L);
    lib->easy_setopt(t->easy, CURLOPT_CONNECT_ONLY, spec->bare ? 1L : 0L);
    lib->easy_setopt(t->easy, CURLOPT_ACCEPT_ENCODING,
                     ""); /* decode what comes all the same */
    lib->easy_setopt(t->easy, CURLOPT_USERAGENT, "agentbox/" AB_VERSION);
    lib->easy_setopt(t->easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    lib->easy_setopt(t->easy, CURLOPT_OPENSOCKETDATA, t);
    lib->easy_setopt(t->easy, CURLOPT_ERRORBUFFER, t->detail);
    lib->easy_setopt(t->easy, CURLOPT_PRIVATE, t);
    /* The deadline is ours; this one only has to come later. */
    lib->easy_setopt(t->easy, CURLOPT_CONNECTTIMEOUT_MS,
                     spec->connect_ms ? (long)spec->connect_ms + 60000L : 86400000L);
}

int ab_http_options_apply(struct ab_http_transfer *t, const struct ab_http_spec *spec,
                          struct ab_err *err)
{
    if (find_host(t, spec->url, false, err) < 0)
        return -1;
    if (spec->proxy && find_host(t, spec->proxy, true, err) < 0)
        return -1;
    if (spec->unix_socket)
        t->host = ab_http_host_get(t->http, spec->unix_socket, "unix", true);
    t->easy = t->http->lib.easy_init();
    if (!t->easy)
        AB_BUG("out of memory (curl_easy_init)");
    if (set_headers(t, spec, err) < 0)
        return -1;
    t->http->lib.easy_setopt(t->easy, CURLOPT_URL, spec->url);
    set_method(t, spec);
    set_route(t, spec);
    set_tls(t, spec);
    set_connection(t, spec);
    ab_http_multi_prepare(t->http, t->easy);
    return 0;
}
