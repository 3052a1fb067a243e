const { test, assert } = require("./check");
const { FakeTimer } = require("../src/fake_timer");
const { JobQueue, CancelledError, TimeoutError } = require("../src/queue");

function setUp(limit) {
  const timer = new FakeTimer();
  const queue = new JobQueue({ timer, limit });
  const log = [];
  const sleep = (ms) => new Promise((resolve) => timer.after(ms, resolve));
  const job = (name, ms) => async ({ attempt }) => {
    log.push(`${name}${attempt > 1 ? attempt : ""}@${timer.now()}`);
    await sleep(ms);
    return name;
  };
  return { timer, queue, log, sleep, job };
}

// The error of a promise, which must have one by now.
async function errorOf(promise) {
  const found = await Promise.race([promise.then(() => "resolved", (error) => error), new Promise((r) => setImmediate(r, "pending"))]);
  assert.notEqual(found, "resolved");
  assert.notEqual(found, "pending");
  return found;
}

test("gives results", async () => {
  const { timer, queue, job } = setUp(1);
  const a = queue.add(job("a", 10));
  const b = queue.add(() => 7);
  assert.equal(a.state, "waiting");
  assert.equal(queue.waiting, 2);
  await timer.advance(5);
  assert.deepEqual([a.state, b.state, queue.running, queue.waiting], ["running", "waiting", 1, 1]);
  await timer.advance(5);
  assert.equal(await a.done, "a");
  assert.equal(await b.done, 7);
  assert.deepEqual([a.state, b.state, queue.running, queue.waiting], ["done", "done", 0, 0]);
});

test("does not start inside of add", async () => {
  const { timer, queue, log, job } = setUp(2);
  queue.add(job("a", 1));
  assert.deepEqual(log, []);
  await timer.settle();
  assert.deepEqual(log, ["a@0"]);
});

test("keeps the limit", async () => {
  const { timer, queue, log, job } = setUp(2);
  for (const name of ["a", "b", "c", "d"]) queue.add(job(name, name === "a" ? 30 : 10));
  await timer.advance(100);
  assert.deepEqual(log, ["a@0", "b@0", "c@10", "d@20"]);
});

test("priorities, then the order of adding", async () => {
  const { timer, queue, log, job } = setUp(1);
  queue.add(job("a", 10));
  queue.add(job("b", 10), { priority: 1 });
  queue.add(job("c", 10), { priority: 2 });
  queue.add(job("d", 10), { priority: 1 });
  queue.add(job("e", 10), { priority: -1 });
  await timer.advance(100);
  assert.deepEqual(log, ["c@0", "b@10", "d@20", "a@30", "e@40"]);
});

function failing(times, log, timer) {
  return ({ attempt }) => {
    log.push(`${attempt}@${timer.now()}`);
    if (attempt <= times) throw new Error(`no ${attempt}`);
    return "good";
  };
}

test("retries with growing pauses", async () => {
  const { timer, queue, log } = setUp(1);
  const job = queue.add(failing(3, log, timer), { retries: 3, pause: 10 });
  await timer.advance(5);
  assert.deepEqual([job.state, queue.running, queue.waiting], ["paused", 0, 0]);
  await timer.advance(200);
  assert.deepEqual(log, ["1@0", "2@10", "3@30", "4@70"]);
  assert.equal(await job.done, "good");
});

test("the last error when there are no retries left", async () => {
  const { timer, queue, log } = setUp(1);
  const job = queue.add(failing(9, log, timer), { retries: 1 });
  await timer.advance(99);
  assert.equal(job.state, "paused");
  await timer.advance(1);
  assert.equal((await errorOf(job.done)).message, "no 2");
  assert.equal(job.state, "failed");
  const once = queue.add(() => Promise.reject(new Error("x")));
  await timer.settle();
  assert.equal((await errorOf(once.done)).message, "x");
});

test("a paused job takes no place and keeps its turn", async () => {
  const { timer, queue, log, job } = setUp(1);
  queue.add(failing(1, log, timer), { retries: 1, pause: 15 });
  queue.add(job("b", 10));
  queue.add(job("c", 10));
  queue.add(job("d", 10));
  await timer.advance(100);
  assert.deepEqual(log, ["1@0", "b@0", "c@10", "2@20", "d@20"]);
});

test("time limits", async () => {
  const { timer, queue, log, sleep } = setUp(1);
  const signals = [];
  const job = queue.add(async ({ attempt, signal }) => {
    signals.push(signal);
    log.push(`${attempt}@${timer.now()}`);
    await sleep(attempt === 1 ? 1000 : 5);
    return attempt;
  }, { timeout: 20, retries: 1, pause: 10 });
  const next = queue.add(() => log.push(`next@${timer.now()}`));
  await timer.advance(20);
  assert.equal(signals[0].aborted, true);
  assert.deepEqual(log, ["1@0", "next@20"]);
  await timer.advance(2000);
  assert.equal(await job.done, 2);
  assert.equal(signals[1].aborted, false);
  await next.done;
  const late = queue.add(() => sleep(50), { timeout: 49 });
  await timer.advance(49);
  assert.ok((await errorOf(late.done)) instanceof TimeoutError);
  const just = queue.add(() => sleep(50), { timeout: 51 });
  await timer.advance(1000);
  await just.done;
  assert.equal(queue.running, 0);
});

test("cancel while waiting", async () => {
  const { timer, queue, log, job } = setUp(1);
  queue.add(job("a", 10));
  const b = queue.add(job("b", 10));
  await timer.settle();
  assert.equal(b.cancel(), true);
  assert.equal(b.cancel(), false);
  assert.deepEqual([b.state, queue.waiting], ["cancelled", 0]);
  await timer.advance(50);
  assert.deepEqual(log, ["a@0"]);
  assert.ok((await errorOf(b.done)) instanceof CancelledError);
});

test("cancel while running gives up the place at once", async () => {
  const { timer, queue, log, job, sleep } = setUp(1);
  let signal;
  const a = queue.add(async (given) => { signal = given.signal; await sleep(100); }, { retries: 5 });
  queue.add(job("b", 10));
  await timer.advance(3);
  assert.equal(a.cancel(), true);
  assert.equal(signal.aborted, true);
  await timer.advance(500);
  assert.deepEqual(log, ["b@3"]);
  assert.equal(a.state, "cancelled");
  assert.equal(queue.running, 0);
  assert.ok((await errorOf(a.done)) instanceof CancelledError);
});

test("cancel while paused, and after the end", async () => {
  const { timer, queue, log, job } = setUp(1);
  const a = queue.add(failing(9, log, timer), { retries: 9 });
  await timer.settle();
  assert.equal(a.state, "paused");
  assert.equal(a.cancel(), true);
  assert.equal(timer.waiting.length, 0);
  await timer.advance(10000);
  assert.deepEqual(log, ["1@0"]);
  const b = queue.add(job("b", 1));
  await timer.advance(1);
  assert.equal(b.cancel(), false);
  assert.equal(await b.done, "b");
});

test("idle", async () => {
  const { timer, queue, log, job } = setUp(2);
  await queue.idle();
  queue.add(job("a", 10));
  queue.add(failing(1, log, timer), { retries: 1, pause: 50 });
  const c = queue.add(job("c", 100));
  let idle = false;
  queue.idle().then(() => { idle = true; });
  await timer.advance(60);
  assert.equal(idle, false);
  c.cancel();
  await timer.settle();
  assert.equal(idle, true);
});

test("nothing is left in the timer", async () => {
  const { timer, queue } = setUp(2);
  queue.add(() => 1, { timeout: 100 });
  queue.add(() => { throw new Error("x"); }, { timeout: 100 });
  const hung = queue.add(() => new Promise(() => {}), { timeout: 100 });
  await timer.settle();
  hung.cancel();
  assert.equal(timer.waiting.length, 0);
});
