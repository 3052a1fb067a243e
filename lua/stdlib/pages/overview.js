// The first view: what the run amounts to, and where to look.
function tile(label, value, note, link, extra) {
  const inside = [
    el("span", { class: "label" }, label),
    el("strong", {}, value),
    note ? el("span", { class: "note" }, note) : null,
  ];
  return link
    ? el("a", { class: "tile " + (extra || ""), href: link }, inside)
    : el("div", { class: "tile " + (extra || "") }, inside);
}

function tally(indices, key) {
  const counts = new Map();
  for (const i of indices) {
    const value = key(i);
    if (given(value)) counts.set(value, (counts.get(value) || 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1]);
}

function outcomeBar(indices) {
  const counts = tally(indices, (i) => rows.status[i]).sort((a, b) => statusOf(b[0]).order - statusOf(a[0]).order);
  const bar = el("div", { class: "outcome" });
  for (const [name, n] of counts) {
    const part = el(
      "a",
      {
        class: "s-" + (STATUS[name] ? name : "other"),
        href: listLink("status:" + name),
        "aria-label": `${statusOf(name).word}: ${count(n)}`,
      },
      n / indices.length > 0.07 ? el("span", { "aria-hidden": "true" }, statusOf(name).word) : null,
    );
    part.style.flexGrow = n;
    bar.append(part);
  }
  const legend = el(
    "p",
    { class: "legend" },
    counts.map(([name, n]) =>
      el(
        "a",
        { href: listLink("status:" + name) },
        badge(name),
        ` ${count(n)} `,
        el("span", { class: "dim" }, percent(n / indices.length)),
      ),
    ),
  );
  return el(
    "section",
    { class: "card wide", "aria-labelledby": "outcomes" },
    el("h2", { id: "outcomes" }, "Outcomes"),
    bar,
    legend,
  );
}

// Kinds of failure, the infrastructure's first; each leads to its rows.
function failures(indices) {
  const kinds = new Map();
  for (const i of indices) {
    if (rows.status[i] === "success" && !rows.mismatch[i] && !rows.tamper[i]) continue;
    const infra = rows.reward[i] === null;
    const name = rows.mismatch[i]
      ? "its own check passed, the verifier did not"
      : rows.tamper[i]
        ? "tampering seen"
        : `${rows.stop[i]}${rows.class[i] ? " · " + rows.class[i] : ", not solved"}`;
    const query = rows.mismatch[i]
      ? "flag:mismatch"
      : rows.tamper[i]
        ? "flag:tamper"
        : `stop:${rows.stop[i]}$${infra ? " flag:unscored" : " -status:success"}`;
    const key = (infra ? "0" : rows.mismatch[i] || rows.tamper[i] ? "1" : "2") + name;
    if (!kinds.has(key))
      kinds.set(key, { name, query, infra, sure: rows.mismatch[i] || rows.tamper[i], n: 0, example: i });
    kinds.get(key).n++;
  }
  if (kinds.size === 0) return null;
  const ordered = [...kinds].sort((a, b) => a[0][0] - b[0][0] || b[1].n - a[1].n).map((e) => e[1]);
  return el(
    "section",
    { class: "card", "aria-labelledby": "look" },
    el("h2", { id: "look" }, "Where to look"),
    el(
      "ul",
      { class: "kinds" },
      ordered
        .slice(0, 12)
        .map((kind) =>
          el(
            "li",
            {},
            el(
              "a",
              { class: "kind", href: listLink(kind.query) },
              el("span", { class: "n" }, count(kind.n)),
              el("span", {}, shown(kind.name)),
              kind.infra
                ? el("span", { class: "flag" }, "no score")
                : kind.sure
                  ? el("span", { class: "flag bad" }, "check")
                  : null,
            ),
            el(
              "a",
              { class: "example", href: linkTo(kind.example), "aria-label": `an example: ${rows.task[kind.example]}` },
              "example",
            ),
          ),
        ),
    ),
  );
}

// Success and reward of each model, with what can be said for sure.
function interval(e, low, high) {
  if (!given(e.value)) return el("span", { class: "dim" }, none);
  const at = (x) => ((x - low) / (high - low || 1)) * 200;
  return vec(
    "svg",
    {
      viewBox: "0 0 200 16",
      class: "interval",
      role: "img",
      "aria-label": `${percent(e.value)}, ${spread(e, percent)}`,
    },
    vec("line", { x1: 0, x2: 200, y1: 8, y2: 8, class: "grid" }),
    given(e.low)
      ? vec("line", { x1: at(e.low), x2: Math.max(at(e.high), at(e.low) + 1), y1: 8, y2: 8, class: "whisker" })
      : null,
    vec("circle", { cx: at(e.value), cy: 8, r: 4.5, class: "dot c0" }),
  );
}

function leaderboard(models, extra) {
  const rowsOf = models.map((m, place) =>
    el(
      "tr",
      {},
      el("td", { class: "num dim" }, place + 1),
      el("th", { scope: "row" }, el("a", { href: listLink("model:" + quoted(String(m.model))) }, shown(m.model))),
      el("td", { class: "num" }, el("strong", {}, percent(m.success.value))),
      el("td", {}, interval(m.success, 0, 1)),
      el("td", { class: "num dim" }, spread(m.success, percent)),
      el("td", { class: "num" }, number(m.reward.value, 3)),
      el("td", { class: "num" }, count(m.rollouts)),
      el("td", { class: "num" }, count(m.tasks)),
      el("td", { class: "num" }, m.unscored ? count(m.unscored) : none),
      el("td", { class: "num" }, m.solved && m.tokens ? short(m.tokens / m.solved) : none),
    ),
  );
  return el(
    "section",
    { class: "card wide", "aria-labelledby": "board" },
    el("h2", { id: "board" }, models.length > 1 ? "Leaderboard" : "Model"),
    el(
      "div",
      { class: "scroll", tabindex: 0, role: "group", "aria-label": "Leaderboard, scrolls" },
      el(
        "table",
        { class: "board" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            [
              "",
              "Model",
              "Solved",
              "0 – 100 %",
              "95 % interval",
              "Mean reward",
              "Rollouts",
              "Tasks",
              "No score",
              "Tokens per success",
            ].map((h, i) =>
              el(
                "th",
                { scope: "col", class: [0, 2, 4, 5, 6, 7, 8, 9].includes(i) ? "num" : null },
                h === "" ? el("span", { class: "sr" }, "Place") : h,
              ),
            ),
          ),
        ),
        el("tbody", {}, rowsOf),
      ),
    ),
    el(
      "p",
      { class: "dim" },
      "Intervals draw whole tasks anew: attempts of one task are alike. Rollouts that failed for reasons of the infrastructure have no score and are in no mean.",
    ),
    extra || null,
  );
}

function overview() {
  if (rows.n === 0)
    return {
      node: el("p", { class: "empty" }, "Nothing has ended yet. Rollouts appear here as they end."),
      start() {},
      stop() {},
      keys: {},
      overview: true,
    };
  const indices = all(),
    f = page.figures ? page.figures.all : null,
    models = page.figures ? page.figures.models : [];
  const solved = indices.filter((i) => rows.status[i] === "success").length,
    unscored = indices.filter((i) => rows.reward[i] === null).length;
  const wrong = indices.filter((i) => rows.mismatch[i]).length,
    tampered = indices.filter((i) => rows.tamper[i]).length;
  const times = Float64Array.from(indices.map((i) => rows.dur[i]).filter(given)).sort(),
    tokens = indices.reduce((sum, i) => sum + (rows.tokens[i] || 0), 0);
  const tasks = new Set(rows.task).size;
  const tiles = [
    tile("Rollouts", count(rows.n), plural(tasks, "task"), listLink("")),
    tile(
      "Solved",
      f ? percent(f.success.value) : percent(rows.n - unscored ? solved / (rows.n - unscored) : null),
      f && given(f.success.low)
        ? `95 %: ${spread(f.success, percent)}`
        : `${count(solved)} of ${count(rows.n - unscored)} scored`,
      listLink("status:success"),
      "good",
    ),
    f
      ? tile(
          "Mean reward",
          number(f.reward.value, 3),
          given(f.reward.low) ? `95 %: ${spread(f.reward, (x) => number(x, 3))}` : null,
          listLink("", "reward"),
        )
      : null,
    unscored ? tile("No score", count(unscored), "the infrastructure failed", listLink("flag:unscored"), "warn") : null,
    wrong
      ? tile("Mismatch", count(wrong), "own check passed, verifier did not", listLink("flag:mismatch"), "warn")
      : null,
    tampered
      ? tile("Tampering", count(tampered), "left for the verifier to trip over", listLink("flag:tamper"), "warn")
      : null,
    tokens
      ? tile("Tokens", short(tokens), solved ? `${short(tokens / solved)} per success` : null, listLink("", "-tokens"))
      : null,
    times.length
      ? tile(
          "Median time",
          duration(quantile(times, 0.5)),
          `90 % within ${duration(quantile(times, 0.9))}`,
          listLink("", "-dur"),
        )
      : null,
  ];
  const plots = [
    passCurve(models.length > 1 ? models : f ? [{ model: "pass@k", pass: f.pass }] : []),
    histogram("Reward", "reward", indices, number),
    histogram("Tokens of a rollout", "tokens", indices, short),
    histogram("Time of a rollout", "dur", indices, duration),
    histogram("Steps", "steps", indices, number),
    rewardOverTime(indices),
    concurrency(indices),
    timeSplit(indices),
  ].filter(Boolean);
  return {
    node: el(
      "div",
      { class: "overview" },
      el(
        "div",
        { class: "heading" },
        el("h1", {}, shown(page.title)),
        el("p", { class: "dim" }, `${page.live ? "live, " : ""}made ${stamp(page.made)} by agentbox ${page.engine}`),
      ),
      page.damaged
        ? el(
            "p",
            { class: "banner warn", role: "note" },
            `${plural(page.damaged, "line")} could not be read: see agentbox traj check.`,
          )
        : null,
      el("div", { class: "tiles" }, tiles),
      benchSection(),
      el(
        "div",
        { class: "cards" },
        outcomeBar(indices),
        failures(indices),
        models.length && !page.bench ? leaderboard(models) : null,
        el(
          "section",
          { class: "card wide plain", "aria-labelledby": "plots" },
          el("h2", { id: "plots", class: "sr" }, "Distributions"),
          el("div", { class: "plots" }, plots),
        ),
        heatMap(indices),
      ),
    ),
    start() {},
    stop() {},
    keys: {},
    overview: true,
  };
}
