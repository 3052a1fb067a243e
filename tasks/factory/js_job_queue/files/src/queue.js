"use strict";

class CancelledError extends Error {
  constructor() { super("cancelled"); }
}

class TimeoutError extends Error {
  constructor() { super("timed out"); }
}

// const queue = new JobQueue({ timer, limit: 2 });
//
// const job = queue.add(fn, { priority: 0, retries: 0, pause: 100, timeout: 0 });
//   Adds a job. It is never started inside of add() itself, only once the current code has run to its end (a microtask later).
//   `fn({ attempt, signal })` is called with the number of the attempt (from 1) and an AbortSignal of this attempt, and may return a
//   promise or a value, or throw. Among waiting jobs the one with the highest priority starts first, then the one added first.
//   job.done      a promise of fn's result; of the last attempt's error when there are no retries left
//   job.cancel()  see below
//   job.state     "waiting", "running", "paused" (between two attempts), "done", "failed" or "cancelled"
//
// Retries: after attempt n failed, and n is at most `retries`, the job pauses for pause * 2 ** (n - 1) milliseconds and then
//   waits again; it keeps its place, as if it had just been waiting all the time. A paused job takes no place among the `limit`.
//
// timeout: when it is not 0, an attempt that has not ended after so many milliseconds fails with a TimeoutError, its signal
//   is aborted, and what it does later is ignored. It counts as a failed attempt: there may be retries.
//
// cancel(): a job that is waiting or paused never runs again; one that is running has its signal aborted and gives up its place
//   at once. `done` is rejected with a CancelledError. Returns true, or false when the job had already ended.
//
// queue.idle()    a promise that is resolved when no job is waiting, running or paused; at once when that is so already
// queue.running   how many run;  queue.waiting   how many wait (without the paused ones)
//
// A rejected `done` that nobody looks at must not end the process. When a job has ended nothing of it is left in the timer.
class JobQueue {
  constructor({ timer, limit = 1 }) {
    this.timer = timer;
    this.limit = limit;
  }

  get running() { return 0; }

  get waiting() { return 0; }

  add(fn, options = {}) {
    const done = new Promise((resolve) => { this.timer.after(options.timeout || 0, () => resolve(undefined)); });
    return { done, state: "waiting", cancel: () => false };
  }

  async idle() {}
}

module.exports = { JobQueue, CancelledError, TimeoutError };
