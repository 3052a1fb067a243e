/* err.h - the error value.
 *
 * A function that can fail for a reason a user may see returns 0 or -1 and takes a
 * `struct ab_err *err` as its last parameter. err is never NULL, is written only on
 * failure, owns nothing, and is copied by assignment. The code is API: Lua scripts
 * compare it as a string (ab_err_name). The message is prose and may change.
 */
#ifndef AB_BASE_ERR_H
#define AB_BASE_ERR_H

#include "base/ab.h"

enum ab_errcode {
    AB_OK = 0,
    AB_EBADARG,    /* a value the caller gave is unusable */
    AB_ENOTFOUND,  /* no such file, key, image, program */
    AB_EEXISTS,    /* it is there already */
    AB_EDENIED,    /* permission */
    AB_EINVALID,   /* the wrong kind of thing: a directory, a FIFO, a device */
    AB_EFULL,      /* no space or no inode left, or a quota reached */
    AB_EIO,        /* a read or a write failed */
    AB_ETIMEOUT,   /* a deadline of ours passed */
    AB_ECANCELLED, /* somebody cancelled the wait */
    AB_ETOOBIG,    /* a cap was exceeded */
    AB_EPARSE,     /* text that is not well formed */
    AB_EPROTOCOL,  /* the other side broke the protocol */
    AB_ENETWORK,   /* could not resolve, connect, or was cut off; TLS failed */
    AB_ESANDBOX,   /* the sandbox itself failed or died: infrastructure, never a score */
    AB_EBUSY,      /* in use, or too many at once */
    AB_ENOMEM,     /* a memory ceiling was reached */
    AB_ELIMIT,     /* a budget of steps or of time for a script was used up */
    AB_EUNSUPPORTED, /* this machine, kernel or build cannot */
    AB_ESYS,         /* any other refusal of the operating system */
    AB_ERRCODE_COUNT
};

struct ab_err {
    enum ab_errcode code;
    int sys; /* errno, or 0 when the operating system was not involved */
    char msg[240];
};

/* All return -1, so that `return ab_err_set(...)` is the whole failure path. */
int ab_err_set(struct ab_err *err, enum ab_errcode code, const char *fmt, ...)
    AB_PRINTF(3, 4);

/* Appends strerror(errnum) to the message; the code follows from errnum (ENOENT is
 * AB_ENOTFOUND, ENOSPC is AB_EFULL, ...). errnum may be a negative libuv status. */
int ab_err_sys(struct ab_err *err, int errnum, const char *fmt, ...) AB_PRINTF(3, 4);

/* Puts "context: " before the message of a failure already set. */
int ab_err_wrap(struct ab_err *err, const char *fmt, ...) AB_PRINTF(2, 3);

/* "timeout", "cancelled", ...: stable, lower case, one word. */
const char *ab_err_name(enum ab_errcode code);

#endif
