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
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && equal(a[key], b[key]));
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
  const root = { document: structuredClone(document) };
  operations.forEach((operation, index) => {
    try {
      step(root, operation);
    } catch (error) {
      throw new PatchError(error.message, index);
    }
  });
  return root.document;
}

function indexOf(token, limit) {
  if (!/^(0|[1-9][0-9]*)$/.test(token) || Number(token) > limit) throw new Error(`no such index: ${token}`);
  return Number(token);
}

function child(value, token) {
  if (Array.isArray(value)) return value[indexOf(token, value.length - 1)];
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, token)) throw new Error(`no such place: ${token}`);
  return value[token];
}

function get(root, tokens) {
  return tokens.reduce(child, root.document);
}

function setMember(object, name, value) {
  Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

function add(root, tokens, value) {
  if (tokens.length === 0) {
    root.document = value;
    return;
  }
  const parent = get(root, tokens.slice(0, -1));
  const last = tokens[tokens.length - 1];
  if (Array.isArray(parent)) {
    parent.splice(last === "-" ? parent.length : indexOf(last, parent.length), 0, value);
  } else if (typeof parent === "object" && parent !== null) {
    setMember(parent, last, value);
  } else {
    throw new Error("neither an object nor an array");
  }
}

function remove(root, tokens) {
  if (tokens.length === 0) throw new Error("the whole document cannot be removed");
  const parent = get(root, tokens.slice(0, -1));
  const last = tokens[tokens.length - 1];
  child(parent, last);
  if (Array.isArray(parent)) parent.splice(Number(last), 1);
  else delete parent[last];
}

function replace(root, tokens, value) {
  if (tokens.length === 0) {
    root.document = value;
    return;
  }
  const parent = get(root, tokens.slice(0, -1));
  const last = tokens[tokens.length - 1];
  child(parent, last);
  if (Array.isArray(parent)) parent[Number(last)] = value;
  else setMember(parent, last, value);
}

function valueOf(operation) {
  if (operation.value === undefined) throw new Error("value is missing");
  return structuredClone(operation.value);
}

function step(root, operation) {
  const path = pointer.parse(operation.path);
  if (operation.op === "add") {
    add(root, path, valueOf(operation));
  } else if (operation.op === "remove") {
    remove(root, path);
  } else if (operation.op === "replace") {
    replace(root, path, valueOf(operation));
  } else if (operation.op === "test") {
    if (!equal(get(root, path), valueOf(operation))) throw new Error("not equal");
  } else if (operation.op === "copy") {
    add(root, path, structuredClone(get(root, pointer.parse(operation.from))));
  } else if (operation.op === "move") {
    const from = pointer.parse(operation.from);
    const value = get(root, from);
    if (operation.path === operation.from) return;
    if (operation.path.startsWith(`${operation.from}/`)) throw new Error("moved into itself");
    remove(root, from);
    add(root, path, value);
  } else {
    throw new Error(`no such operation: ${operation.op}`);
  }
}

module.exports = { apply, equal, PatchError };
