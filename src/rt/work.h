/* work.h - a piece of blocking or long work on a pool thread.
 *
 *     struct job { ...; struct ab_err err; };
 *     op = ab_work_start(loop, &(struct ab_work){ .run = run, .free = job_free, .job =
 * job });
 *
 * run() gets the job on a pool thread and must not touch the loop or Lua. The op is done
 * after run() has returned, on the loop. A cancelled op whose run() has begun lets it
 * finish; its job is freed afterwards, on the loop thread.
 */
#ifndef AB_RT_WORK_H
#define AB_RT_WORK_H

#include "rt/op.h"

struct ab_work {
    void (*run)(void *job);
    void (*free)(void *job);
    void *job;
};

/* libuv ends the process when it cannot start its threads, which it does at the first
 * piece of work. Where the number of processes is limited this tries it first, and says
 * so in err: -1. */
int ab_work_check(struct ab_err *err) AB_MUST_CHECK;

/* Starts them now: before anything runs that may use up the processes of this user. -1 as
 * ab_work_check(). */
int ab_work_ready(struct ab_loop *loop, struct ab_err *err) AB_MUST_CHECK;

/* Takes work->job. Caller owns the returned reference. */
struct ab_op *ab_work_start(struct ab_loop *loop, const struct ab_work *work);

/* The job, borrowed from the op; read it only when the op is done. */
void *ab_work_job(const struct ab_op *op);

#endif
