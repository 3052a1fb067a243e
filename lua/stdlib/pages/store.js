// What the page was given: facts about it, a row for each trajectory, what each said.
const page = JSON.parse(document.getElementById("page").textContent);
const rows = { n: 0 };
const NUMBERS = [
  "attempt",
  "reward",
  "steps",
  "tools",
  "tokens",
  "out",
  "dur",
  "started",
  "finished",
  "queued",
  "boot",
  "seed",
  "think",
  "act",
  "score",
  "version",
  "mismatch",
  "tamper",
  "drift",
  "rl",
];
const WORDS = ["id", "run", "task", "model", "group", "status", "stop", "class", "error"];
for (const name of [...NUMBERS, ...WORDS, "hay", "urgency", "key"]) rows[name] = [];
const byKey = new Map();

function urgencyOf(i) {
  if (rows.reward[i] === null) return 0;
  if (rows.mismatch[i] || rows.tamper[i]) return 1;
  return rows.status[i] === "success" ? 3 : 2;
}

// The name of a row in a link: its id, and something more where that is not enough.
function keyOf(i) {
  const id = rows.id[i],
    attempt = rows.attempt[i];
  let key = id;
  if (byKey.has(key)) key = `${id}@${rows.run[i]}`;
  if (byKey.has(key)) key = `${id}@${rows.run[i]}+${attempt || 0}`;
  for (let n = 2; byKey.has(key); n++) key = `${id}~${n}`;
  return key;
}

// Adds rows, but not the first `skip` of them, which are there already.
function addRows(columns, skip = 0) {
  const from = rows.n;
  for (const name of [...NUMBERS, ...WORDS]) {
    const column = columns[name],
      into = rows[name];
    for (let i = skip; i < columns.n; i++) {
      const value = !column ? null : column.d ? (column.v[i] < 0 ? null : column.d[column.v[i]]) : column[i];
      into.push(value);
    }
  }
  rows.n += columns.n - skip;
  for (let i = from; i < rows.n; i++) {
    rows.hay.push(
      [rows.id[i], rows.task[i], rows.model[i], rows.status[i], rows.stop[i], rows.class[i], rows.error[i]]
        .filter(given)
        .join(" ")
        .toLowerCase(),
    );
    rows.urgency.push(urgencyOf(i));
    const key = keyOf(i);
    rows.key.push(key);
    byKey.set(key, i);
  }
}

const columns = document.getElementById("rows");
if (columns) addRows(JSON.parse(columns.textContent));

const all = () => Array.from({ length: rows.n }, (_, i) => i);
const linkTo = (i) => "#/t/" + encodeURIComponent(rows.key[i]);
const listLink = (query, sort) => {
  const parts = new URLSearchParams();
  if (query) parts.set("q", query);
  if (sort) parts.set("sort", sort);
  const text = parts.toString();
  return "#/list" + (text ? "?" + text : "");
};
const quoted = (text) => (/[\s"]/.test(text) ? `"${text.replace(/"/g, "")}"` : text);

// Of a place in a run that was tried again, the last attempt counts; places are told by group, task and member.
const parsed = new Promise((done) => {
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", done, { once: true });
  else done();
});

async function ask(path) {
  const answer = await fetch(path, { headers: { accept: "application/json" } });
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
  return answer.json();
}

const bodies = new Map();

async function bodyOf(i) {
  if (bodies.has(i)) return bodies.get(i);
  let body = null;
  if (page.live) {
    body = await ask(`api/body?row=${i}`);
  } else {
    let element = document.getElementById("b" + i);
    if (!element) {
      await parsed;
      element = document.getElementById("b" + i);
    }
    if (element) body = JSON.parse(element.textContent);
  }
  if (bodies.size > 16) bodies.delete(bodies.keys().next().value);
  bodies.set(i, body);
  return body;
}
