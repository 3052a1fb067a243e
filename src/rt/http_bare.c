/* http_bare.c - a connection that is handed over as it is: for protocols that begin as
 * HTTP and go on as something else. Curl still resolves, connects and encrypts. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rt/http_client.h"

static curl_socket_t connection(struct ab_http_transfer *t)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    t->http->lib.easy_getinfo(t->easy, CURLINFO_ACTIVESOCKET, &fd);
    return fd;
}

int ab_http_bare_fd(struct ab_http_transfer *t, struct ab_err *err)
{
    int fd = t->state == AB_HTTP_OVER ? -1 : connection(t);
    int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy < 0)
        return ab_err_set(err, AB_ENETWORK, "the connection is gone");
    return copy;
}

static long fail(struct ab_http_transfer *t, CURLcode code, struct ab_err *err)
{
    if (code == CURLE_AGAIN)
        return AB_HTTP_AGAIN;
    return ab_http_explain(t, code, err);
}

long ab_http_bare_send(struct ab_http_transfer *t, const void *data, size_t len,
                       struct ab_err *err)
{
    size_t n = 0;
    if (t->state == AB_HTTP_OVER)
        return ab_err_set(err, AB_ENETWORK, "the connection is closed");
    CURLcode code = t->http->lib.easy_send(t->easy, data, len, &n);
    return code == CURLE_OK ? (long)n : fail(t, code, err);
}

long ab_http_bare_recv(struct ab_http_transfer *t, void *data, size_t room,
                       struct ab_err *err)
{
    size_t n = 0;
    if (t->state == AB_HTTP_OVER)
        return ab_err_set(err, AB_ENETWORK, "the connection is closed");
    CURLcode code = t->http->lib.easy_recv(t->easy, data, room, &n);
    return code == CURLE_OK ? (long)n : fail(t, code, err);
}
