"use strict";

const { CsvError } = require("./csv");

// Makes objects of rows; the first row has the names. `types` maps a name to "string" (the default), "number" or "boolean":
//   number   what Number() takes from a text that is not blank and is finite, otherwise a CsvError
//   boolean  "true" or "false", otherwise a CsvError
// An empty field of a number or boolean is null. A row that has more or fewer fields than there are names is a CsvError, and so is a
// name that is empty or there twice. Names in `types` that are no column are ignored. The `line` of these errors is the number
// of the row, counting from 1 with the names. Objects have no prototype, so that a column may be called "__proto__".
function toObjects(rows, types = {}) {
  return rows.slice(1).map((row) => Object.fromEntries(row.map((field, i) => [rows[0][i], field])));
}

module.exports = { toObjects };
