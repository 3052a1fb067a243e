// Drawings as SVG. Each says in words what it shows; marks that lead somewhere are links.
const W = 360;

function figure(title, note, svg, ...rest) {
  return el(
    "figure",
    { class: "plot" },
    el("figcaption", {}, el("h3", {}, title), note ? el("p", {}, note) : null),
    svg,
    rest,
  );
}

function canvas(height, label, kids, linked) {
  return vec("svg", { viewBox: `0 0 ${W} ${height}`, role: linked ? "group" : "img", "aria-label": label }, kids);
}

const tick = (x, y, text, anchor = "middle", extra = "") =>
  vec("text", { x, y, "text-anchor": anchor, class: "tick " + extra }, text);

// Round steps for an axis.
function steps(low, high, want) {
  const rough = (high - low) / want || 1,
    power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((f) => f * power).find((s) => s >= rough);
  const out = [];
  for (let x = Math.ceil(low / step) * step; x <= high + step * 1e-9; x += step) out.push(Number(x.toPrecision(12)));
  return out;
}

function quantile(sorted, p) {
  if (sorted.length === 0) return null;
  const at = (sorted.length - 1) * p,
    below = Math.floor(at);
  return sorted[below] + (at - below) * ((sorted[below + 1] ?? sorted[below]) - sorted[below]);
}

// A bar for each value where there are few of them, as of rewards and steps, else ranges.
function binsOf(values, few) {
  const low = Math.min(...values),
    high = Math.max(...values);
  const distinct = [...new Set(values)].sort((a, b) => a - b);
  if (distinct.length <= 12 && (few || values.length >= 4 * distinct.length))
    return distinct.map((x) => ({ from: x, to: x, exact: true, n: 0 }));
  const edges = steps(low, high, 18),
    step = edges.length > 1 ? edges[1] - edges[0] : 1,
    out = [];
  for (let x = Math.floor(low / step) * step; x <= high; x += step) {
    x = Number(x.toPrecision(12));
    out.push({ from: x, to: Number((x + step).toPrecision(12)), n: 0 });
  }
  return out;
}

const chunked = (list, f) => (list.length > 50000 ? list.reduce((a, b) => f(a, b)) : f(...list));

// A histogram of a field; each bar leads to its rows.
function histogram(title, field, indices, format, unit) {
  let values = indices.map((i) => rows[field][i]).filter(given);
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  if (sorted.length > 20000)
    values = [sorted[0], ...sorted.filter((_, i) => i % Math.ceil(sorted.length / 20000) === 0), sorted.at(-1)];
  const bins = binsOf(values, field === "reward" || field === "steps");
  let b = 0;
  for (const value of sorted) {
    while (bins[b].exact ? bins[b].from < value : bins[b].to <= value && b < bins.length - 1) b++;
    bins[b].n++;
  }
  const most = Math.max(...bins.map((bin) => bin.n)),
    H = 150,
    base = H - 24,
    top = 18,
    width = (W - 8) / bins.length;
  const bars = bins.map((bin, i) => {
    const height = bin.n ? Math.max(1.5, (bin.n / most) * (base - top)) : 0;
    const range = bin.exact ? `${field}=${bin.from}` : `${field}>=${bin.from} ${field}<${bin.to}`;
    const words = `${bin.exact ? format(bin.from) : format(bin.from) + " to " + format(bin.to)}: ${count(bin.n)}`;
    const gap = Math.min(width * 0.12, 6),
      w = Math.min(width - gap, 64);
    const x = 4 + i * width + (width - w) / 2;
    const bar = vec(
      "rect",
      { x, y: base - height, width: w, height, rx: Math.min(2, height / 2), class: "bar" },
      vec("title", {}, words),
    );
    const labels = bins.length <= 12 ? [tick(x + w / 2, base - height - 4, short(bin.n), "middle", "strong")] : [];
    return bin.n ? vec("a", { href: listLink(range), "aria-label": words }, bar, labels) : null;
  });
  const marks =
    bins.length <= 12
      ? bins.map((bin, i) => tick(4 + (i + 0.5) * width, H - 8, format(bin.from)))
      : bins
          .filter((_, i) => i % Math.ceil(bins.length / 5) === 0)
          .map((bin) => tick(4 + bins.indexOf(bin) * width, H - 8, format(bin.from)));
  const note = `median ${format(quantile(sorted, 0.5))}, 90 % below ${format(quantile(sorted, 0.9))}, largest ${format(sorted.at(-1))}${unit ? " " + unit : ""}`;
  return figure(
    title,
    note,
    canvas(
      H,
      `${title}: ${note}`,
      [vec("line", { x1: 4, x2: W - 4, y1: base, y2: base, class: "axis" }), bars, marks],
      true,
    ),
  );
}

// pass@k with its interval.
function passCurve(models) {
  const lists = models.filter((m) => m.pass && m.pass.length > 1);
  if (lists.length === 0) return null;
  const H = 190,
    left = 38,
    right = W - 46,
    top = 10,
    base = H - 26;
  const most = Math.max(...lists.map((m) => m.pass.at(-1).k));
  const x = (k) => left + (most > 1 ? Math.log(k) / Math.log(most) : 0) * (right - left),
    y = (p) => base - p * (base - top);
  const kids = [0, 0.25, 0.5, 0.75, 1].map((p) => [
    vec("line", { x1: left, x2: right, y1: y(p), y2: y(p), class: "grid" }),
    tick(left - 6, y(p) + 4, percent(p), "end"),
  ]);
  const last = [];
  lists.slice(0, 6).forEach((m, c) => {
    const sure = m.pass.filter((e) => given(e.low));
    if (sure.length > 1)
      kids.push(
        vec("path", {
          class: "band c" + c,
          d:
            "M" +
            [
              ...sure.map((e) => `${x(e.k)},${y(e.high)}`),
              ...sure
                .slice()
                .reverse()
                .map((e) => `${x(e.k)},${y(e.low)}`),
            ].join("L") +
            "Z",
        }),
      );
    const points = m.pass.filter((e) => given(e.value));
    kids.push(vec("path", { class: "curve c" + c, d: "M" + points.map((e) => `${x(e.k)},${y(e.value)}`).join("L") }));
    points.forEach((e) =>
      kids.push(
        vec(
          "circle",
          { cx: x(e.k), cy: y(e.value), r: 3, class: "dot c" + c },
          vec("title", {}, `pass@${e.k}: ${percent(e.value)} (${spread(e, percent)})`),
        ),
      ),
    );
    last.push({ y: y(points.at(-1).value), text: percent(points.at(-1).value), c });
  });
  last
    .sort((a, b) => a.y - b.y)
    .forEach((l, i) => {
      if (i && l.y < last[i - 1].y + 13) l.y = last[i - 1].y + 13;
      kids.push(tick(right + 8, l.y + 4, l.text, "start", "strong t" + l.c));
    });
  const ks = [...new Set(lists.flatMap((m) => m.pass.map((e) => e.k)))].sort((a, b) => a - b);
  ks.forEach((k) => kids.push(tick(x(k), H - 8, "k=" + k)));
  const words = lists
    .map((m) => `${m.model}: ` + m.pass.map((e) => `k=${e.k} ${percent(e.value)}`).join(", "))
    .join("; ");
  const legend =
    lists.length > 1
      ? el(
          "p",
          { class: "legend" },
          lists.slice(0, 6).map((m, c) => el("span", {}, el("i", { class: "key c" + c }), shown(m.model))),
        )
      : null;
  return figure("pass@k", "unbiased, with 95 % intervals over tasks", canvas(H, "pass@k. " + words, kids), legend);
}

// How many rollouts ran at once, over the time of the run.
function concurrency(indices) {
  const spans = indices
    .filter((i) => given(rows.started[i]) && given(rows.dur[i]))
    .map((i) => [rows.started[i], rows.started[i] + rows.dur[i]]);
  if (spans.length < 2) return null;
  const from = chunked(
      spans.map((s) => s[0]),
      Math.min,
    ),
    to = chunked(
      spans.map((s) => s[1]),
      Math.max,
    );
  if (!(to > from)) return null;
  const N = 230,
    running = new Float64Array(N),
    ended = new Float64Array(N),
    at = (t) => Math.min(N - 1, Math.max(0, Math.floor(((t - from) / (to - from)) * N)));
  for (const [a, b] of spans) {
    for (let i = at(a), end = at(b); i <= end; i++) {
      const lo = from + (i * (to - from)) / N,
        hi = lo + (to - from) / N;
      running[i] += Math.max(0, Math.min(b, hi) - Math.max(a, lo)) / (hi - lo);
    }
    ended[at(b)]++;
  }
  const H = 150,
    left = 34,
    base = H - 24,
    top = 8,
    most = Math.max(...running, 1),
    x = (i) => left + (i / (N - 1)) * (W - left - 6),
    y = (n) => base - (n / most) * (base - top);
  const area =
    "M" +
    [`${x(0)},${base}`, ...Array.from(running, (n, i) => `${x(i)},${y(n)}`), `${x(N - 1)},${base}`].join("L") +
    "Z";
  let sum = 0;
  const done =
    "M" +
    Array.from(ended, (n, i) => {
      sum += n;
      return `${x(i)},${base - (sum / spans.length) * (base - top)}`;
    }).join("L");
  const ys = steps(0, most, 3).map((n) => [
    vec("line", { x1: left, x2: W - 6, y1: y(n), y2: y(n), class: "grid" }),
    tick(left - 6, y(n) + 4, number(n), "end"),
  ]);
  const xs = steps(0, to - from, 3).map((t) =>
    tick(
      x((t / (to - from)) * (N - 1)),
      H - 8,
      duration(t),
      t === 0 ? "start" : t > (to - from) * 0.93 ? "end" : "middle",
    ),
  );
  const note = `${duration(to - from)} in all, at most ${number(most, 3)} at once, ${count(Math.round((spans.length / (to - from)) * 3600))} an hour`;
  return figure(
    "Rollouts at once",
    note,
    canvas(H, "Rollouts at once: " + note, [
      ys,
      vec("path", { d: area, class: "area" }),
      vec("path", { d: done, class: "thin" }),
      xs,
    ]),
    el(
      "p",
      { class: "legend" },
      el("span", {}, el("i", { class: "key c0" }), "running"),
      el("span", {}, el("i", { class: "key line" }), "ended, of all"),
    ),
  );
}

// The mean reward by version of the weights, or over the time of the run.
function rewardOverTime(indices) {
  const scored = indices.filter((i) => rows.reward[i] !== null && given(rows.finished[i] ?? rows.started[i]));
  const versions = [...new Set(scored.map((i) => rows.version[i]).filter(given))].sort((a, b) => a - b);
  if (scored.length < 8) return null;
  const byVersion = versions.length > 2,
    when = (i) => (byVersion ? rows.version[i] : (rows.finished[i] ?? rows.started[i]));
  const order = scored.filter((i) => given(when(i))).sort((a, b) => when(a) - when(b)),
    points = [],
    size = Math.max(4, Math.ceil(order.length / 40));
  for (let at = 0; at < order.length; ) {
    let end = Math.min(order.length, at + size);
    if (byVersion) {
      end = at;
      while (end < order.length && when(order[end]) === when(order[at])) end++;
    }
    const part = order.slice(at, end),
      mean = part.reduce((s, i) => s + rows.reward[i], 0) / part.length;
    const sd = Math.sqrt(part.reduce((s, i) => s + (rows.reward[i] - mean) ** 2, 0) / Math.max(1, part.length - 1));
    points.push({
      x: byVersion ? when(order[at]) : points.length,
      mean,
      se: part.length > 1 ? sd / Math.sqrt(part.length) : 0,
      n: part.length,
    });
    at = end;
  }
  if (points.length < 2) return null;
  const low = Math.min(0, ...points.map((p) => p.mean)),
    high = Math.max(1, ...points.map((p) => p.mean));
  const H = 150,
    left = 34,
    right = W - 44,
    base = H - 24,
    top = 8,
    first = points[0].x,
    last = points.at(-1).x;
  const x = (v) => left + ((v - first) / (last - first || 1)) * (right - left),
    y = (v) => base - ((Math.max(low, Math.min(high, v)) - low) / (high - low)) * (base - top);
  const ys = steps(low, high, 3).map((v) => [
    vec("line", { x1: left, x2: right, y1: y(v), y2: y(v), class: "grid" }),
    tick(left - 6, y(v) + 4, number(v, 2), "end"),
  ]);
  const band =
    "M" +
    [
      ...points.map((p) => `${x(p.x)},${y(p.mean + p.se)}`),
      ...points
        .slice()
        .reverse()
        .map((p) => `${x(p.x)},${y(p.mean - p.se)}`),
    ].join("L") +
    "Z";
  const xs = byVersion
    ? steps(first, last, 6)
        .filter(Number.isInteger)
        .map((v) => tick(x(v), H - 8, String(v)))
    : [tick(left, H - 8, "first ended", "start"), tick(right, H - 8, "last", "end")];
  const words = `${number(points[0].mean, 2)} at first, ${number(points.at(-1).mean, 2)} at the end`;
  return figure(
    byVersion ? "Mean reward by weights" : "Mean reward over the run",
    `${words}; the band is one standard error`,
    canvas(H, "Mean reward: " + words, [
      ys,
      vec("path", { d: band, class: "band" }),
      vec("path", { class: "curve", d: "M" + points.map((p) => `${x(p.x)},${y(p.mean)}`).join("L") }),
      tick(right + 6, y(points.at(-1).mean) + 4, number(points.at(-1).mean, 2), "start", "strong"),
      xs,
    ]),
  );
}

const PARTS = [
  ["boot", "create sandbox"],
  ["seed", "set up"],
  ["think", "model"],
  ["act", "tools"],
  ["score", "verify"],
];

// Where the time of the rollouts went.
function timeSplit(indices) {
  const sums = PARTS.map(([name]) => indices.reduce((sum, i) => sum + (rows[name][i] || 0), 0) / 1000);
  const total = indices.reduce((sum, i) => sum + (rows.dur[i] || 0), 0),
    told = sums.reduce((a, b) => a + b, 0);
  if (told <= 0) return null;
  const parts = [
    ...PARTS.map(([, word], i) => ({ word, s: sums[i], c: i })),
    { word: "other", s: Math.max(0, total - told), c: 5 },
  ];
  const most = Math.max(...parts.map((p) => p.s)),
    sum = Math.max(total, told),
    H = parts.length * 24 + 6;
  const kids = parts.map((p, i) => {
    const y = 4 + i * 24,
      w = Math.max(p.s > 0 ? 1.5 : 0, (p.s / most) * (W - 232));
    return [
      tick(88, y + 14, p.word, "end"),
      vec("rect", { x: 96, y: y + 3, width: w, height: 14, rx: 2, class: "fill c" + p.c }),
      tick(102 + w, y + 14, `${duration(p.s)}  ${percent(p.s / sum)}`, "start", "strong"),
    ];
  });
  const words = parts.map((p) => `${p.word} ${percent(p.s / sum)}`).join(", ");
  return figure("Where the time went", "summed over all rollouts", canvas(H, "Where the time went: " + words, kids));
}

// A cell for each task and attempt, worst tasks first.
function heatMap(indices) {
  const tasks = new Map();
  for (const i of indices) {
    if (!tasks.has(rows.task[i])) tasks.set(rows.task[i], []);
    tasks.get(rows.task[i]).push(i);
  }
  if (tasks.size < 2) return null;
  const rewards = indices.map((i) => rows.reward[i]).filter(given);
  const low = Math.min(0, chunked(rewards, Math.min)),
    high = Math.max(1, chunked(rewards, Math.max));
  const list = [...tasks]
    .map(([task, items]) => {
      const scored = items.filter((i) => rows.reward[i] !== null);
      return { task, items, mean: scored.length ? scored.reduce((s, i) => s + rows.reward[i], 0) / scored.length : -1 };
    })
    .sort((a, b) => a.mean - b.mean || (a.task < b.task ? -1 : 1));
  const rest = list.length - 200;
  const cell = (i) => {
    const reward = rows.reward[i];
    const level = reward === null ? "none" : String(Math.round(((reward - low) / (high - low || 1)) * 8));
    const words = `${rows.task[i]}, ${rows.id[i]}: ${statusOf(rows.status[i]).word}, reward ${reward === null ? "none" : number(reward)}`;
    return el("a", { class: "cell h-" + level, href: linkTo(i), title: words, "aria-label": words, tabindex: -1 });
  };
  const line = (t) => {
    const many = t.items.length > 64;
    return el(
      "div",
      { class: "heatline" },
      el("a", { class: "heatname", href: listLink("task:" + quoted(t.task), "reward"), title: t.task }, shown(t.task)),
      el(
        "span",
        { class: "heatmean" },
        t.mean < 0 && !t.items.some((i) => rows.reward[i] !== null) ? none : number(t.mean, 2),
      ),
      el(
        "span",
        { class: "cells" },
        t.items.slice(0, 64).map(cell),
        many ? el("span", { class: "dim" }, `+${count(t.items.length - 64)}`) : null,
      ),
    );
  };
  const scale = el(
    "p",
    { class: "legend" },
    el("span", {}, el("i", { class: "cell h-none" }), "no score"),
    el("span", {}, el("i", { class: "cell h-0" }), number(low)),
    el("span", {}, el("i", { class: "cell h-4" }), number((low + high) / 2)),
    el("span", {}, el("i", { class: "cell h-8" }), number(high)),
  );
  return el(
    "section",
    { class: "card wide", "aria-labelledby": "heat" },
    el("h2", { id: "heat" }, "Rewards by task"),
    el(
      "p",
      { class: "dim" },
      `a cell for each attempt, the worst tasks first${rest > 0 ? `; ${count(rest)} better tasks are not drawn` : ""}`,
    ),
    scale,
    el("div", { class: "heat" }, list.slice(0, 200).map(line)),
  );
}
