const { test, assert } = require("./check");
const { apply, equal, PatchError } = require("../src/patch");

const doc = () => ({ a: [1, 2, 3], o: { x: null }, "s/~": "t" });
const one = (operation, document = doc()) => apply(document, [operation]);

function fails(operation, document = doc()) {
  const before = JSON.stringify(document);
  const good = { op: "test", path: "", value: document };
  assert.throws(() => apply(document, [good, operation]), (error) => error instanceof PatchError && error.index === 1,
    JSON.stringify(operation));
  assert.equal(JSON.stringify(document), before);
}

test("equal", () => {
  for (const [a, b] of [[1, 1], ["", ""], [null, null], [[], []], [{ a: 1, b: [2] }, { b: [2], a: 1 }], [0, -0]]) assert.ok(equal(a, b));
  for (const [a, b] of [[1, "1"], [null, 0], [null, {}], [[], {}], [[1], [1, 2]], [{ a: 1 }, { b: 1 }], [{ a: 1 }, { a: 1, b: 1 }],
    [{}, null], [{ toString: 1 }, { x: 1 }], [[[1]], [[2]]], [true, 1]]) assert.ok(!equal(a, b), JSON.stringify([a, b]));
});

test("add", () => {
  assert.deepEqual(one({ op: "add", path: "/o/y", value: 1 }).o, { x: null, y: 1 });
  assert.deepEqual(one({ op: "add", path: "/o/x", value: [] }).o, { x: [] });
  assert.deepEqual(one({ op: "add", path: "/a/0", value: 0 }).a, [0, 1, 2, 3]);
  assert.deepEqual(one({ op: "add", path: "/a/3", value: 4 }).a, [1, 2, 3, 4]);
  assert.deepEqual(one({ op: "add", path: "/a/-", value: 4 }).a, [1, 2, 3, 4]);
  assert.deepEqual(one({ op: "add", path: "", value: null }), null);
  assert.deepEqual(one({ op: "add", path: "/o/", value: 1 }).o, { x: null, "": 1 });
  for (const path of ["/a/4", "/a/01", "/a/-1", "/a/x", "/a/1e0", "/n/x", "/s~1~0/x", "/o/x/y", "x"]) fails({ op: "add", path, value: 1 });
  fails({ op: "add", path: "/o/y" });
});

test("remove", () => {
  assert.deepEqual(one({ op: "remove", path: "/a/1" }).a, [1, 3]);
  assert.deepEqual(one({ op: "remove", path: "/s~1~0" }), { a: [1, 2, 3], o: { x: null } });
  for (const path of ["", "/a/3", "/a/-", "/o/y", "/o/toString", "/n/x"]) fails({ op: "remove", path });
});

test("replace", () => {
  assert.deepEqual(one({ op: "replace", path: "/a/2", value: { z: 1 } }).a, [1, 2, { z: 1 }]);
  assert.deepEqual(one({ op: "replace", path: "/o/x", value: 5 }).o, { x: 5 });
  assert.equal(one({ op: "replace", path: "", value: 5 }), 5);
  for (const path of ["/a/3", "/a/-", "/o/y", "/o/x/y"]) fails({ op: "replace", path, value: 1 });
  fails({ op: "replace", path: "/o/x" });
});

test("test", () => {
  assert.deepEqual(one({ op: "test", path: "/a", value: [1, 2, 3] }), doc());
  assert.deepEqual(one({ op: "test", path: "/o/x", value: null }), doc());
  fails({ op: "test", path: "/a", value: [1, 2] });
  fails({ op: "test", path: "/o/y", value: null });
  fails({ op: "test", path: "/o/constructor", value: {} });
});

test("move", () => {
  assert.deepEqual(one({ op: "move", from: "/a/0", path: "/a/2" }).a, [2, 3, 1]);
  assert.deepEqual(one({ op: "move", from: "/o/x", path: "/a/-" }), { a: [1, 2, 3, null], o: {}, "s/~": "t" });
  assert.deepEqual(one({ op: "move", from: "/o", path: "/o" }), doc());
  assert.deepEqual(one({ op: "move", from: "/a", path: "" }), [1, 2, 3]);
  assert.deepEqual(one({ op: "move", from: "/o", path: "/ox" }), { a: [1, 2, 3], ox: { x: null }, "s/~": "t" });
  fails({ op: "move", from: "/o", path: "/o/x" });
  fails({ op: "move", from: "/n", path: "/n" });
  fails({ op: "move", from: "/a/0", path: "/a/3" });
  fails({ op: "move", from: "", path: "/a/0" });
});

test("copy", () => {
  const result = one({ op: "copy", from: "/a", path: "/o/x" });
  assert.deepEqual(result.o, { x: [1, 2, 3] });
  result.a.push(4);
  assert.equal(result.o.x.length, 3);
  assert.deepEqual(one({ op: "copy", from: "", path: "/o/x" }).o, { x: doc() });
  fails({ op: "copy", from: "/n", path: "/a" });
});

test("nothing is shared", () => {
  const document = doc();
  const value = { deep: [1] };
  const result = apply(document, [{ op: "add", path: "/v", value }, { op: "add", path: "/v/deep/-", value: 2 }]);
  result.a.push(9);
  assert.deepEqual(document, doc());
  assert.deepEqual(value, { deep: [1] });
});

test("all or nothing", () => {
  const document = doc();
  const list = [{ op: "remove", path: "/a/0" }, { op: "add", path: "/o/y", value: 1 }, { op: "nope", path: "/a" }];
  assert.throws(() => apply(document, list), (error) => error instanceof PatchError && error.index === 2);
  assert.deepEqual(document, doc());
});

test("__proto__ is a name", () => {
  const result = apply(JSON.parse("{}"), [{ op: "add", path: "/__proto__", value: { admin: true } }]);
  assert.deepEqual(Object.keys(result), ["__proto__"]);
  assert.equal(result.admin, undefined);
  assert.equal(Object.getPrototypeOf(result), Object.prototype);
  fails({ op: "add", path: "/__proto__/polluted", value: 1 }, {});
  fails({ op: "add", path: "/constructor/prototype/polluted", value: 1 }, {});
  assert.equal({}.polluted, undefined);
});
