// The table of all rows: filtered, sorted, and drawn only where it is looked at.
const FIELDS = { tasks: "task", duration: "dur", seconds: "dur", calls: "tools" };
const COMPARE = {
  "<": (a, b) => a < b,
  ">": (a, b) => a > b,
  "<=": (a, b) => a <= b,
  ">=": (a, b) => a >= b,
  "=": (a, b) => a === b,
};
const FLAGS = {
  mismatch: (i) => rows.mismatch[i],
  tamper: (i) => rows.tamper[i],
  drift: (i) => rows.drift[i],
  retry: (i) => rows.attempt[i] > 0,
  unscored: (i) => rows.reward[i] === null,
  rl: (i) => rows.rl[i],
};

// One word of a filter as a test, or nothing if it says nothing yet.
function testOf(word) {
  const negated = word.startsWith("-") && word.length > 1;
  if (negated) word = word.slice(1);
  let test = null;
  const compared = word.match(/^(\w+)(<=|>=|<|>|=)(-?[\d.]+(?:e[-+]?\d+)?)$/i),
    named = word.match(/^(\w+):(.*)$/s);
  if (compared && NUMBERS.includes(FIELDS[compared[1]] || compared[1])) {
    const column = rows[FIELDS[compared[1]] || compared[1]],
      wanted = Number(compared[3]),
      compare = COMPARE[compared[2]];
    test = (i) => given(column[i]) && compare(column[i], wanted);
  } else if (named && named[1] === "flag") {
    test = FLAGS[named[2]] || null;
  } else if (named && WORDS.includes(FIELDS[named[1]] || named[1])) {
    if (named[2] === "") return null;
    const column = rows[FIELDS[named[1]] || named[1]],
      wanted = named[2].toLowerCase();
    const exact = wanted.endsWith("$") ? wanted.slice(0, -1) : null;
    test = (i) => {
      const value = String(column[i] ?? "none").toLowerCase();
      return exact !== null ? value === exact : value.includes(wanted);
    };
  } else if (!compared) {
    const wanted = word.toLowerCase();
    test = (i) => rows.hay[i].includes(wanted);
  }
  return test && negated ? (i) => !test(i) : test;
}

function wordsOf(query) {
  return Array.from(query.matchAll(/((?:[^\s"]|"[^"]*"?)+)/g), (m) => m[1].replace(/"/g, ""));
}

function filtered(query, order) {
  const tests = wordsOf(query).map(testOf).filter(Boolean);
  return order.filter((i) => tests.every((test) => test(i)));
}

const ORDER = {
  urgency: (a, b) =>
    rows.urgency[a] - rows.urgency[b] || statusOf(rows.status[a]).order - statusOf(rows.status[b]).order,
  status: (a, b) => statusOf(rows.status[a]).order - statusOf(rows.status[b]).order,
};

function sorted(list, sort) {
  const down = sort.startsWith("-"),
    name = down ? sort.slice(1) : sort,
    column = rows[name];
  const compare =
    ORDER[name] ||
    ((a, b) => {
      const x = column[a],
        y = column[b];
      if (x === null || y === null) return (x === null) - (y === null) || 0;
      return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
    });
  const turned = down && ORDER[name] ? (a, b) => -compare(a, b) : compare;
  return list.sort((a, b) => turned(a, b) || a - b);
}

const list = { query: "", sort: "urgency", order: [], at: 0, scroll: 0 };
const everything = { sort: null, n: 0, order: [] };

// All rows are sorted once for each order, so that a keystroke of the filter only filters.
function reorder() {
  if (everything.sort !== list.sort || everything.n !== rows.n) {
    Object.assign(everything, { sort: list.sort, n: rows.n, order: sorted(all(), list.sort) });
  }
  list.order = filtered(list.query, everything.order);
  list.at = Math.max(0, Math.min(list.at, list.order.length - 1));
}

const COLUMNS = [
  ["status", "Status"],
  ["task", "Task"],
  ["id", "Rollout"],
  ["model", "Model"],
  ["reward", "Reward", "num"],
  ["steps", "Steps", "num"],
  ["tokens", "Tokens", "num"],
  ["dur", "Time", "num"],
  ["stop", "Ended by"],
];

function flagsOf(i) {
  const out = [];
  if (rows.mismatch[i])
    out.push(
      el("span", { class: "flag bad", title: "its own check passed, the official verifier did not" }, "mismatch"),
    );
  if (rows.tamper[i])
    out.push(el("span", { class: "flag bad", title: "it left something for the verifier to trip over" }, "tamper"));
  if (rows.drift[i])
    out.push(
      el(
        "span",
        { class: "flag", title: "calls whose prompt is not what was sampled before" },
        `drift ${rows.drift[i]}`,
      ),
    );
  if (rows.attempt[i] > 0)
    out.push(el("span", { class: "flag", title: "made again" }, `attempt ${rows.attempt[i] + 1}`));
  return out;
}

function rewardBar(reward) {
  if (reward === null) return el("span", { class: "dim" }, none);
  const bar = el("i", { class: "rewardbar", "aria-hidden": "true" }, el("b", {}));
  bar.firstChild.style.width = Math.max(0, Math.min(1, reward)) * 100 + "%";
  return [el("span", {}, number(reward)), bar];
}

function rowElement(i, position, many) {
  const cell = (name, ...kids) => el("div", { role: "cell", class: "td c-" + name }, kids);
  const why = rows.class[i] && rows.class[i] !== "policy" ? `${rows.stop[i]} · ${rows.class[i]}` : rows.stop[i];
  return el(
    "div",
    { role: "row", class: "tr", "aria-rowindex": position + 2, "data-at": position },
    cell("status", badge(rows.status[i])),
    cell("task", el("a", { href: linkTo(i), class: "rowlink" }, shown(rows.task[i]))),
    cell("id", shown(rows.id[i])),
    many ? cell("model", shown(rows.model[i] ?? none)) : null,
    cell("reward", rewardBar(rows.reward[i])),
    cell("steps", count(rows.steps[i])),
    cell("tokens", short(rows.tokens[i])),
    cell("dur", duration(rows.dur[i])),
    cell(
      "stop",
      flagsOf(i),
      el("span", { title: rows.error[i] || "" }, shown(rows.error[i] ? `${why}: ${rows.error[i]}` : why)),
    ),
  );
}

function facets() {
  const counts = new Map();
  for (let i = 0; i < rows.n; i++) counts.set(rows.status[i], (counts.get(rows.status[i]) || 0) + 1);
  const chips = [...counts]
    .sort((a, b) => statusOf(a[0]).order - statusOf(b[0]).order)
    .map(([name, n]) => ({ word: "status:" + name, label: statusOf(name).word, n, status: name }));
  for (const [name, label] of [
    ["mismatch", "mismatch"],
    ["tamper", "tampering"],
    ["unscored", "unscored"],
    ["drift", "drift"],
    ["retry", "made again"],
  ]) {
    let n = 0;
    for (let i = 0; i < rows.n; i++) if (FLAGS[name](i)) n++;
    if (n) chips.push({ word: "flag:" + name, label, n });
  }
  return chips;
}

function listView() {
  const many = new Set(rows.model).size > 1,
    shownColumns = COLUMNS.filter(([name]) => many || name !== "model");
  const input = el("input", {
    type: "search",
    id: "filter",
    value: list.query,
    placeholder: "Filter: words, status:failed, reward<0.5, flag:mismatch",
    "aria-label": "Filter trajectories",
    autocomplete: "off",
    spellcheck: "false",
  });
  const total = el("p", { class: "total", role: "status" }),
    spacer = el("div", { class: "spacer", role: "presentation" }),
    window_ = el("div", { class: "rowsat", role: "rowgroup" });
  const heads = shownColumns.map(([name, label, kind]) =>
    el(
      "div",
      { role: "columnheader", class: `th c-${name} ${kind || ""}`, "data-sort": name },
      el(
        "button",
        { type: "button", onclick: () => resort(name) },
        label,
        el("span", { class: "arrow", "aria-hidden": "true" }),
      ),
    ),
  );
  const body = el("div", { class: "tbody", role: "presentation" }, spacer, window_);
  const table = el(
    "div",
    { class: many ? "table many" : "table", role: "table", "aria-label": "Trajectories" },
    el(
      "div",
      { role: "rowgroup", class: "thead" },
      el("div", { role: "row", class: "tr head", "aria-rowindex": 1 }, heads),
    ),
    body,
  );
  const chips = el("div", { class: "chips", role: "group", "aria-label": "Quick filters" });
  const narrow = matchMedia("(max-width: 760px)");
  const height = () => (narrow.matches ? 76 : 38);
  let from = -1,
    to = -1;

  function draw(force, everything) {
    const h = height(),
      n = list.order.length,
      box = body.getBoundingClientRect(),
      room = innerHeight;
    spacer.style.height = n * h + "px";
    const first = everything ? 0 : Math.max(0, Math.floor(-box.top / h) - 8),
      last = everything ? Math.min(n, 2000) : Math.min(n, Math.ceil((room - box.top) / h) + 8);
    if (!force && first === from && last === to) return;
    const focused = document.activeElement?.closest?.(".tr[data-at]");
    from = first;
    to = last;
    window_.style.transform = `translateY(${first * h}px)`;
    window_.replaceChildren(
      ...list.order.slice(first, Math.max(first, last)).map((i, k) => rowElement(i, first + k, many)),
    );
    if (focused) window_.querySelector(`[data-at="${focused.dataset.at}"] .rowlink`)?.focus({ preventScroll: true });
  }

  function refresh() {
    reorder();
    table.setAttribute("aria-rowcount", list.order.length + 1);
    heads.forEach((head) => {
      const name = head.dataset.sort,
        on = list.sort.replace(/^-/, "") === name;
      if (on) head.setAttribute("aria-sort", list.sort.startsWith("-") ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
      head.querySelector(".arrow").textContent = on ? (list.sort.startsWith("-") ? "↓" : "↑") : "";
    });
    total.textContent =
      list.order.length === rows.n
        ? plural(rows.n, "trajectory").replace("trajectorys", "trajectories")
        : `${count(list.order.length)} of ${count(rows.n)} trajectories`;
    const on = new Set(wordsOf(list.query));
    chips
      .querySelectorAll("button")
      .forEach((chip) => chip.setAttribute("aria-pressed", String(on.has(chip.dataset.word))));
    empty.hidden = list.order.length > 0;
    draw(true);
  }

  function remember() {
    history.replaceState(null, "", listLink(list.query, list.sort === "urgency" ? "" : list.sort));
  }

  function resort(name) {
    const falling = COLUMNS.find((c) => c[0] === name)[2] === "num";
    const [one, two] = falling ? ["-" + name, name] : [name, "-" + name];
    list.sort = list.sort === one ? two : list.sort === two ? "urgency" : one;
    remember();
    refresh();
  }

  function toggle(word) {
    const words = wordsOf(list.query);
    list.query = (
      words.includes(word)
        ? words.filter((w) => w !== word)
        : [...words.filter((w) => !(word.startsWith("status:") && w.startsWith("status:"))), word]
    )
      .map(quoted)
      .join(" ");
    input.value = list.query;
    remember();
    refresh();
  }

  function drawChips() {
    chips.replaceChildren(
      ...facets().map((f) =>
        el(
          "button",
          {
            type: "button",
            class: "chip" + (f.status ? " s-" + f.status : ""),
            "data-word": f.word,
            "aria-pressed": "false",
            onclick: () => toggle(f.word),
          },
          f.status ? el("span", { class: "mark", "aria-hidden": "true" }, statusOf(f.status).mark) : null,
          shown(f.label),
          el("span", { class: "n" }, count(f.n)),
        ),
      ),
    );
  }

  const empty = el("p", { class: "empty", hidden: true }, "Nothing matches this filter.");
  input.addEventListener("input", () => {
    list.query = input.value;
    list.at = 0;
    remember();
    refresh();
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      move(0, true);
    }
  });

  // Puts the focus on the row at a place, which may have to be drawn first.
  function move(to_, absolute) {
    if (list.order.length === 0) return;
    list.at = absolute
      ? Math.max(0, Math.min(list.order.length - 1, to_))
      : Math.max(0, Math.min(list.order.length - 1, list.at + to_));
    const h = height(),
      top = body.getBoundingClientRect().top + list.at * h;
    const sticky = document.getElementById("bar").offsetHeight + 44;
    if (top < sticky) scrollBy(0, top - sticky);
    else if (top + h > innerHeight - 8) scrollBy(0, top + h - innerHeight + 8);
    draw(false);
    window_.querySelector(`[data-at="${list.at}"] .rowlink`)?.focus({ preventScroll: true });
  }

  const onScroll = () => draw(false),
    onSize = () => draw(true);
  const beforePrint = () => draw(true, true),
    afterPrint = () => draw(true);
  drawChips();
  return {
    node: el(
      "div",
      { class: "listview" },
      el("h1", { class: "sr" }, "Trajectories"),
      el("div", { class: "toolbar" }, input, total),
      chips,
      table,
      empty,
    ),
    start() {
      addEventListener("scroll", onScroll, { passive: true });
      addEventListener("resize", onSize);
      addEventListener("beforeprint", beforePrint);
      addEventListener("afterprint", afterPrint);
      refresh();
      scrollTo(0, list.scroll);
      draw(true);
    },
    stop() {
      list.scroll = scrollY;
      removeEventListener("scroll", onScroll);
      removeEventListener("resize", onSize);
      removeEventListener("beforeprint", beforePrint);
      removeEventListener("afterprint", afterPrint);
    },
    refresh() {
      drawChips();
      refresh();
    },
    keys: {
      j: () => move(document.activeElement?.closest?.(".tr[data-at]") ? 1 : 0),
      k: () => move(-1),
      ArrowDown: () => move(document.activeElement?.closest?.(".tr[data-at]") ? 1 : 0),
      ArrowUp: () => move(-1),
      Home: () => move(0, true),
      End: () => move(Infinity, true),
      PageDown: () => move(12),
      PageUp: () => move(-12),
      "/": () => {
        input.focus();
        input.select();
      },
      Escape: () => {
        list.query = input.value = "";
        remember();
        refresh();
      },
    },
  };
}
