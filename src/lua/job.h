/* job.h - a blocking call of Lua's, on a pool thread when a fiber can wait for it.
 *
 *     struct read_job { struct abl_job job; char *path; struct ab_buf text; };
 *
 *     struct read_job *r = ABL_JOB_NEW(L, struct read_job, &READ);   // pushes its holder
 *     r->path = ...;
 *     return abl_job_do(L, true);
 *
 * A module's job begins with struct abl_job and ends with what the call takes and gives.
 * The holder on the stack owns it until a thread has it, so that an error cannot lose it.
 */
#ifndef AB_LUA_JOB_H
#define AB_LUA_JOB_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct abl_job;

/* What is the same for every call of one kind. run() sees no Lua; on -1 it has set
 * job->err. push() pushes the results of a run() that gave 0 and returns their number.
 * fini() releases what the job owns, not the job. */
struct abl_job_kind {
    const char *op; /* in errors: "fs.read" */
    int (*run)(struct abl_job *job);
    int (*push)(lua_State *L, struct abl_job *job);
    void (*fini)(struct abl_job *job);
};

struct abl_job {
    const struct abl_job_kind *kind; /* borrowed, static */
    int rc;
    struct ab_err err;
};

/* A job of size bytes, zeroes but for its kind; its holder is pushed. Borrowed from it.
 */
void *abl_job_new(lua_State *L, size_t size, const struct abl_job_kind *kind);

#define ABL_JOB_NEW(L, type, kind) ((type *)abl_job_new((L), sizeof(type), (kind)))

/* Runs the job whose holder is on top of the stack: here, or on a thread when it is worth
 * one and the caller can wait. Returns what push() did, or nil and the error. */
int abl_job_do(lua_State *L, bool long_one);

/* A push() for a call without results: true. */
int abl_job_push_true(lua_State *L, struct abl_job *job);

#endif
