// What the result of a benchmark adds: whether to believe it, who stands where, what fails alike, what to look at, and
// what became of it since another result.
const told = (value) => (given(value) ? value : null);

function significance(p) {
  if (!given(p)) return none;
  return p < 0.001 ? "p < 0.001" : "p = " + number(p, 2);
}

function scrolled(label, table) {
  return el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": label }, table);
}

function tableOf(heads, lines, numeric) {
  return el(
    "table",
    { class: "board" },
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        heads.map((h, i) => el("th", { scope: "col", class: numeric.includes(i) ? "num" : null }, h)),
      ),
    ),
    el(
      "tbody",
      {},
      lines.map((line) =>
        el(
          "tr",
          {},
          line.map((cell, i) =>
            el(
              i === 0 ? "th" : "td",
              { scope: i === 0 ? "row" : null, class: numeric.includes(i) ? "num" : null },
              cell instanceof Node ? cell : shown(cell ?? none),
            ),
          ),
        ),
      ),
    ),
  );
}

// A difference with its interval, around no difference.
function difference(e) {
  const at = (x) => 100 + Math.max(-1, Math.min(1, x)) * 100;
  const words = `${number(e.mean, 3)}, ${given(e.low) ? `${number(e.low, 3)} to ${number(e.high, 3)}` : "no interval"}`;
  return vec(
    "svg",
    { viewBox: "0 0 200 16", class: "interval", role: "img", "aria-label": words },
    vec("line", { x1: 0, x2: 200, y1: 8, y2: 8, class: "grid" }),
    vec("line", { x1: 100, x2: 100, y1: 0, y2: 16, class: "axis" }),
    given(e.low)
      ? vec("line", { x1: at(e.low), x2: Math.max(at(e.high), at(e.low) + 1), y1: 8, y2: 8, class: "whisker" })
      : null,
    given(e.mean) ? vec("circle", { cx: at(e.mean), cy: 8, r: 4.5, class: "dot c0" }) : null,
  );
}

const points = (x) => (given(x) ? (x > 0 ? "+" : x < 0 ? "−" : "") + (Math.abs(x) * 100).toFixed(1) + " pts" : none);

function compareCard(compare) {
  const lines = compare.deltas.map((d) => [
    el("strong", {}, shown(d.model_id_b ? `${d.model_id} → ${d.model_id_b}` : d.model_id)),
    `${percent(told(d.success_rate_a))} → ${percent(told(d.success_rate_b))}`,
    points(told(d.success.mean)),
    difference(d.success),
    significance(told(d.success.permutation.p)),
    `${d.success.sign.better} better, ${d.success.sign.worse} worse, ${d.success.sign.same} same`,
    given(told(d.success.d_z)) ? number(d.success.d_z, 2) : none,
  ]);
  const explain = compare.deltas
    .filter((d) => d.explained_by.length)
    .map((d) =>
      el(
        "details",
        { open: compare.deltas.length === 1 },
        el("summary", {}, shown(`Tasks that make the difference: ${d.model_id}`)),
        scrolled(
          "tasks",
          tableOf(
            ["Task", "Before", "After", "Difference", "Share"],
            d.explained_by
              .slice(0, 20)
              .map((t) => [
                el("a", { href: listLink("task:" + quoted(t.task_id) + "$") }, shown(t.task_id)),
                percent(t.a),
                percent(t.b),
                points(t.delta),
                percent(t.share),
              ]),
            [1, 2, 3, 4],
          ),
        ),
      ),
    );
  return el(
    "section",
    { class: "card wide", "aria-labelledby": "compare" },
    el("h2", { id: "compare" }, "Compared with ", shown(compare.with)),
    compare.warnings.length
      ? compare.warnings.map((w) => el("p", { class: "banner warn", role: "note" }, shown(w)))
      : null,
    scrolled(
      "comparison",
      tableOf(["Model", "Solved", "Difference", "−100 … +100", "Permutation", "Tasks", "Effect"], lines, [1, 2, 6]),
    ),
    el("p", { class: "dim" }, "Differences are paired by task; the interval draws tasks anew."),
    explain,
  );
}

function benchBoard(bench) {
  const of = new Map(bench.models.map((m) => [m.model_id, m]));
  const lines = bench.leaderboard.map((row) => {
    const m = of.get(row.model_id) || {},
      s = m.success || {},
      success = { value: told(s.estimate) ?? told(row.success_rate), low: told(s.low), high: told(s.high) };
    const next = told(row.versus_next);
    return [
      el("a", { href: listLink("model:" + quoted(String(row.model_id)) + "$") }, shown(row.model_id)),
      el("strong", {}, percent(success.value)),
      interval(success, 0, 1),
      spread(success, percent),
      number(told(row.mean_reward), 3),
      (m.pass_at || [])
        .slice(1)
        .map((e) => `@${e.k} ${percent(told(e.estimate))}`)
        .join("  ") || none,
      count(row.scored ?? row.n),
      row.unscored || row.missing
        ? el("span", { class: "flag bad" }, `${row.unscored || 0} unscored, ${row.missing || 0} missing`)
        : none,
      row.flagged ? el("span", { class: "flag bad" }, `${row.flagged} flagged`) : none,
      given(told(row.cost)) ? "$" + number(row.cost, 3) : none,
      next ? significance(next.p) : none,
    ];
  });
  return el(
    "section",
    { class: "card wide", "aria-labelledby": "board" },
    el("h2", { id: "board" }, "Leaderboard"),
    scrolled(
      "Leaderboard, scrolls",
      tableOf(
        [
          "Student",
          "Solved",
          "0 – 100 %",
          "95 % interval",
          "Mean reward",
          "pass",
          "Scored",
          "Infrastructure",
          "Suspicious",
          "Cost",
          "Against the next",
        ],
        lines,
        [1, 3, 4, 6, 9],
      ),
    ),
    el(
      "p",
      { class: "dim" },
      "Attempts that the infrastructure spoilt are in no rate. “Against the next”: how likely chance alone would put these two so far apart.",
    ),
  );
}

function failureCard(failures) {
  if (!failures || failures.length === 0) return null;
  return el(
    "section",
    { class: "card wide", "aria-labelledby": "alike" },
    el("h2", { id: "alike" }, "What fails alike"),
    el(
      "ul",
      { class: "alike" },
      failures.slice(0, 12).map((f) =>
        el(
          "li",
          {},
          el(
            "a",
            {
              class: "kind",
              href: listLink(`model:${quoted(String(f.model_id))}$ task:${quoted(String(f.task_id))}$ -status:success`),
            },
            el("span", { class: "n" }, count(f.n)),
            el("span", { class: "dim" }, shown(f.class + (given(told(f.exit_code)) ? `, exit ${f.exit_code}` : ""))),
          ),
          block(f.head || "no output", { label: "how it begins", lines: 5 }),
        ),
      ),
    ),
  );
}

function suspicionCard(bench) {
  if (!bench.look_at || bench.look_at.length === 0) return null;
  return el(
    "section",
    { class: "card wide", "aria-labelledby": "suspicious" },
    el("h2", { id: "suspicious" }, "Worth a look"),
    el("p", { class: "dim" }, "Read from the record, never decided: the verifier's verdict stands."),
    scrolled(
      "suspicious attempts",
      tableOf(
        ["Attempt", "Student", "Task", "Verdict", "Marks"],
        bench.look_at.slice(0, 40).map((a) => [
          byKey.has(a.id) ? el("a", { href: linkTo(byKey.get(a.id)) }, shown(a.id)) : shown(a.id),
          a.model_id,
          a.task_id,
          a.success ? "solved" : "not solved",
          el(
            "span",
            {},
            a.marks.map((m) => el("span", { class: "flag bad" }, shown(m))),
          ),
        ]),
        [],
      ),
    ),
  );
}

function taskCard(tasks) {
  const lines = (tasks || []).filter((t) => given(told(t.difficulty)));
  if (lines.length < 2) return null;
  lines.sort((a, b) => b.difficulty - a.difficulty);
  return el(
    "section",
    { class: "card wide", "aria-labelledby": "tasks" },
    el("h2", { id: "tasks" }, "Tasks"),
    el(
      "details",
      { open: lines.length <= 16 },
      el("summary", {}, `${count(lines.length)} tasks, the hardest first`),
      scrolled(
        "tasks, scrolls",
        tableOf(
          ["Task", "Difficulty", "Discrimination", "Scored", "Flaky for"],
          lines
            .slice(0, 300)
            .map((t) => [
              el("a", { href: listLink("task:" + quoted(t.task_id) + "$") }, shown(t.task_id)),
              number(t.difficulty, 2),
              given(told(t.discrimination)) ? number(t.discrimination, 2) : none,
              count(t.scored),
              (t.flaky || []).join(", ") || none,
            ]),
          [1, 2, 3],
        ),
      ),
    ),
  );
}

function benchSection() {
  const bench = page.bench;
  if (!bench) return null;
  const notes = (bench.problems || []).map((p) =>
    el("p", { class: "banner " + (bench.valid === false ? "bad" : "warn"), role: "note" }, shown(p)),
  );
  return el(
    "div",
    { class: "bench" },
    el(
      "p",
      { class: "suiteline" },
      el("strong", {}, shown(`${bench.suite_id ?? "suite"} ${told(bench.version) ?? ""}`)),
      el(
        "span",
        { class: "dim" },
        shown(
          [
            given(told(bench.hash))
              ? String(bench.hash)
                  .replace(/^sha256:/, "")
                  .slice(0, 12)
              : null,
            given(told(bench.n)) ? `${bench.n} attempts a task` : null,
            told(bench.started_at),
          ]
            .filter(given)
            .join("  ·  "),
        ),
      ),
      told(bench.subset)
        ? el("span", { class: "flag bad" }, `subset: ${bench.subset.tasks} of ${bench.subset.of} tasks`)
        : null,
      bench.valid === false ? el("span", { class: "flag bad" }, "not valid") : null,
    ),
    notes,
    bench.compare ? compareCard(bench.compare) : null,
    benchBoard(bench),
    failureCard(bench.failures),
    suspicionCard(bench),
    taskCard(bench.tasks),
  );
}
