/* fiber.h - fibers: coroutines that wait on the loop.
 *
 * `abl_` functions take a lua_State and may raise (longjmp). Do not hold a C resource
 * across a call to one; put it in an anchor first. `ab_` functions never raise.
 *
 * A fiber is a userdata, anchored in the registry while it is alive; user values hold its
 * coroutine, locals, result and the value it is cancelled with. Its body runs under a
 * protected call inside the coroutine, so that <close> handlers run where they may still
 * wait.
 *
 * Cancel is raised once, where the fiber waits (or, when it is busy, at its next slice).
 * From then on the fiber has a grace period for its <close> handlers; after that its
 * coroutine is closed from outside, where waiting is an error. A timeout and a used-up
 * budget are cancels too.
 */
#ifndef AB_LUA_FIBER_H
#define AB_LUA_FIBER_H

#include <lauxlib.h>
#include <lua.h>

#include "lua/alloc.h"
#include "rt/op.h"
#include "rt/watchdog.h"

/* Lua declares these as returning int; tell the compiler and the analyzers the truth. */
AB_NORETURN int lua_error(lua_State *L);
AB_NORETURN int luaL_error(lua_State *L, const char *fmt, ...);

enum ab_fiber_status {
    AB_FIBER_READY,
    AB_FIBER_RUNNING,
    AB_FIBER_WAITING, /* for an op or another fiber */
    AB_FIBER_PARKED,  /* for wake values */
    AB_FIBER_DONE,
    AB_FIBER_FAILED,
};

struct ab_fiber {
    struct ab_sched *sched; /* borrowed; NULL once the scheduler is gone */
    lua_State *co;          /* borrowed from user value 1 */
    enum ab_fiber_status status;
    struct ab_list link;      /* in one of the scheduler's queues, or alone */
    struct ab_list all;       /* in sched->alive, or alone */
    struct ab_list joiners;   /* fibers that wait for this one */
    struct ab_list join_link; /* in another's joiners, or alone */
    struct ab_op *op;         /* borrowed from the anchor on co's stack, while waiting */
    struct ab_op *deadline;   /* owns, or NULL */
    struct ab_op *grace;      /* owns, or NULL; set once cancelled */
    struct ab_account *account; /* owns a share */
    struct ab_err *cancel_err;  /* owns; what to raise, unless user value 4 is set */
    int ref;                    /* in the table that anchors the living */
    int nresults;               /* user value 3: nothing, the value, or a list of them */
    int nwake;                  /* values that a wake left on co */
    int nested;                 /* protected calls that it is in */
    bool woken;                 /* they must be delivered, even before a cancel */
    bool sliced;                /* left its turn in the middle of a computation */
    bool started;
    bool cancelling; /* set by the first cancel, for good */
    bool pending;    /* the raise is still to come */
    bool hard;       /* the grace period is over: close from outside */
    bool own_locals; /* user value 2 is its own table, not its parent's */
    bool observed;   /* somebody asked for the result */
};

struct ab_sched {
    struct ab_loop *loop;     /* borrowed */
    lua_State *main;          /* borrowed; outlives the scheduler's fibers */
    struct ab_heap *heap;     /* borrowed, or NULL: nobody is charged */
    struct ab_watchdog *wd;   /* borrowed, or NULL: nothing is sliced */
    struct ab_fiber *running; /* NULL between resumes */
    bool polling;             /* inside uv_run */
    lua_State
        *volatile active;  /* the coroutine that executes; read by a signal handler */
    struct ab_fiber *root; /* borrowed; the main fiber; all others end with it */
    struct ab_list soon;   /* fibers to resume first, oldest first; */
    struct ab_list pass;   /* the others whose turn it is, */
    struct ab_list ready;  /* and who follow them after a look at I/O */
    int favoured;          /* turns in a row from `soon` */
    struct ab_list alive;
    int live;
    int failed;
    int pooled;        /* coroutines kept for the next fibers */
    int inner;         /* turns that began inside of the running one */
    int blocked;       /* nested coroutines that a slice cannot leave */
    bool slicing;      /* a slice is on its way out to the scheduler */
    bool deferring;    /* the collector waits for the end of the turn */
    int slack_percent; /* how far the heap may grow before the next collection */
    uint64_t resumed_ns, resumed_cpu_ns;
    uint64_t interrupted_cpu_ns; /* when this turn was first interrupted, or 0 */
    uint64_t next_arm_cpu_ns;    /* read and written in the signal handler alone */
    uint64_t grace_ms;
    bool exiting; /* os.exit was called: */
    int exit_status;
};

/* Ties the scheduler to every coroutine of L. Call once, right after lua_newstate. */
void ab_sched_init(struct ab_sched *s, lua_State *main, struct ab_loop *loop);

/* Runs until no fiber is left. When `root` ends, the others are cancelled. */
void ab_sched_run(struct ab_sched *s);

/* Registers the metatables. Call once per state, protected. */
void abl_register(lua_State *L);

/* The scheduler of L; NULL when there is none. */
struct ab_sched *ab_sched_of(lua_State *L);

/* Pops nargs arguments and the function below them, pushes the new fiber, which is ready.
 */
struct ab_fiber *abl_fiber_new(lua_State *L, int nargs);
struct ab_fiber *abl_check_fiber(lua_State *L, int arg);
void abl_push_fiber(lua_State *L, struct ab_fiber *f); /* only while it is alive */

enum {
    AB_UV_CO = 1,
    AB_UV_LOCALS,
    AB_UV_RESULT,
    AB_UV_CANCEL,
    AB_UV_COUNT = AB_UV_CANCEL
};

/* Pushes the results of the fiber at idx, which is done; gives their number. */
int abl_push_results(lua_State *L, int idx);

/* Ignored when the fiber is dead or was cancelled before. */
void ab_fiber_cancel(struct ab_fiber *f, const struct ab_err *why);

/* Raises the pending cancel of the running fiber. */
AB_NORETURN void abl_raise_cancel(lua_State *L, struct ab_fiber *f);

/* Cancels with code `timeout` after ms; replaces an earlier deadline. */
void ab_fiber_set_deadline(struct ab_fiber *f, uint64_t ms);
void ab_fiber_clear_deadline(struct ab_fiber *f);

/* Gives a fiber that has not begun its first turn inside of that of L, which is the
 * running one's coroutine: a child that does not wait has ended when this returns, and
 * nobody queued for it. Does nothing when the turn has lasted already, so that others
 * get theirs: the child is in the ready queue as before. */
void ab_fiber_run_inside(lua_State *L, struct ab_fiber *f);

/* Ceilings for the fiber and for the children that it starts from now on; 0 leaves one as
 * it is. Over the memory ceiling an allocation raises; a used-up CPU budget is a cancel,
 * code `limit`. */
void ab_fiber_limit(struct ab_fiber *f, size_t memory_bytes, uint64_t cpu_ns);

/* Puts a waiting fiber at the end of the ready queue. */
void ab_fiber_make_ready(struct ab_fiber *f);

/* The same, but it goes before those that bring new work: for one whom another fiber
 * woke, or whose command has ended or sandbox is ready: it holds, or was just given, what
 * others wait for, and a processor may be idle until it goes on. And for one whose time
 * has come. Not for jobs on threads: syncs of records that others join while they wait
 * their turn are fewer. They do not starve the others. */
void ab_fiber_make_ready_soon(struct ab_fiber *f);

/* Binding side: anchor first, start second, wait last.
 *
 *     struct ab_anchor *anchor = abl_anchor(L);
 *     anchor->op = ab_timer_start(abl_loop(L), ms);
 *     return abl_wait(L, anchor, push_result);
 *
 * abl_anchor raises unless L is the coroutine of the running fiber. push_result runs
 * inside the fiber, protected, and may raise; it finds the stack as abl_wait left it,
 * under the anchor. An anchor without an op waits for ab_fiber_make_ready alone.
 */
struct ab_anchor {
    struct ab_op *op; /* owns one reference, or NULL */
    int (*push)(lua_State *L, struct ab_op *op);
};

struct ab_loop *abl_loop(lua_State *L);
bool abl_can_wait(lua_State *L);
struct ab_anchor *abl_anchor(lua_State *L);
int abl_wait(lua_State *L, struct ab_anchor *anchor,
             int (*push)(lua_State *, struct ab_op *));

/* Waits for ab_fiber_make_ready alone, without an anchor. Raises where waiting is
 * refused. */
int abl_wait_bare(lua_State *L, enum ab_fiber_status status,
                  int (*push)(lua_State *, struct ab_op *));
void abl_check_wait(lua_State *L);

/* The same, with the status that other fibers see: AB_FIBER_PARKED accepts wake values,
 * which push_result finds on top of the stack, fiber->nwake of them; AB_FIBER_READY only
 * gives way. */
int abl_wait_as(lua_State *L, struct ab_anchor *anchor, enum ab_fiber_status status,
                int (*push)(lua_State *, struct ab_op *));

#endif
