"use strict";

const { CsvError } = require("./csv");

// Makes objects of rows; the first row has the names. `types` maps a name to "string" (the default), "number" or "boolean":
//   number   what Number() takes from a text that is not blank and is finite, otherwise a CsvError
//   boolean  "true" or "false", otherwise a CsvError
// An empty field of a number or boolean is null. A row that has more or fewer fields than there are names is a CsvError, and so is a
// name that is empty or there twice. Names in `types` that are no column are ignored. The `line` of these errors is the number
// of the row, counting from 1 with the names. Objects have no prototype, so that a column may be called "__proto__".
function toObjects(rows, types = {}) {
  if (rows.length === 0) return [];
  const names = rows[0];
  names.forEach((name, i) => {
    if (name === "" || names.indexOf(name) !== i) throw new CsvError(`bad column name "${name}"`, 1);
  });
  return rows.slice(1).map((row, n) => {
    const line = n + 2;
    if (row.length !== names.length) throw new CsvError(`${row.length} fields, ${names.length} are wanted`, line);
    const object = Object.create(null);
    row.forEach((field, i) => {
      const type = Object.hasOwn(types, names[i]) ? types[names[i]] : "string";
      object[names[i]] = convert(field, type, line);
    });
    return object;
  });
}

function convert(field, type, line) {
  if (type === "string") return field;
  if (field === "") return null;
  if (type === "boolean") {
    if (field !== "true" && field !== "false") throw new CsvError(`not a boolean: "${field}"`, line);
    return field === "true";
  }
  const number = Number(field);
  if (field.trim() === "" || !Number.isFinite(number)) throw new CsvError(`not a number: "${field}"`, line);
  return number;
}

module.exports = { toObjects };
