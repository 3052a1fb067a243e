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
  }

  push(chunk) {
    return chunk.split("\n").map((line) => line.split(this.separator));
  }

  end() {
    return [];
  }
}

module.exports = { CsvParser, CsvError };
