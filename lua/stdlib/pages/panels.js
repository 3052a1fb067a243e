// The panels of a trajectory: both verdicts, time, tokens.
function section(id, title, ...kids) {
  return el(
    "section",
    { class: "card wide", id: "s-" + id, "aria-labelledby": "h-" + id },
    el("h2", { id: "h-" + id, tabindex: -1 }, title),
    kids,
  );
}

function facts(pairs) {
  return el(
    "dl",
    { class: "facts" },
    pairs
      .filter((p) => given(p[1]) && p[1] !== "")
      .map(([name, value]) =>
        el(
          "div",
          {},
          el("dt", {}, name),
          el("dd", {}, value instanceof Node || Array.isArray(value) ? value : shown(value)),
        ),
      ),
  );
}

function checkCommand(text) {
  const args = parsedArguments(text);
  if (!args) return text ?? "";
  return Object.keys(args).length === 0 ? "its default command" : (args.command ?? text);
}

// The official verdict beside what the agent took for proof.
function verdicts(i, body) {
  const v = body.verify,
    c = body.check,
    kids = [];
  const mark = (ok, yes, no, unknown) =>
    el(
      "span",
      { class: "verdict " + (ok === true ? "yes" : ok === false ? "no" : "none") },
      ok === true ? "✓ " + yes : ok === false ? "✗ " + no : unknown,
    );
  if (v)
    kids.push(
      el(
        "section",
        { class: "half", "aria-labelledby": "h-official" },
        el(
          "div",
          { class: "toolhead" },
          el("h3", { id: "h-official" }, "Official verifier"),
          mark(v.success, "passed", "failed", "no verdict"),
        ),
        v.command ? block(v.command, { label: "command of the verifier", lines: 4 }) : null,
        el(
          "p",
          { class: "dim" },
          [given(v.exit) ? `exit ${v.exit}` : null, given(v.dur) ? duration(v.dur) : null]
            .filter(Boolean)
            .join("  ·  "),
        ),
        v.stdout
          ? [el("div", { class: "argname" }, "stdout"), block(v.stdout, { label: "stdout of the verifier" })]
          : null,
        v.stderr
          ? [el("div", { class: "argname" }, "stderr"), block(v.stderr, { label: "stderr of the verifier" })]
          : null,
        v.report
          ? el(
              "details",
              {},
              el("summary", {}, "Report"),
              block(typeof v.report === "object" ? JSON.stringify(v.report, null, 2) : v.report, { label: "report" }),
            )
          : null,
      ),
    );
  else
    kids.push(
      el(
        "section",
        { class: "half" },
        el("div", { class: "toolhead" }, el("h3", {}, "Official verifier"), mark(null, "", "", "did not run")),
      ),
    );
  if (c)
    kids.push(
      el(
        "section",
        { class: "half", "aria-labelledby": "h-own" },
        el(
          "div",
          { class: "toolhead" },
          el("h3", { id: "h-own" }, "The agent's own last check"),
          mark(c.passed, "passed", "failed", "says nothing"),
        ),
        block(checkCommand(c.args), { label: "command of its own check", lines: 4 }),
        el("p", { class: "dim" }, `${c.name}${given(c.step) ? ", step " + c.step : ""}. It decides nothing.`),
        block(c.result, { label: "result of its own check" }),
      ),
    );
  else
    kids.push(
      el(
        "section",
        { class: "half" },
        el("div", { class: "toolhead" }, el("h3", {}, "The agent's own last check"), mark(null, "", "", "none seen")),
        el("p", { class: "dim" }, "No tool call looks like a test."),
      ),
    );
  return section(
    "verdict",
    "Verdict",
    el("div", { class: "halves" }, kids),
    body.tamper && rows.tamper[i]
      ? el(
          "details",
          { open: true },
          el("summary", {}, "What was left for the verifier to trip over"),
          block(typeof body.tamper === "object" ? JSON.stringify(body.tamper, null, 2) : body.tamper, {
            label: "tampering",
          }),
        )
      : null,
  );
}

// When the model was asked, when tools ran, from the first moment to the last.
function timeLane(i, body) {
  const spans = [];
  for (const call of body.calls)
    if (call.t)
      spans.push({
        lane: 0,
        from: call.t[0],
        mid: call.t[1],
        to: call.t[2] ?? call.t[1],
        text: `call ${call.i}: ${duration((call.t[2] ?? call.t[1]) - call.t[0])}`,
        bad: !!call.error,
      });
  for (const run of body.runs)
    if (run.t)
      spans.push({
        lane: 1,
        from: run.t[0],
        to: run.t[1],
        text: `${run.name}: ${duration(run.t[1] - run.t[0])}`,
        bad: run.is_error,
      });
  if (spans.length === 0) return null;
  const start = Math.min(given(rows.started[i]) ? rows.started[i] : Infinity, ...spans.map((s) => s.from)),
    last = Math.max(...spans.map((s) => s.to));
  const score = (rows.score[i] || 0) / 1000,
    end = Math.max(
      last,
      Math.min(given(rows.finished[i]) && rows.finished[i] >= last ? rows.finished[i] : last, last + score + 5),
    );
  if (score > 0)
    spans.push({ lane: 2, from: Math.max(last, end - score), to: end, text: "verify: " + duration(score) });
  const wide = Math.max(620, Math.min(1660, main.clientWidth - 80)),
    left = 56,
    H = 92,
    x = (t) => left + ((t - start) / (end - start || 1)) * (wide - left - 8);
  const names = ["model", "tools", "verify"];
  const kids = names.map((name, lane) => [
    vec("text", { x: left - 8, y: 20 + lane * 22, "text-anchor": "end", class: "tick" }, name),
    vec("line", { x1: left, x2: wide - 8, y1: 16 + lane * 22, y2: 16 + lane * 22, class: "grid" }),
  ]);
  for (const s of spans) {
    const y = 8 + s.lane * 22,
      w = Math.max(1.5, x(s.to) - x(s.from));
    kids.push(
      vec(
        "rect",
        {
          x: x(s.from),
          y,
          width: w,
          height: 16,
          rx: 2,
          class: "fill " + (s.bad ? "bad" : "c" + (s.lane === 2 ? 4 : s.lane === 0 ? 2 : 3)),
        },
        vec("title", {}, s.text),
      ),
    );
    if (given(s.mid) && s.mid > s.from && s.mid < s.to)
      kids.push(vec("rect", { x: x(s.from), y: y + 5, width: x(s.mid) - x(s.from), height: 6, class: "wait" }));
  }
  for (const t of steps(0, end - start, wide / 110))
    kids.push(
      vec(
        "text",
        { x: x(start + t), y: H - 8, "text-anchor": t === 0 ? "start" : "middle", class: "tick" },
        duration(t),
      ),
    );
  const label = `Time: ${plural(body.calls.length, "call")} of the model, ${plural(body.runs.length, "tool run")} within ${duration(end - start)}`;
  return el(
    "div",
    { class: "scroll", tabindex: 0, role: "group", "aria-label": "Timeline, scrolls" },
    vec("svg", { viewBox: `0 0 ${wide} ${H}`, class: "lane", role: "img", "aria-label": label }, kids),
  );
}

// What each call was given and gave, and whether it went on from what was sampled.
function tokenLedger(body) {
  const entries = body.ledger,
    usage = body.calls.filter((c) => c.usage);
  if (!entries && usage.length === 0) return null;
  const list = entries
    ? entries.map((e) => ({ call: e.call, keep: e.keep, tail: e.tail, out: e.out, lp: e.lp, drift: e.drift }))
    : usage.map((c) => ({
        call: c.i,
        keep: c.usage.cached || 0,
        tail: (c.usage.prompt || 0) - (c.usage.cached || 0),
        out: c.usage.completion || 0,
        drift: null,
      }));
  const most = Math.max(1, ...list.map((e) => e.keep + e.tail + e.out)),
    drifts = list.filter((e) => e.drift === "realign" || e.drift === "fork").length;
  const bar = (e) => {
    let at = 0;
    const part = (n, name) => {
      const r = vec("rect", { x: (at / most) * 300, y: 2, width: (n / most) * 300, height: 10, class: "fill " + name });
      at += n;
      return r;
    };
    return vec(
      "svg",
      {
        viewBox: "0 0 300 14",
        class: "tokenbar",
        role: "img",
        "aria-label": `${e.keep} kept, ${e.tail} new, ${e.out} sampled`,
      },
      part(e.keep, "c5"),
      part(e.tail, "c2"),
      part(e.out, "c0"),
    );
  };
  const heads = [
    "Call",
    entries ? "Kept" : "Cached",
    "New",
    "Sampled",
    entries ? "Log-probs" : null,
    entries ? "Drift" : null,
    "",
  ].filter((h) => h !== null);
  const table = el(
    "table",
    { class: "board ledger" },
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        heads.map((h, n) =>
          el(
            "th",
            { scope: "col", class: n < (entries ? 5 : 4) ? "num" : null },
            h === "" ? el("span", { class: "sr" }, "drawn") : h,
          ),
        ),
      ),
    ),
    el(
      "tbody",
      {},
      list.map((e) =>
        el(
          "tr",
          {},
          el("th", { scope: "row", class: "num" }, e.call),
          el("td", { class: "num" }, count(e.keep)),
          el("td", { class: "num" }, count(e.tail)),
          el("td", { class: "num" }, count(e.out)),
          entries ? el("td", { class: "num" }, given(e.lp) ? count(e.lp) : none) : null,
          entries
            ? el(
                "td",
                {},
                el(
                  "span",
                  { class: "flag " + (e.drift === "realign" || e.drift === "fork" ? "bad" : "") },
                  shown(e.drift),
                ),
              )
            : null,
          el("td", {}, bar(e)),
        ),
      ),
    ),
  );
  const note = entries
    ? `Ids from the server. ${drifts ? `${plural(drifts, "call")} of ${entries.length} did not go on from what was sampled.` : "Every prompt goes on from what was sampled."}`
    : "The server gave no token ids; these are its counts.";
  return section(
    "tokens",
    "Tokens",
    el("p", { class: "dim" }, note),
    body.violations ? body.violations.map((v) => el("p", { class: "banner warn" }, shown(v))) : null,
    el(
      "p",
      { class: "legend" },
      el("span", {}, el("i", { class: "key f5" }), entries ? "common with the call before" : "cached"),
      el("span", {}, el("i", { class: "key f2" }), "new"),
      el("span", {}, el("i", { class: "key f0" }), "sampled"),
    ),
    el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Token ledger, scrolls" }, table),
  );
}
