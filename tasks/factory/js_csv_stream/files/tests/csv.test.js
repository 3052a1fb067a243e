const { test, assert } = require("./check");
const { CsvParser, CsvError } = require("../src/csv");

function parse(chunks, options) {
  const parser = new CsvParser(options);
  const rows = [];
  for (const chunk of chunks) rows.push(...parser.push(chunk));
  rows.push(...parser.end());
  return rows;
}

// Each text must give the same rows whole, in two pieces cut anywhere, and character by character.
function everyWay(text, rows, options) {
  assert.deepEqual(parse([text], options), rows);
  for (let i = 0; i <= text.length; i++) assert.deepEqual(parse([text.slice(0, i), text.slice(i)], options), rows);
  assert.deepEqual(parse([...text], options), rows);
}

test("plain rows", () => everyWay("a,b\nc,\n,d\n", [["a", "b"], ["c", ""], ["", "d"]]));
test("no end of the last row", () => everyWay("a,b\nc", [["a", "b"], ["c"]]));
test("a separator at the very end", () => everyWay("a,", [["a", ""]]));
test("nothing", () => everyWay("", []));
test("crlf", () => everyWay("a,b\r\nc\r\n", [["a", "b"], ["c"]]));
test("a lone cr is a character", () => everyWay("a\rb,\r\rc\n\r", [["a\rb", "\r\rc"], ["\r"]]));
test("quotes", () => everyWay('"a,b","c\nd\r\ne",""\n"x""y"""', [["a,b", "c\nd\r\ne", ""], ['x"y"']]));
test("quotes inside of plain fields", () => everyWay('a"b,c""\n', [['a"b', 'c""']]));
test("a quoted empty row is a row", () => everyWay('""\n\n', [[""]], { skipEmpty: true }));
test("empty lines", () => everyWay("a\n\n\r\nb\n", [["a"], [""], [""], ["b"]]));
test("empty lines are skipped", () => everyWay("\na\n\n\r\nb\n,\n", [["a"], ["b"], ["", ""]], { skipEmpty: true }));
test("another separator", () => everyWay('a,1;"b;2"\n', [["a,1", "b;2"]], { separator: ";" }));
test("a byte order mark", () => everyWay('\ufeff"a"\n\ufeffb', [["a"], ["\ufeffb"]]));
test("characters outside of the BMP", () => assert.deepEqual(parse(["\u{1f600},", "\u{1f601}\n"]), [["\u{1f600}", "\u{1f601}"]]));

test("rows come as soon as they are complete", () => {
  const parser = new CsvParser();
  assert.deepEqual(parser.push("a,b"), []);
  assert.deepEqual(parser.push("\nc,d\ne"), [["a", "b"], ["c", "d"]]);
  assert.deepEqual(parser.end(), [["e"]]);
  assert.throws(() => parser.push("x"), /parser has ended/);
  assert.throws(() => parser.end(), /parser has ended/);
});

function failsAt(chunks, line) {
  assert.throws(() => parse(chunks), (error) => error instanceof CsvError && error.line === line);
}

test("text after a closing quote", () => {
  failsAt(['a\n"b\nc"d\n'], 3);
  failsAt(['"a"', "b"], 1);
  failsAt(['"a"\rb'], 1);
  failsAt(['x\n"a"\r'], 2);
  failsAt(['"a" ,b'], 1);
});

test("a field that is never closed", () => {
  failsAt(['a\n"b\nc\n'], 2);
  failsAt(['"a\n""\n\n'], 1);
});

test("an error stays", () => {
  const parser = new CsvParser();
  let first;
  try { parser.push('"a"b'); } catch (error) { first = error; }
  assert.ok(first instanceof CsvError);
  assert.throws(() => parser.push("x"), (error) => error === first);
  assert.throws(() => parser.end(), (error) => error === first);
});
