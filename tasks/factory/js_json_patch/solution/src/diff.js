"use strict";

const pointer = require("./pointer");
const { equal } = require("./patch");

// diff(a, b) gives operations (add, remove, replace) that make b of a. Places that are equal are not named. Of two objects the members
// are compared one by one; of two arrays, what they have in common at the beginning and then at the end stays, of the rest as many
// elements as both have are compared one by one, and what is left over is removed or added. So changing, inserting or removing one
// element of an array takes one operation. Anything else that differs is one "replace". Values in operations are copies.
function diff(a, b) {
  const out = [];
  compare(a, b, [], out);
  return out;
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function compare(a, b, tokens, out) {
  if (equal(a, b)) return;
  if (isObject(a) && isObject(b)) compareObjects(a, b, tokens, out);
  else if (Array.isArray(a) && Array.isArray(b)) compareArrays(a, b, tokens, out);
  else out.push({ op: "replace", path: pointer.format(tokens), value: structuredClone(b) });
}

function compareObjects(a, b, tokens, out) {
  for (const key of Object.keys(a)) {
    if (!Object.hasOwn(b, key)) out.push({ op: "remove", path: pointer.format([...tokens, key]) });
    else compare(a[key], b[key], [...tokens, key], out);
  }
  for (const key of Object.keys(b)) {
    if (!Object.hasOwn(a, key)) out.push({ op: "add", path: pointer.format([...tokens, key]), value: structuredClone(b[key]) });
  }
}

function compareArrays(a, b, tokens, out) {
  const shorter = Math.min(a.length, b.length);
  let head = 0;
  while (head < shorter && equal(a[head], b[head])) head += 1;
  let tail = 0;
  while (tail < shorter - head && equal(a[a.length - 1 - tail], b[b.length - 1 - tail])) tail += 1;
  const common = shorter - head - tail;
  for (let i = head; i < head + common; i++) compare(a[i], b[i], [...tokens, String(i)], out);
  const at = pointer.format([...tokens, String(head + common)]);
  for (let i = head + common; i < a.length - tail; i++) out.push({ op: "remove", path: at });
  for (let i = head + common; i < b.length - tail; i++) {
    out.push({ op: "add", path: pointer.format([...tokens, String(i)]), value: structuredClone(b[i]) });
  }
}

module.exports = { diff };
