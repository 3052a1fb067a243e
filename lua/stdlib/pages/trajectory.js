// One trajectory from its task to its verdict.
function section(id, title, ...kids) {
  return el("section", { class: "card wide", id: "s-" + id, "aria-labelledby": "h-" + id }, el("h2", { id: "h-" + id, tabindex: -1 }, title), kids);
}

function facts(pairs) {
  return el("dl", { class: "facts" }, pairs.filter((p) => given(p[1]) && p[1] !== "").map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value instanceof Node || Array.isArray(value) ? value : shown(value)))));
}

function checkCommand(text) {
  const args = parsedArguments(text);
  if (!args) return text ?? "";
  return Object.keys(args).length === 0 ? "its default command" : args.command ?? text;
}

// The official verdict beside what the agent took for proof.
function verdicts(i, body) {
  const v = body.verify, c = body.check, kids = [];
  const mark = (ok, yes, no, unknown) => el("span", { class: "verdict " + (ok === true ? "yes" : ok === false ? "no" : "none") }, ok === true ? "✓ " + yes : ok === false ? "✗ " + no : unknown);
  if (v) kids.push(el("section", { class: "half", "aria-labelledby": "h-official" }, el("div", { class: "toolhead" }, el("h3", { id: "h-official" }, "Official verifier"), mark(v.success, "passed", "failed", "no verdict")),
    v.command ? block(v.command, { label: "command of the verifier", lines: 4 }) : null,
    el("p", { class: "dim" }, [given(v.exit) ? `exit ${v.exit}` : null, given(v.dur) ? duration(v.dur) : null].filter(Boolean).join("  ·  ")),
    v.stdout ? [el("div", { class: "argname" }, "stdout"), block(v.stdout, { label: "stdout of the verifier" })] : null,
    v.stderr ? [el("div", { class: "argname" }, "stderr"), block(v.stderr, { label: "stderr of the verifier" })] : null,
    v.report ? el("details", {}, el("summary", {}, "Report"), block(typeof v.report === "object" ? JSON.stringify(v.report, null, 2) : v.report, { label: "report" })) : null));
  else kids.push(el("section", { class: "half" }, el("div", { class: "toolhead" }, el("h3", {}, "Official verifier"), mark(null, "", "", "did not run"))));
  if (c) kids.push(el("section", { class: "half", "aria-labelledby": "h-own" }, el("div", { class: "toolhead" }, el("h3", { id: "h-own" }, "The agent's own last check"), mark(c.passed, "passed", "failed", "says nothing")),
    block(checkCommand(c.args), { label: "command of its own check", lines: 4 }), el("p", { class: "dim" }, `${c.name}${given(c.step) ? ", step " + c.step : ""}. It decides nothing.`), block(c.result, { label: "result of its own check" })));
  else kids.push(el("section", { class: "half" }, el("div", { class: "toolhead" }, el("h3", {}, "The agent's own last check"), mark(null, "", "", "none seen")), el("p", { class: "dim" }, "No tool call looks like a test.")));
  return section("verdict", "Verdict", el("div", { class: "halves" }, kids), body.tamper && rows.tamper[i] ? el("details", { open: true }, el("summary", {}, "What was left for the verifier to trip over"), block(typeof body.tamper === "object" ? JSON.stringify(body.tamper, null, 2) : body.tamper, { label: "tampering" })) : null);
}

// When the model was asked, when tools ran, from the first moment to the last.
function timeLane(i, body) {
  const spans = [];
  for (const call of body.calls) if (call.t) spans.push({ lane: 0, from: call.t[0], mid: call.t[1], to: call.t[2] ?? call.t[1], text: `call ${call.i}: ${duration((call.t[2] ?? call.t[1]) - call.t[0])}`, bad: !!call.error });
  for (const run of body.runs) if (run.t) spans.push({ lane: 1, from: run.t[0], to: run.t[1], text: `${run.name}: ${duration(run.t[1] - run.t[0])}`, bad: run.is_error });
  if (spans.length === 0) return null;
  const start = Math.min(given(rows.started[i]) ? rows.started[i] : Infinity, ...spans.map((s) => s.from)), last = Math.max(...spans.map((s) => s.to));
  const score = (rows.score[i] || 0) / 1000, end = Math.max(last, Math.min(given(rows.finished[i]) && rows.finished[i] >= last ? rows.finished[i] : last, last + score + 5));
  if (score > 0) spans.push({ lane: 2, from: Math.max(last, end - score), to: end, text: "verify: " + duration(score) });
  const wide = Math.max(620, Math.min(1660, main.clientWidth - 80)), left = 56, H = 92, x = (t) => left + (t - start) / (end - start || 1) * (wide - left - 8);
  const names = ["model", "tools", "verify"];
  const kids = names.map((name, lane) => [vec("text", { x: left - 8, y: 20 + lane * 22, "text-anchor": "end", class: "tick" }, name), vec("line", { x1: left, x2: wide - 8, y1: 16 + lane * 22, y2: 16 + lane * 22, class: "grid" })]);
  for (const s of spans) {
    const y = 8 + s.lane * 22, w = Math.max(1.5, x(s.to) - x(s.from));
    kids.push(vec("rect", { x: x(s.from), y, width: w, height: 16, rx: 2, class: "fill " + (s.bad ? "bad" : "c" + (s.lane === 2 ? 4 : s.lane === 0 ? 2 : 3)) }, vec("title", {}, s.text)));
    if (given(s.mid) && s.mid > s.from && s.mid < s.to) kids.push(vec("rect", { x: x(s.from), y: y + 5, width: x(s.mid) - x(s.from), height: 6, class: "wait" }));
  }
  for (const t of steps(0, end - start, wide / 110)) kids.push(vec("text", { x: x(start + t), y: H - 8, "text-anchor": t === 0 ? "start" : "middle", class: "tick" }, duration(t)));
  const label = `Time: ${plural(body.calls.length, "call")} of the model, ${plural(body.runs.length, "tool run")} within ${duration(end - start)}`;
  return el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Timeline, scrolls" }, vec("svg", { viewBox: `0 0 ${wide} ${H}`, class: "lane", role: "img", "aria-label": label }, kids));
}

// What each call was given and gave, and whether it went on from what was sampled.
function tokenLedger(body) {
  const entries = body.ledger, usage = body.calls.filter((c) => c.usage);
  if (!entries && usage.length === 0) return null;
  const list = entries ? entries.map((e) => ({ call: e.call, keep: e.keep, tail: e.tail, out: e.out, lp: e.lp, drift: e.drift }))
    : usage.map((c) => ({ call: c.i, keep: c.usage.cached || 0, tail: (c.usage.prompt || 0) - (c.usage.cached || 0), out: c.usage.completion || 0, drift: null }));
  const most = Math.max(1, ...list.map((e) => e.keep + e.tail + e.out)), drifts = list.filter((e) => e.drift === "realign" || e.drift === "fork").length;
  const bar = (e) => {
    let at = 0;
    const part = (n, name) => { const r = vec("rect", { x: at / most * 300, y: 2, width: n / most * 300, height: 10, class: "fill " + name }); at += n; return r; };
    return vec("svg", { viewBox: "0 0 300 14", class: "tokenbar", role: "img", "aria-label": `${e.keep} kept, ${e.tail} new, ${e.out} sampled` }, part(e.keep, "c5"), part(e.tail, "c2"), part(e.out, "c0"));
  };
  const heads = ["Call", entries ? "Kept" : "Cached", "New", "Sampled", entries ? "Log-probs" : null, entries ? "Drift" : null, ""].filter((h) => h !== null);
  const table = el("table", { class: "board ledger" }, el("thead", {}, el("tr", {}, heads.map((h, n) => el("th", { scope: "col", class: n < (entries ? 5 : 4) ? "num" : null }, h === "" ? el("span", { class: "sr" }, "drawn") : h)))),
    el("tbody", {}, list.map((e) => el("tr", {}, el("th", { scope: "row", class: "num" }, e.call), el("td", { class: "num" }, count(e.keep)), el("td", { class: "num" }, count(e.tail)), el("td", { class: "num" }, count(e.out)),
      entries ? el("td", { class: "num" }, given(e.lp) ? count(e.lp) : none) : null, entries ? el("td", {}, el("span", { class: "flag " + (e.drift === "realign" || e.drift === "fork" ? "bad" : "") }, shown(e.drift))) : null, el("td", {}, bar(e))))));
  const note = entries ? `Ids from the server. ${drifts ? `${plural(drifts, "call")} of ${entries.length} did not go on from what was sampled.` : "Every prompt goes on from what was sampled."}` : "The server gave no token ids; these are its counts.";
  return section("tokens", "Tokens", el("p", { class: "dim" }, note), body.violations ? body.violations.map((v) => el("p", { class: "banner warn" }, shown(v))) : null,
    el("p", { class: "legend" }, el("span", {}, el("i", { class: "key f5" }), entries ? "common with the call before" : "cached"), el("span", {}, el("i", { class: "key f2" }), "new"), el("span", {}, el("i", { class: "key f0" }), "sampled")),
    el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Token ledger, scrolls" }, table));
}

function pathTo(byIndex, leaf) {
  const path = [];
  for (let at = byIndex.get(leaf); at; at = byIndex.get(at.p)) path.push(at);
  return path.reverse();
}

// The messages of a thread as turns: a sampled message begins one, tools answer in it.
function turnsOf(path) {
  const out = [];
  let turn = null;
  for (const node of path) {
    if (node.o === "sampled" || node.role === "assistant" && node.o !== "prompt") { turn = { node, answers: [] }; out.push(turn); }
    else if (node.role === "tool" && turn) turn.answers.push(node);
    else { out.push({ node, plain: true }); turn = null; }
  }
  return out;
}

function drawTurns(body, leaf, fetchWire) {
  const byIndex = new Map(body.nodes.map((n) => [n.i, n])), calls = new Map(body.calls.map((c) => [c.i, c])), runs = new Map(body.runs.map((r) => [r.i, r]));
  const files = new Map(), path = pathTo(byIndex, leaf);
  let n = 0;
  const failedAfter = new Map();
  body.calls.filter((c) => c.error).forEach((c) => { const key = c.leaf ?? -1; failedAfter.set(key, [...(failedAfter.get(key) || []), c]); });
  const failedCalls = (node) => (failedAfter.get(node.i) || []).map((c) => el("section", { class: "message callerror" }, el("div", { class: "who" }, el("span", { class: "role" }, `call ${c.i} failed`), callFacts(c)),
    block(`${c.error.code}${given(c.error.status) ? " " + c.error.status : ""}: ${whole(c.error.msg)}`, { label: "error of the call" }), c.error.body ? block(c.error.body, { label: "answer of the server" }) : null, wireDetails(c, fetchWire)));
  const cutOff = path.length && given(path[0].p) ? [el("p", { class: "banner" }, `${plural(body.n_nodes - body.nodes.length, "message")} between are not in this page.`)] : [];
  return cutOff.concat(turnsOf(path).map((turn) => {
    if (turn.plain) return [message(turn.node), failedCalls(turn.node)];
    n++;
    const call = calls.get(turn.node.c), used = new Set();
    const pairs = (turn.node.calls || []).map((c) => {
      const answer = turn.answers.find((a) => !used.has(a) && a.answers === c.id) || null;
      if (answer) used.add(answer);
      return toolPair(c, answer, answer ? runs.get(answer.r) : null, files);
    });
    return [el("section", { class: "turn", id: "turn-" + n, tabindex: -1, "aria-label": "turn " + n },
      el("div", { class: "who" }, el("a", { class: "turnno", href: "#", onclick: (event) => { event.preventDefault(); history.replaceState(null, "", location.hash.split("?")[0] + "?turn=" + event.currentTarget.dataset.turn); }, "data-turn": n, title: "link to this turn" }, `Turn ${n}`), callFacts(call),
        turn.node.scrubbed ? replaced() : null),
      turn.node.reasoning ? el("details", { class: "reasoning", open: whole(turn.node.reasoning).length < 600 }, el("summary", {}, "Reasoning"), block(turn.node.reasoning, { label: "reasoning", class: "prose" })) : null,
      given(turn.node.text) && whole(turn.node.text).trim() !== "" ? block(turn.node.text, { label: "answer", class: "prose" }) : null, pairs,
      turn.answers.filter((a) => !used.has(a)).map((a) => toolPair({ name: a.name || "tool", args: "" }, a, runs.get(a.r), files)), wireDetails(call, fetchWire)),
    failedCalls(turn.node), turn.answers.map(failedCalls)];
  }));
}

// Other threads: forks, second speakers, what a compaction left behind.
function leavesOf(body) {
  const parents = new Set(body.nodes.map((n) => n.p).filter(given));
  return body.nodes.filter((n) => !parents.has(n.i)).map((n) => n.i);
}

function turnSection(body, fetchWire) {
  const leaves = leavesOf(body), main = body.leaf ?? leaves.at(-1), holder = el("div", { class: "turns" }, drawTurns(body, main, fetchWire));
  const orphans = body.nodes.length === 0 ? el("p", { class: "empty" }, "There are no messages: it ended before the model was asked.") : null;
  const order = [main, ...leaves.filter((l) => l !== main)];
  const choose = order.length > 1 ? el("label", { class: "threads" }, "Thread ", el("select", { onchange: (event) => holder.replaceChildren(...drawTurns(body, Number(event.target.value), fetchWire).flat(Infinity).filter(Boolean)) },
    order.map((leaf, n) => el("option", { value: leaf }, n === 0 ? "main" : `branch that ends at message ${leaf}`)))) : null;
  const open = el("button", { type: "button", class: "quiet", onclick: () => unfold() }, "Expand all");
  return section("turns", "Turns", el("div", { class: "turnbar" }, choose, open), orphans, holder);
}

function unfold() {
  document.querySelectorAll("#main .folded + .more").forEach((b) => b.click());
  document.querySelectorAll("#main details.reasoning").forEach((d) => { d.open = true; });
}

const jsonBlock = (value, label) => given(value) ? block(typeof value === "string" || "h" in Object(value) ? value : JSON.stringify(value, null, 2), { label }) : null;

function recordSection(i, body) {
  const part = (title, value) => given(value) && JSON.stringify(value) !== "[]" && JSON.stringify(value) !== "{}" ? el("details", {}, el("summary", {}, title), jsonBlock(value, title)) : null;
  const logs = body.logs && body.logs.length ? el("details", { open: body.logs.some((l) => l.level === "error") }, el("summary", {}, `Log (${body.logs.length + (body.logs_dropped || 0)} lines)`),
    el("pre", { class: "block logs", tabindex: 0, role: "group", "aria-label": "log" }, body.logs.map((l) => el("span", { class: "dl" }, el("span", { class: "dim" }, `${given(l.t) ? new Date(l.t * 1000).toISOString().slice(11, 23) : ""} ${l.level} `), pieces(l.text))))) : null;
  return section("record", "Record", facts([["id", rows.id[i]], ["run", rows.run[i]], ["group", rows.group[i]], ["attempt", (rows.attempt[i] || 0) + 1], ["model", rows.model[i]], ["weights", rows.version[i]],
    ["started", stamp(rows.started[i])], ["tool mode", body.tool_mode], ["seed", body.seed], ["task hash", body.task.hash], ["engine", body.engine ? body.engine.version : null],
    ["trained on", body.use ? (body.use.rl ? "yes" : "no: " + (body.use.why || []).join("; ")) : null]]),
  logs, part("Task metadata", body.task.metadata), part("Sandbox", body.sandbox), part("Reward", body.reward), part("Model", body.policy), part("Agent", body.agent), part("Tools as the model saw them", body.tools), part("Notes", body.notes),
  part("Metadata", body.metadata), part("Artifacts", body.artifacts), part("Modules", body.modules), part("Broken rules and replaced bytes", body.errors));
}

function headOf(i) {
  const place = list.order.indexOf(i), near = (d) => list.order[place + d];
  const step = (to, word, key) => el("a", given(to) ? { class: "quiet step", href: linkTo(to), title: `${word} in the list (${key})` } : { class: "quiet step off", "aria-disabled": "true", role: "link" }, word);
  return el("div", { class: "heading traj" }, el("p", { class: "crumb" }, el("a", { href: listLink(list.query, list.sort === "urgency" ? "" : list.sort) }, "Trajectories"), " / ", el("span", {}, shown(rows.id[i]))),
    el("div", { class: "titleline" }, el("h1", {}, shown(rows.task[i])), badge(rows.status[i]), el("span", { class: "rewardbig" }, "reward ", el("strong", {}, rows.reward[i] === null ? "none" : number(rows.reward[i]))), flagsOf(i),
      el("span", { class: "steps" }, step(place > 0 ? near(-1) : null, "Previous", "p"), step(place >= 0 ? near(1) : null, "Next", "n"))));
}

const MARKS = {
  touched: "protected files were changed or removed", planted: "files were left that stand in for tests or their runner",
  history: "a command looked into the repository's history", spoofed: "something was written that reads like a verdict", mismatch: "its own check passed",
};

function bodyNodes(i, body) {
  const fetchWire = page.live ? (call) => ask(`api/wire?row=${i}&call=${call}`) : null;
  const mismatch = body.check && body.check.passed && body.verify && body.verify.success === false;
  const text = (value) => given(value) && whole(value) !== "" ? value : null;
  const lane = timeLane(i, body);
  return [
    mismatch ? el("div", { class: "banner bad", role: "note" }, el("strong", {}, "Mismatch. "), "The agent's own last check passed, and the official verifier failed. Only the verifier counts.") : null,
    body.marks && body.marks.some((m) => m !== "mismatch") ? el("div", { class: "banner warn", role: "note" }, el("strong", {}, "Worth a look. "), `Read from the record: ${body.marks.map((m) => MARKS[m] || m).join("; ")}.`) : null,
    text(body.error) ? el("div", { class: "banner bad", role: "note" }, el("strong", {}, `${rows.class[i] || "error"}: `), pieces(body.error)) : null,
    facts([["ended by", body.stop ? [shown(body.stop.reason), body.stop.detail ? el("span", { class: "dim" }, " ", pieces(body.stop.detail)) : null] : null], ["whose doing", rows.class[i]], ["model", rows.model[i]], ["steps", count(rows.steps[i])], ["tool calls", count(rows.tools[i])],
      ["tokens", given(rows.tokens[i]) ? `${count(rows.tokens[i])}${given(rows.out[i]) ? `, ${count(rows.out[i])} sampled` : ""}` : null], ["time", duration(rows.dur[i])],
      ["components", body.reward && body.reward.components ? JSON.stringify(body.reward.components) : null]]),
    text(body.task.description) ? section("task", "Task", block(body.task.description, { label: "task", class: "prose", lines: 12 })) : null,
    verdicts(i, body), lane ? section("time", "Time", lane) : null, turnSection(body, fetchWire), tokenLedger(body), recordSection(i, body),
  ];
}

function trajectoryView(i, params) {
  const holder = el("div", { class: "body" }, el("p", { class: "empty", role: "status" }, "Reading…"));
  const node = el("div", { class: "trajectory" }, headOf(i), holder);
  let gone = false, at = 0;
  const turns = () => [...document.querySelectorAll(".turn")];
  const go = (n) => {
    const list_ = turns();
    if (list_.length === 0) return;
    at = Math.max(1, Math.min(list_.length, n));
    const turn = list_[at - 1];
    turn.focus({ preventScroll: true });
    scrollTo(0, scrollY + turn.getBoundingClientRect().top - document.getElementById("bar").offsetHeight - 8);
    history.replaceState(null, "", location.hash.split("?")[0] + "?turn=" + at);
  };
  const near = (d) => { const place = list.order.indexOf(i); if (place >= 0 && given(list.order[place + d])) location.hash = linkTo(list.order[place + d]); };
  return {
    node,
    async start() {
      scrollTo(0, 0);
      let body, problem;
      try { body = await bodyOf(i); } catch (e) { problem = e; }
      if (gone) return;
      if (body) holder.replaceChildren(...bodyNodes(i, body).filter(Boolean));
      else holder.replaceChildren(el("div", { class: "banner" }, problem ? shown(problem.message) : ["What it said is not in this page: there is room for some, failures first. All of it: ",
        el("code", {}, shown(`agentbox view ${page.source}`)), " or ", el("code", {}, shown(`agentbox traj show ${page.source}#${rows.id[i]}`)), rows.error[i] ? el("p", {}, shown(rows.error[i])) : null]),
      facts([["ended by", rows.stop[i]], ["whose doing", rows.class[i]], ["model", rows.model[i]], ["steps", count(rows.steps[i])], ["tool calls", count(rows.tools[i])], ["tokens", count(rows.tokens[i])], ["time", duration(rows.dur[i])], ["started", stamp(rows.started[i])]]));
      document.documentElement.dataset.ready = rows.key[i];
      if (params.get("turn")) go(Number(params.get("turn")));
    },
    stop() { gone = true; },
    keys: { j: () => go(at + 1), k: () => go(at - 1), n: () => near(1), p: () => near(-1), e: unfold, u: () => { location.hash = listLink(list.query, list.sort === "urgency" ? "" : list.sort); }, Escape: () => { location.hash = listLink(list.query, list.sort === "urgency" ? "" : list.sort); } },
  };
}
