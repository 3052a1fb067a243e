#include "lua/job.h"

#include <stdlib.h>

#include "lua/conv.h"
#include "rt/work.h"

#define HOLDER_TYPE "agentbox.job"

struct holder {
    struct abl_job *job; /* owns, or NULL: a thread has it */
};

static void job_run(void *arg)
{
    struct abl_job *job = arg;
    job->rc = job->kind->run(job);
}

static void job_free(void *arg)
{
    struct abl_job *job = arg;
    job->kind->fini(job);
    free(job);
}

static int l_holder_gc(lua_State *L)
{
    struct holder *h = luaL_checkudata(L, 1, HOLDER_TYPE);
    if (h->job)
        job_free(h->job);
    h->job = NULL;
    return 0;
}

void *abl_job_new(lua_State *L, size_t size, const struct abl_job_kind *kind)
{
    struct holder *h = lua_newuserdatauv(L, sizeof *h, 0);
    h->job = NULL;
    if (luaL_newmetatable(L, HOLDER_TYPE)) {
        lua_pushcfunction(L, l_holder_gc);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    h->job = ab_xcalloc(1, size);
    h->job->kind = kind;
    return h->job;
}

static int push_results(lua_State *L, struct abl_job *job)
{
    if (job->rc < 0)
        return abl_push_err(L, &job->err, job->kind->op);
    return job->kind->push(L, job);
}

static int push_done(lua_State *L, struct ab_op *op)
{
    if (op->err)
        return abl_push_err(L, op->err, "job");
    return push_results(L, ab_work_job(op));
}

int abl_job_do(lua_State *L, bool long_one)
{
    struct holder *h = luaL_checkudata(L, -1, HOLDER_TYPE);
    if (!long_one || !abl_can_wait(L)) {
        job_run(h->job);
        return push_results(L, h->job);
    }
    struct ab_anchor *anchor = abl_anchor(L);
    struct ab_work work = {.run = job_run, .free = job_free, .job = h->job};
    h->job = NULL;
    anchor->op = ab_work_start(abl_loop(L), &work);
    return abl_wait(L, anchor, push_done);
}

int abl_job_push_true(lua_State *L, struct abl_job *job)
{
    (void)job;
    lua_pushboolean(L, 1);
    return 1;
}
