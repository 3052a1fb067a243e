#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const names[AB_ERRCODE_COUNT] = {
    [AB_OK] = "ok",
    [AB_EBADARG] = "badarg",
    [AB_ENOTFOUND] = "notfound",
    [AB_EEXISTS] = "exists",
    [AB_EDENIED] = "denied",
    [AB_EINVALID] = "invalid",
    [AB_EFULL] = "full",
    [AB_EIO] = "io",
    [AB_ETIMEOUT] = "timeout",
    [AB_ECANCELLED] = "cancelled",
    [AB_ETOOBIG] = "toobig",
    [AB_EPARSE] = "parse",
    [AB_EPROTOCOL] = "protocol",
    [AB_ENETWORK] = "network",
    [AB_ESANDBOX] = "sandbox",
    [AB_EBUSY] = "busy",
    [AB_ENOMEM] = "nomem",
    [AB_ELIMIT] = "limit",
    [AB_EUNSUPPORTED] = "unsupported",
    [AB_ESYS] = "sys",
};

static enum ab_errcode code_of(int errnum)
{
    switch (errnum) {
    case ENOENT:
        return AB_ENOTFOUND;
    case EEXIST:
        return AB_EEXISTS;
    case EACCES:
    case EPERM:
    case EROFS:
        return AB_EDENIED;
    case EISDIR:
    case ENOTDIR:
    case ELOOP:
    case ENXIO:
        return AB_EINVALID;
    case ENOSPC:
    case EDQUOT:
    case EFBIG: /* of a write: above `ulimit -f` */
        return AB_EFULL;
    case EIO:
        return AB_EIO;
    case ETIMEDOUT:
        return AB_ETIMEOUT;
    case ECANCELED:
        return AB_ECANCELLED;
    case ENAMETOOLONG:
    case E2BIG:
        return AB_ETOOBIG;
    case EBUSY:
    case ETXTBSY:
        return AB_EBUSY;
    case ENOMEM:
        return AB_ENOMEM;
    case ENOSYS:
    case EOPNOTSUPP:
        return AB_EUNSUPPORTED;
    default:
        return AB_ESYS;
    }
}

int ab_err_set(struct ab_err *err, enum ab_errcode code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    err->code = code;
    err->sys = 0;
    vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    va_end(ap);
    return -1;
}

int ab_err_sys(struct ab_err *err, int errnum, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    va_end(ap);
    if (errnum < 0)
        errnum = -errnum;
    if (n >= 0 && (size_t)n < sizeof err->msg)
        snprintf(err->msg + n, sizeof err->msg - (size_t)n, ": %s", strerror(errnum));
    err->code = code_of(errnum);
    err->sys = errnum;
    return -1;
}

int ab_err_wrap(struct ab_err *err, const char *fmt, ...)
{
    char old[sizeof err->msg];
    memcpy(old, err->msg, sizeof old);
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n + 3 < sizeof err->msg)
        snprintf(err->msg + n, sizeof err->msg - (size_t)n, ": %.*s",
                 (int)(sizeof err->msg - (size_t)n - 3), old);
    return -1;
}

const char *ab_err_name(enum ab_errcode code)
{
    if ((unsigned)code >= AB_ERRCODE_COUNT)
        AB_BUG("error code %d", (int)code);
    return names[code];
}
