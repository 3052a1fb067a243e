const { test, assert } = require("./check");
const { toObjects } = require("../src/table");
const { CsvError } = require("../src/csv");

const plain = (objects) => objects.map((object) => ({ ...object }));
const failsAt = (line, rows, types) =>
  assert.throws(() => toObjects(rows, types), (error) => error instanceof CsvError && error.line === line);

test("objects", () => {
  const types = { n: "number", ok: "boolean", other: "number" };
  const rows = [["n", "ok", "s"], ["1.5", "true", ""], ["-2e3", "false", "x"], ["", "", "12"]];
  assert.deepEqual(plain(toObjects(rows, types)), [
    { n: 1.5, ok: true, s: "" }, { n: -2000, ok: false, s: "x" }, { n: null, ok: null, s: "12" },
  ]);
});

test("nothing and names only", () => {
  assert.deepEqual(toObjects([]), []);
  assert.deepEqual(toObjects([["a"]]), []);
});

test("columns with the names of Object.prototype", () => {
  const [object] = toObjects([["__proto__", "constructor", "toString"], ["1", "2", "3"]]);
  assert.equal(Object.getPrototypeOf(object), null);
  assert.deepEqual(Object.entries(object), [["__proto__", "1"], ["constructor", "2"], ["toString", "3"]]);
});

test("errors name the row", () => {
  failsAt(3, [["a", "b"], ["1", "2"], ["1"]]);
  failsAt(2, [["a"], ["1", "2"]]);
  failsAt(1, [["a", "b", "a"]]);
  failsAt(1, [["a", ""]]);
  failsAt(2, [["a"], ["x"]], { a: "number" });
  failsAt(2, [["a"], [" "]], { a: "number" });
  failsAt(3, [["a"], ["1"], ["Infinity"]], { a: "number" });
  failsAt(2, [["a"], ["yes"]], { a: "boolean" });
});
