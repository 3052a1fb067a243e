"use strict";

class CsvError extends Error {
  constructor(message, line) {
    super(`line ${line}: ${message}`);
    this.line = line;
  }
}

// const p = new CsvParser({ separator: ";", skipEmpty: true });
// rows = p.push(chunk)   the rows (arrays of strings) that were completed by this chunk
// rows = p.end()         what is left, at most one row; push() and end() after end() throw an Error "parser has ended"
class CsvParser {
  constructor({ separator = ",", skipEmpty = false } = {}) {
    this.separator = separator;
    this.skipEmpty = skipEmpty;
    this.state = "start";      // start (of a field), plain, quoted, quote (one was seen inside a quoted field)
    this.cr = false;           // a CR was seen and may belong to a row's end
    this.field = "";
    this.row = [];
    this.line = 1;
    this.opened = 0;           // the line of the opening quote
    this.fresh = true;         // nothing was read yet
    this.ended = false;
    this.error = null;
  }

  fail(message, line) {
    this.error = new CsvError(message, line);
    throw this.error;
  }

  check() {
    if (this.error) throw this.error;
    if (this.ended) throw new Error("parser has ended");
  }

  endField() {
    this.row.push(this.field);
    this.field = "";
    this.state = "start";
  }

  endRow(rows) {
    const empty = this.row.length === 0 && this.field === "" && this.state === "start";
    this.endField();
    if (!(empty && this.skipEmpty)) rows.push(this.row);
    this.row = [];
  }

  // A CR that turned out to be no part of a row's end.
  plainCr() {
    this.cr = false;
    if (this.state === "quote") this.fail("text after a closing quote", this.line);
    this.field += "\r";
    this.state = "plain";
  }

  take(c, rows) {
    if (this.state === "quoted") {
      if (c === '"') this.state = "quote";
      else this.field += c;
      if (c === "\n") this.line += 1;
      return;
    }
    if (c === "\n") {
      this.cr = false;
      this.endRow(rows);
      this.line += 1;
      return;
    }
    if (this.cr) this.plainCr();
    if (c === "\r") {
      this.cr = true;
    } else if (c === this.separator) {
      this.endField();
    } else if (this.state === "quote") {
      if (c !== '"') this.fail("text after a closing quote", this.line);
      this.field += '"';
      this.state = "quoted";
    } else if (c === '"' && this.state === "start") {
      this.state = "quoted";
      this.opened = this.line;
    } else {
      this.field += c;
      this.state = "plain";
    }
  }

  push(chunk) {
    this.check();
    const rows = [];
    for (const c of chunk) {
      if (this.fresh && c === "\ufeff") {
        this.fresh = false;
        continue;
      }
      this.fresh = false;
      this.take(c, rows);
    }
    return rows;
  }

  end() {
    this.check();
    const rows = [];
    if (this.state === "quoted") this.fail("a quoted field is never closed", this.opened);
    if (this.cr) this.plainCr();
    if (this.row.length > 0 || this.state !== "start") this.endRow(rows);
    this.ended = true;
    return rows;
  }
}

module.exports = { CsvParser, CsvError };
