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
    this.jobs = [];            // waiting
    this.open = 0;             // jobs that have not ended
    this.count = 0;
    this.active = 0;
    this.sleepers = [];
    this.scheduled = false;
  }

  get running() { return this.active; }

  get waiting() { return this.jobs.length; }

  add(fn, { priority = 0, retries = 0, pause = 100, timeout = 0 } = {}) {
    const job = { fn, priority, retries, pause, timeout, order: this.count++, attempt: 0, state: "waiting", stop: null, abort: null };
    job.done = new Promise((resolve, reject) => { Object.assign(job, { resolve, reject }); });
    job.done.catch(() => {});
    job.cancel = () => this.cancel(job);
    this.open += 1;
    this.enqueue(job);
    return job;
  }

  idle() {
    if (this.open === 0) return Promise.resolve();
    return new Promise((resolve) => this.sleepers.push(resolve));
  }

  enqueue(job) {
    job.state = "waiting";
    this.jobs.push(job);
    this.jobs.sort((a, b) => b.priority - a.priority || a.order - b.order);
    this.schedule();
  }

  schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    queueMicrotask(() => {
      this.scheduled = false;
      while (this.active < this.limit && this.jobs.length > 0) this.start(this.jobs.shift());
    });
  }

  start(job) {
    const controller = new AbortController();
    let over = false;
    job.state = "running";
    job.attempt += 1;
    this.active += 1;
    const leave = () => {
      if (over) return false;
      over = true;
      this.active -= 1;
      if (job.stop) job.stop();
      job.stop = null;
      this.schedule();
      return true;
    };
    job.abort = () => {
      leave();
      controller.abort();
    };
    if (job.timeout) {
      job.stop = this.timer.after(job.timeout, () => {
        job.abort();
        this.failed(job, new TimeoutError());
      });
    }
    new Promise((resolve) => resolve(job.fn({ attempt: job.attempt, signal: controller.signal }))).then(
      (value) => { if (leave()) this.end(job, "done", () => job.resolve(value)); },
      (error) => { if (leave()) this.failed(job, error); },
    );
  }

  failed(job, error) {
    if (job.attempt > job.retries) {
      this.end(job, "failed", () => job.reject(error));
      return;
    }
    job.state = "paused";
    job.stop = this.timer.after(job.pause * 2 ** (job.attempt - 1), () => {
      job.stop = null;
      this.enqueue(job);
    });
  }

  cancel(job) {
    if (["done", "failed", "cancelled"].includes(job.state)) return false;
    const running = job.state === "running";
    this.jobs = this.jobs.filter((other) => other !== job);
    job.state = "cancelled";
    if (running) job.abort();
    if (job.stop) job.stop();
    this.end(job, "cancelled", () => job.reject(new CancelledError()));
    return true;
  }

  end(job, state, settle) {
    job.state = state;
    this.open -= 1;
    settle();
    if (this.open > 0) return;
    for (const wake of this.sleepers.splice(0)) wake();
  }
}

module.exports = { JobQueue, CancelledError, TimeoutError };
