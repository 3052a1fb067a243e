const { test, assert } = require("./check");
const { apply } = require("../src/patch");
const { diff } = require("../src/diff");

test("nothing to do", () => {
  assert.deepEqual(diff({ a: [1, { b: null }] }, { a: [1, { b: null }] }), []);
  assert.deepEqual(diff({ a: 1, b: 2 }, { b: 2, a: 1 }), []);
});

test("small changes are one operation", () => {
  const list = [1, 2, 3, 4];
  assert.deepEqual(diff({ a: 1, b: 2 }, { a: 1, b: 3 }), [{ op: "replace", path: "/b", value: 3 }]);
  assert.deepEqual(diff({ a: 1 }, { a: 1, "x/y": null }), [{ op: "add", path: "/x~1y", value: null }]);
  assert.deepEqual(diff({ a: 1, b: 2 }, { b: 2 }), [{ op: "remove", path: "/a" }]);
  assert.deepEqual(diff(list, [1, 9, 3, 4]), [{ op: "replace", path: "/1", value: 9 }]);
  assert.deepEqual(diff(list, [1, 3, 4]), [{ op: "remove", path: "/1" }]);
  assert.deepEqual(diff(list, [1, 2, 9, 3, 4]), [{ op: "add", path: "/2", value: 9 }]);
  assert.deepEqual(diff(list, [1, 2, 3, 4, 5]), [{ op: "add", path: "/4", value: 5 }]);
  assert.deepEqual(diff([1, 1], [1]), [{ op: "remove", path: "/1" }]);
  assert.deepEqual(diff([1, 1], [1, 1, 1]), [{ op: "add", path: "/2", value: 1 }]);
  assert.deepEqual(diff({ a: [{ n: 1, m: 2 }] }, { a: [{ n: 1, m: 3 }] }), [{ op: "replace", path: "/a/0/m", value: 3 }]);
});

test("other kinds are replaced whole", () => {
  for (const [a, b] of [[1, "1"], [[], {}], [{}, null], [null, [1]], ["a", { a: 1 }]]) {
    assert.deepEqual(diff(a, b), [{ op: "replace", path: "", value: b }]);
  }
});

test("what is left over in arrays", () => {
  assert.deepEqual(diff([0, 1, 2, 3, 9], [0, 5, 9]), [
    { op: "replace", path: "/1", value: 5 }, { op: "remove", path: "/2" }, { op: "remove", path: "/2" }]);
  assert.deepEqual(diff([0, 5, 9], [0, 1, 2, 3, 9]), [
    { op: "replace", path: "/1", value: 1 }, { op: "add", path: "/2", value: 2 }, { op: "add", path: "/3", value: 3 }]);
});

// Documents from a fixed sequence of numbers.
function source(seed) {
  let x = seed;
  const next = (n) => {
    x = (Math.imul(x, 1103515245) + 12345) >>> 0;
    return (x >>> 8) % n;
  };
  const value = (depth) => {
    const kind = next(depth > 0 ? 6 : 4);
    if (kind === 4) return Array.from({ length: next(5) }, () => value(depth - 1));
    if (kind === 5) return Object.fromEntries(Array.from({ length: next(4) }, () => ["a/~b"[next(4)] + next(3), value(depth - 1)]));
    return [null, next(3), `s${next(3)}`, next(2) === 1][kind];
  };
  return value;
}

test("applying a diff gives the other document", () => {
  for (let seed = 1; seed <= 400; seed++) {
    const value = source(seed);
    const a = [value(3), value(3)];
    const b = [value(3), a[1], value(2)];
    assert.deepEqual(apply(a, diff(a, b)), b);
    assert.deepEqual(apply(b, diff(b, a)), a);
  }
});

test("values are copies", () => {
  const b = { x: [1] };
  const [operation] = diff({}, b);
  operation.value.push(2);
  assert.deepEqual(b, { x: [1] });
});
