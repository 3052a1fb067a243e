#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "rt/http_client.h"

static int explain_connect(struct ab_http_transfer *t, struct ab_err *err)
{
    long os = t->open_errno;
    t->host->expires_ms = 0; /* it may have moved: look the name up again */
    t->phase = "connect";    /* a kept connection that was dead came further before */
    if (!os)
        t->http->lib.easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &os);
    if (os == EMFILE || os == ENFILE) {
        struct rlimit lim = {0};
        getrlimit(RLIMIT_NOFILE, &lim);
        ab_err_set(err, AB_ENETWORK,
                   "no file descriptor left for a connection (limit %llu, see ulimit -n)",
                   (unsigned long long)lim.rlim_cur);
    } else
        ab_err_set(err, AB_ENETWORK, "could not connect to %.100s:%s: %s", t->host->name,
                   t->host->port, os ? strerror((int)os) : t->detail);
    err->sys = (int)os;
    return -1;
}

static int explain_cut(struct ab_http_transfer *t, CURLcode code, struct ab_err *err)
{
    if (code == CURLE_GOT_NOTHING)
        return ab_err_set(err, AB_ENETWORK,
                          "%.100s closed the connection without an answer",
                          t->host->name);
    return ab_err_set(err, AB_ENETWORK, "cut off by %.80s after %llu body bytes: %.80s",
                      t->host->name, (unsigned long long)t->body_bytes, t->detail);
}

static bool was_sent(struct ab_http_transfer *t)
{
    long bytes = 0;
    t->http->lib.easy_getinfo(t->easy, CURLINFO_REQUEST_SIZE, &bytes);
    return bytes > 0;
}

int ab_http_explain(struct ab_http_transfer *t, CURLcode code, struct ab_err *err)
{
    const char *detail = t->detail[0] ? t->detail : t->http->lib.easy_strerror(code);
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return ab_err_set(err, AB_ENETWORK, "%.150s", detail);
    case CURLE_COULDNT_CONNECT:
        return explain_connect(t, err);
    case CURLE_PROXY:
        return ab_err_set(err, AB_ENETWORK, "proxy: %.150s", detail);
    case CURLE_OPERATION_TIMEDOUT: /* newer ones call a path that went dead so, too */
        if (was_sent(t))
            return explain_cut(t, code, err);
        return ab_err_set(err, AB_ETIMEOUT, "connect: %.150s", detail);
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
        return explain_cut(t, code, err);
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
        t->phase = "tls";
        return ab_err_set(err, AB_ENETWORK, "TLS with %.80s: %.120s", t->host->name,
                          detail);
    default:
        return ab_err_set(err, AB_EPROTOCOL, "%.80s: %.120s", t->host->name, detail);
    }
}
