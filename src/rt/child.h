/* child.h - drives one running command: feeds its stdin, drains its output, enforces its
 * deadline.
 *
 *     struct ab_proc *p = ab_proc_start(loop, &child, &opts);
 *     op = ab_proc_wait(p, AB_PROC_EXIT, 0, true);      done when the command is over
 *     ab_proc_result(p)
 *     ab_proc_unref(p);                                 kills it, if it runs and nobody
 * waits
 *
 * The command is over when its main process ended: what is then in the pipes is still
 * taken, and they are closed, whoever else may hold them. Of each stream the head is
 * kept, up to a cap; the rest is drained and counted, so that the command goes on. With
 * `interactive` the reader takes bytes out as they come, and a full buffer stops the
 * command instead.
 */
#ifndef AB_RT_CHILD_H
#define AB_RT_CHILD_H

#include "base/buf.h"
#include "base/child.h"
#include "rt/op.h"

struct ab_proc;

enum ab_proc_event {
    AB_PROC_DATA = 1,    /* stdout has bytes, or its end was seen */
    AB_PROC_ERRDATA = 2, /* the same of stderr */
    AB_PROC_DRAINED = 4, /* everything written has been taken by the command */
    AB_PROC_EXIT = 8,
};

struct ab_proc_opts {
    char *input; /* takes (free); NULL for none */
    size_t input_len;
    bool hold_stdin; /* stays open for ab_proc_write until ab_proc_close_stdin */
    bool interactive;
    size_t max_output_bytes; /* of each stream */
    uint64_t timeout_ms;     /* 0: none */
};

struct ab_proc_stream {
    struct ab_buf buf;
    uint64_t dropped; /* bytes beyond the cap */
    bool eof;
};

struct ab_proc_result {
    bool over;
    bool lost; /* its sandbox died, or would not kill it: an infrastructure failure */
    bool timed_out, killed, no_exec;
    int code; /* -1 when signalled */
    int signal, errnum;
    uint64_t user_us, system_us, max_rss_bytes, wall_us;
};

/* Takes the child's descriptors and opts->input. Caller owns the returned reference. */
struct ab_proc *ab_proc_start(struct ab_loop *loop, const struct ab_child *child,
                              const struct ab_proc_opts *opts);
void ab_proc_unref(struct ab_proc *p);

/* An operation that is done as soon as one of the events is true, or after timeout_ms (0:
 * never). Several may wait at once. kill_on_cancel: giving it up kills the command.
 * Caller owns the returned reference; the operation keeps p alive. */
struct ab_op *ab_proc_wait(struct ab_proc *p, int events, uint64_t timeout_ms,
                           bool kill_on_cancel);

/* Done as soon as stdout, which nobody has taken from meanwhile, holds the text; or holds
 * all that it may, or nothing more will come. */
struct ab_op *ab_proc_wait_text(struct ab_proc *p, const char *text, size_t len,
                                uint64_t timeout_ms);

/* The process of such an operation, borrowed from it. */
struct ab_proc *ab_proc_of(const struct ab_op *op);

/* Which events are true now. */
int ab_proc_events(const struct ab_proc *p);

/* Copies the bytes. -1 when stdin is closed. To a script, only when what was written
 * before the last time has been read: its memory is used again. */
int ab_proc_write(struct ab_proc *p, const void *data, size_t len);
void ab_proc_close_stdin(struct ab_proc *p);

/* Takes bytes out of a stream; the command may go on then. */
struct ab_proc_stream *ab_proc_stream(struct ab_proc *p, bool err);
void ab_proc_consume(struct ab_proc *p, bool err, size_t len);

/* Nobody will read any more: keep the head and drop the rest, as without `interactive`.
 */
void ab_proc_stop_reading(struct ab_proc *p);

void ab_proc_kill(struct ab_proc *p);
void ab_proc_resize(struct ab_proc *p, unsigned rows, unsigned cols);

/* Valid until the last reference is gone. */
const struct ab_proc_result *ab_proc_result(const struct ab_proc *p);

#endif
