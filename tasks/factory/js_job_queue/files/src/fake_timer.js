"use strict";

// A clock that stands still until it is told to go on.
class FakeTimer {
  constructor() {
    this.time = 0;
    this.waiting = [];
  }

  now() { return this.time; }

  after(ms, fn) {
    const entry = { at: this.time + ms, fn };
    this.waiting.push(entry);
    return () => { this.waiting = this.waiting.filter((other) => other !== entry); };
  }

  // Lets promises that can go on do so.
  async settle() { for (let i = 0; i < 20; i++) await Promise.resolve(); }

  // Moves the clock, firing in order what is due on the way.
  async advance(ms) {
    const end = this.time + ms;
    await this.settle();
    for (;;) {
      const due = this.waiting.filter((entry) => entry.at <= end).sort((a, b) => a.at - b.at)[0];
      if (!due) break;
      this.waiting = this.waiting.filter((entry) => entry !== due);
      this.time = Math.max(this.time, due.at);
      due.fn();
      await this.settle();
    }
    this.time = end;
  }
}

module.exports = { FakeTimer };
