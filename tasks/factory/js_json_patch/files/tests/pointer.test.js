const { test, assert } = require("./check");
const pointer = require("../src/pointer");

const pairs = [["", []], ["/", [""]], ["/a/0/b", ["a", "0", "b"]], ["/a~1b/m~0n/~01", ["a/b", "m~n", "~1"]], ["//", ["", ""]]];

test("parse", () => pairs.forEach(([text, tokens]) => assert.deepEqual(pointer.parse(text), tokens)));
test("format", () => pairs.forEach(([text, tokens]) => assert.equal(pointer.format(tokens), text)));
test("what is no pointer", () => {
  for (const text of ["a", "a/b", "/~", "/a~2", "/~a/b"]) assert.throws(() => pointer.parse(text), SyntaxError, text);
});
