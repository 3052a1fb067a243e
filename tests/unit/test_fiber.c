/* test_fiber.c - the suspend, cancel and scope contract, under every possible allocation
 * failure.
 *
 * The sweep runs the same scenario once per allocation that Lua makes, failing that one
 * and the next three. Whatever happens inside, no op, no handle and no account may
 * outlive the loop. */
#include <lualib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lua/core.h"
#include "lua/fiber.h"
#include "lua/slice.h"

/* ThreadSanitizer is slow, and there is one thread here: a sample will do. */
#ifdef __SANITIZE_THREAD__
enum { FIBERS = 4, STEP = 40 };
#else
enum { FIBERS = 4, STEP = 1 };
#endif

struct heap {
    struct ab_heap real;
    long count;
    long fail_at; /* -1: never */
};

static void *alloc(void *ud, void *p, size_t osize, size_t nsize)
{
    struct heap *h = ud;
    if (nsize > 0 && (!p || nsize > osize)) {
        long n = h->count++;
        if (h->fail_at >= 0 && n >= h->fail_at && n < h->fail_at + 4)
            return NULL;
    }
    return ab_heap_alloc(&h->real, p, osize, nsize);
}

static const char script[] =
    "local fiber = require 'agentbox.sys.fiber'\n"
    "local async = require 'agentbox.async'\n"
    "done, closed = 0, 0\n"
    "local function body()\n"
    "  local guard <close> = setmetatable({}, {__close = function()\n"
    "    fiber.sleep(0) closed = closed + 1 end})\n"
    "  for i = 1, 5 do\n"
    "    local junk = {} for j = 1, 20 do junk[j] = ('x'):rep(j * 7) end\n"
    "    fiber.sleep(0)\n"
    "  end\n"
    "  fiber.current():locals().x = 1\n"
    "  local kid = fiber.spawn(function(a) return a, fiber.park(0.001) end, 1)\n"
    "  fiber.yield()\n"
    "  kid:wake('v')\n"
    "  local ok, a, v = kid:join(5)\n"
    "  assert(ok and a == 1 and v == 'v')\n"
    "  local bad = fiber.spawn(function() error('boom') end)\n"
    "  local ok, e = bad:join()\n"
    "  assert(not ok and e.traceback)\n"
    "  local nested = coroutine.wrap(function() coroutine.yield(1) return 2 end)\n"
    "  assert(nested() == 1 and nested() == 2)\n"
    "  assert(not pcall(error, 'x'))\n"
    "  local sem, sum = async.semaphore(1), 0\n"
    "  async.each({ 1, 2, 3 }, function(i)\n"
    "    local permit <close> = sem:acquire() async.yield() sum = sum + i end)\n"
    "  assert(sum == 6 and sem:free() == 1)\n"
    "  assert(async.timeout(0, fiber.park) == nil)\n"
    "  local ok, e = pcall(async.all, { function() error('kid') end, fiber.park })\n"
    "  assert(not ok and e.code == 'defect' or e.code == 'nomem')\n"
    "  done = done + 1\n"
    "end\n"
    "return body\n";

static int setup(lua_State *L)
{
    luaL_openlibs(L);
    abl_open_engine(L);
    if (luaL_loadstring(L, script) != LUA_OK)
        return lua_error(L);
    lua_call(L, 0, 1);
    return 1;
}

struct spawn {
    struct ab_fiber *fibers[FIBERS];
};

static int spawn_all(lua_State *L)
{
    struct spawn *sp = lua_touserdata(L, 1);
    for (int i = 0; i < FIBERS; i++) {
        lua_pushvalue(L, 2);
        sp->fibers[i] = abl_fiber_new(L, 0);
        sp->fibers[i]->observed = true;
    }
    return 0;
}

static int global_int(lua_State *L, const char *name)
{
    lua_getglobal(L, name);
    int n = (int)lua_tointeger(L, -1);
    lua_pop(L, 1);
    return n;
}

struct outcome {
    long allocs;
    int done, closed, failed, swept;
    size_t left;
};

static struct outcome scenario(long fail_at)
{
    struct outcome out = {0};
    struct heap heap = {.fail_at = -1};
    struct ab_loop loop;
    struct ab_err err;
    struct ab_sched sched;
    struct spawn sp = {0};

    ab_heap_init(&heap.real);
    assert_int_equal(ab_loop_init(&loop, &err), 0);
    lua_State *L = lua_newstate(alloc, &heap);
    ab_sched_init(&sched, L, &loop);
    sched.heap = &heap.real;
    lua_pushcfunction(L, setup);
    if (lua_pcall(L, 0, 1, 0) != LUA_OK)
        fail_msg("setup: %s", lua_tostring(L, -1));

    heap.count = 0;
    heap.fail_at = fail_at;
    lua_pushcfunction(L, spawn_all);
    lua_insert(L, 1);
    lua_pushlightuserdata(L, &sp);
    lua_insert(L, 2);
    if (lua_pcall(L, 2, 0, 0) != LUA_OK)
        lua_pop(L, 1);
    if (sp.fibers[FIBERS - 1]) {
        ab_err_set(&err, AB_ECANCELLED, "cancelled");
        ab_fiber_cancel(sp.fibers[FIBERS - 1], &err); /* before its first resume */
    }
    ab_sched_run(&sched);
    out.allocs = heap.count;

    heap.fail_at = -1;
    assert_int_equal(sched.live, 0);
    out.done = global_int(L, "done");
    out.closed = global_int(L, "closed");
    out.failed = sched.failed;
    lua_close(L);
    out.swept = ab_loop_fini(&loop);
    out.left = heap.real.bytes;
    ab_heap_fini(&heap.real);
    return out;
}

static void test_clean_run(void **state)
{
    (void)state;
    struct outcome ok = scenario(-1);
    assert_int_equal(ok.done, FIBERS - 1);
    assert_int_equal(ok.closed, FIBERS - 1); /* the cancelled one never began */
    /* Each of the others has four children that fail on purpose or are cancelled. */
    assert_int_equal(ok.failed, 1 + 4 * (FIBERS - 1));
    assert_int_equal(ok.swept, 0);
    assert_int_equal(ok.left, 0);
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    long points = scenario(-1).allocs;
    int swept = 0;
    assert_true(points > 300);
    for (long i = 0; i < points; i += STEP) {
        struct outcome out = scenario(i);
        assert_int_equal(out.left, 0);
        swept += out.swept;
    }
    print_message("%ld points, %d ops left to the sweep, 0 leaked\n", points, swept);
}

/* ---- the grace period ---- */

static void slice(void *arg)
{
    ab_slice_on_tick(arg);
}

static void nothing(void *arg)
{
    (void)arg;
}

/* Runs the script's body as one fiber, cancels it while it waits; gives what it left in
 * `trace`. */
static void run_cancelled(const char *body, char *trace, size_t size)
{
    struct ab_heap heap;
    struct ab_loop loop;
    struct ab_err err;
    struct ab_sched sched;
    ab_heap_init(&heap);
    assert_int_equal(ab_loop_init(&loop, &err), 0);
    lua_State *L = lua_newstate(ab_heap_alloc, &heap);
    ab_sched_init(&sched, L, &loop);
    sched.heap = &heap;
    sched.grace_ms = 30;
    const struct ab_watchdog_hooks hooks = {.slice = slice,
                                            .warn = nothing,
                                            .stuck = nothing,
                                            .arg = &sched,
                                            .warn_ms = 1000000,
                                            .stuck_ms = 1000000};
    sched.wd = ab_watchdog_new(&hooks, &err);
    assert_non_null(sched.wd);
    luaL_openlibs(L);
    abl_open_engine(L);
    assert_int_equal(luaL_loadstring(L, body), LUA_OK);
    struct ab_fiber *f = abl_fiber_new(L, 0);
    ab_fiber_set_deadline(f, 1);
    ab_sched_run(&sched);
    assert_int_equal(f->status, AB_FIBER_FAILED);
    assert_true(f->hard);
    lua_getglobal(L, "trace");
    snprintf(trace, size, "%s", lua_tostring(L, -1));
    lua_close(L);
    ab_watchdog_free(sched.wd);
    assert_int_equal(ab_loop_fini(&loop), 0);
    assert_int_equal(heap.bytes, 0);
    ab_heap_fini(&heap);
}

static void test_a_handler_that_waits_for_ever_is_closed(void **state)
{
    char trace[256];
    (void)state;
    run_cancelled(
        "local fiber = require 'agentbox.sys.fiber'\n"
        "trace = ''\n"
        "local outer <close> = setmetatable({}, {__close = function()\n"
        "  trace = trace .. ' outer' fiber.sleep(1000) trace = trace .. ' no' end})\n"
        "local inner <close> = setmetatable({}, {__close = function()\n"
        "  trace = trace .. ' inner' fiber.sleep(1000) trace = trace .. ' no' end})\n"
        "fiber.sleep(1000)\n",
        trace, sizeof trace);
    assert_string_equal(trace,
                        " inner outer"); /* the outer one runs too, but may not wait */
}

/* ThreadSanitizer delivers signals in calls of libc only, hence os.time. */
static void test_a_handler_that_loops_for_ever_is_stopped(void **state)
{
    char trace[256];
    (void)state;
    run_cancelled(
        "local fiber = require 'agentbox.sys.fiber'\n"
        "trace = ''\n"
        "local outer <close> = setmetatable({}, {__close = function()\n"
        "  trace = trace .. ' outer'\n"
        "  while true do pcall(function() while true do os.time() end end) end\n"
        "end})\n"
        "local inner <close> = setmetatable({}, {__close = function()\n"
        "  trace = trace .. ' inner' while true do os.time() end end})\n"
        "fiber.sleep(1000)\n",
        trace, sizeof trace);
    assert_string_equal(trace, " inner outer");
}

static void test_accounts_are_exact(void **state)
{
    (void)state;
    struct ab_heap heap;
    ab_heap_init(&heap);
    struct ab_account *a = ab_account_new(&heap), *b = ab_account_new(&heap);
    b->limit_bytes = 1000;
    heap.charged = a;
    void *p = ab_heap_alloc(&heap, NULL, LUA_TTABLE, 600);
    assert_int_equal(a->bytes, 600);
    heap.charged = b;
    p = ab_heap_alloc(&heap, p, 600,
                      100); /* whoever shrinks or frees: the owner is credited */
    assert_int_equal(a->bytes, 100);
    p = ab_heap_alloc(&heap, p, 100, 900); /* who grows it, pays for it */
    assert_int_equal(a->bytes, 0);
    assert_int_equal(b->bytes, 900);
    assert_null(ab_heap_alloc(&heap, NULL, 0, 101));
    assert_null(ab_heap_alloc(&heap, p, 900, 1001));
    heap.charged = a;
    heap.limit_bytes = 2000;
    assert_null(ab_heap_alloc(&heap, NULL, 0, 1101));
    ab_account_unref(b); /* lives on until its last block is freed */
    ab_heap_alloc(&heap, p, 900, 0);
    assert_int_equal(heap.bytes, 0);
    ab_account_unref(a);
    ab_heap_fini(&heap);
}

/* Blocks of every size keep their bytes while they grow and shrink through the classes.
 */
static void test_blocks_keep_their_bytes(void **state)
{
    enum { COUNT = 64, ROUNDS = 20000 };
    struct ab_heap heap;
    unsigned char *blocks[COUNT] = {0};
    size_t sizes[COUNT] = {0};
    unsigned seed = 1;
    (void)state;
    ab_heap_init(&heap);
    for (int i = 0; i < ROUNDS; i++) {
        seed = seed * 1103515245u + 12345u;
        size_t k = seed / 65536 % COUNT, size = seed / 7 % (seed & 64 ? 40 : 600);
        blocks[k] = ab_heap_alloc(&heap, blocks[k], sizes[k], size);
        assert_true((size == 0) == (blocks[k] == NULL));
        for (size_t j = 0; j < size && j < sizes[k]; j++)
            assert_int_equal(blocks[k][j], k);
        if (size)
            memset(blocks[k], (int)k, size);
        sizes[k] = size;
    }
    for (int k = 0; k < COUNT; k++)
        ab_heap_alloc(&heap, blocks[k], sizes[k], 0);
    assert_int_equal(heap.bytes, 0);
    ab_heap_fini(&heap);
}

/* Beyond the first megabytes, across several huge pages: no block lies over another. */
static void test_a_large_heap_keeps_its_bytes(void **state)
{
    enum { COUNT = 150000, SIZE = 100 };
    struct ab_heap heap;
    (void)state;
    ab_heap_init(&heap);
    int **blocks = calloc(COUNT, sizeof *blocks);
    assert_non_null(blocks);
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = ab_heap_alloc(&heap, NULL, 0, SIZE);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 8, 0);
        for (size_t j = 0; j < SIZE / sizeof(int); j++)
            blocks[i][j] = i;
    }
    for (int i = 0; i < COUNT; i++)
        for (size_t j = 0; j < SIZE / sizeof(int); j++)
            assert_int_equal(blocks[i][j], i);
    for (int i = 0; i < COUNT; i++)
        ab_heap_alloc(&heap, blocks[i], SIZE, 0);
    assert_int_equal(heap.bytes, 0);
    free(blocks);
    ab_heap_fini(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clean_run),
        cmocka_unit_test(test_every_allocation_may_fail),
        cmocka_unit_test(test_a_handler_that_waits_for_ever_is_closed),
        cmocka_unit_test(test_a_handler_that_loops_for_ever_is_stopped),
        cmocka_unit_test(test_accounts_are_exact),
        cmocka_unit_test(test_blocks_keep_their_bytes),
        cmocka_unit_test(test_a_large_heap_keeps_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
