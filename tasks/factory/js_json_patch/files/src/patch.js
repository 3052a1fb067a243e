"use strict";

const pointer = require("./pointer");

class PatchError extends Error {
  constructor(message, index) {
    super(`operation ${index}: ${message}`);
    this.index = index;
  }
}

// equal(a, b): whether two documents are the same JSON value. The order of an object's members does not matter. 0 and -0 are equal.
function equal(a, b) {
  return a === b;
}

// apply(document, operations) gives the changed document. The one that was given is not changed, and what is put in is copied, so that
// changing the result never changes an operation. When any operation fails a PatchError with the operation's index (from 0) is
// thrown and nothing has happened.
//
//   { op: "add", path, value }      sets an object's member, or inserts into an array before the index; "-" is behind the last element;
//                                   the path "" replaces the document
//   { op: "remove", path }          the place must exist; the path "" is an error
//   { op: "replace", path, value }  the place must exist
//   { op: "move", from, path }      remove, then add; "from" must exist, and "path" may not lie inside of "from" (the same place is fine)
//   { op: "copy", from, path }      add a copy
//   { op: "test", path, value }     an error unless the place exists and is equal to the value
//
// An index is "0" or digits without a leading zero; for "add" it may be the array's length. "-" is an error but for adding. Everything
// above the last token must exist and be an object or an array. An unknown op, a missing value (undefined) and a bad pointer are
// PatchErrors too. "__proto__" is a name like any other: neither reading nor setting it may touch a prototype.
function apply(document, operations) {
  for (const operation of operations) {
    if (operation.op === "replace" && operation.path === "") document = operation.value;
  }
  return document;
}

module.exports = { apply, equal, PatchError };
