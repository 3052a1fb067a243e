// One trajectory from its task to its verdict.
function unfold() {
  document.querySelectorAll("#main .folded + .more").forEach((b) => b.click());
  document.querySelectorAll("#main details.reasoning").forEach((d) => {
    d.open = true;
  });
}

const jsonBlock = (value, label) =>
  given(value)
    ? block(typeof value === "string" || "h" in Object(value) ? value : JSON.stringify(value, null, 2), { label })
    : null;

function recordSection(i, body) {
  const part = (title, value) =>
    given(value) && JSON.stringify(value) !== "[]" && JSON.stringify(value) !== "{}"
      ? el("details", {}, el("summary", {}, title), jsonBlock(value, title))
      : null;
  const logs =
    body.logs && body.logs.length
      ? el(
          "details",
          { open: body.logs.some((l) => l.level === "error") },
          el("summary", {}, `Log (${body.logs.length + (body.logs_dropped || 0)} lines)`),
          el(
            "pre",
            { class: "block logs", tabindex: 0, role: "group", "aria-label": "log" },
            body.logs.map((l) =>
              el(
                "span",
                { class: "dl" },
                el(
                  "span",
                  { class: "dim" },
                  `${given(l.t) ? new Date(l.t * 1000).toISOString().slice(11, 23) : ""} ${l.level} `,
                ),
                pieces(l.text),
              ),
            ),
          ),
        )
      : null;
  return section(
    "record",
    "Record",
    facts([
      ["id", rows.id[i]],
      ["run", rows.run[i]],
      ["group", rows.group[i]],
      ["attempt", (rows.attempt[i] || 0) + 1],
      ["model", rows.model[i]],
      ["weights", rows.version[i]],
      ["started", stamp(rows.started[i])],
      ["tool mode", body.tool_mode],
      ["seed", body.seed],
      ["task hash", body.task.hash],
      ["engine", body.engine ? body.engine.version : null],
      ["trained on", body.use ? (body.use.rl ? "yes" : "no: " + (body.use.why || []).join("; ")) : null],
    ]),
    logs,
    part("Task metadata", body.task.metadata),
    part("Sandbox", body.sandbox),
    part("Reward", body.reward),
    part("Model", body.policy),
    part("Agent", body.agent),
    part("Tools as the model saw them", body.tools),
    part("Notes", body.notes),
    part("Metadata", body.metadata),
    part("Artifacts", body.artifacts),
    part("Modules", body.modules),
    part("Broken rules and replaced bytes", body.errors),
  );
}

function headOf(i) {
  const place = list.order.indexOf(i),
    near = (d) => list.order[place + d];
  const step = (to, word, key) =>
    el(
      "a",
      given(to)
        ? { class: "quiet step", href: linkTo(to), title: `${word} in the list (${key})` }
        : { class: "quiet step off", "aria-disabled": "true", role: "link" },
      word,
    );
  return el(
    "div",
    { class: "heading traj" },
    el(
      "p",
      { class: "crumb" },
      el("a", { href: listLink(list.query, list.sort === "urgency" ? "" : list.sort) }, "Trajectories"),
      " / ",
      el("span", {}, shown(rows.id[i])),
    ),
    el(
      "div",
      { class: "titleline" },
      el("h1", {}, shown(rows.task[i])),
      badge(rows.status[i]),
      el(
        "span",
        { class: "rewardbig" },
        "reward ",
        el("strong", {}, rows.reward[i] === null ? "none" : number(rows.reward[i])),
      ),
      flagsOf(i),
      el(
        "span",
        { class: "steps" },
        step(place > 0 ? near(-1) : null, "Previous", "p"),
        step(place >= 0 ? near(1) : null, "Next", "n"),
      ),
    ),
  );
}

const MARKS = {
  touched: "protected files were changed or removed",
  planted: "files were left that stand in for tests or their runner",
  history: "a command looked into the repository's history",
  spoofed: "something was written that reads like a verdict",
  mismatch: "its own check passed",
};

function bodyNodes(i, body) {
  const fetchWire = page.live ? (call) => ask(`api/wire?row=${i}&call=${call}`) : null;
  const mismatch = body.check && body.check.passed && body.verify && body.verify.success === false;
  const text = (value) => (given(value) && whole(value) !== "" ? value : null);
  const lane = timeLane(i, body);
  return [
    mismatch
      ? el(
          "div",
          { class: "banner bad", role: "note" },
          el("strong", {}, "Mismatch. "),
          "The agent's own last check passed, and the official verifier failed. Only the verifier counts.",
        )
      : null,
    body.marks && body.marks.some((m) => m !== "mismatch")
      ? el(
          "div",
          { class: "banner warn", role: "note" },
          el("strong", {}, "Worth a look. "),
          `Read from the record: ${body.marks.map((m) => MARKS[m] || m).join("; ")}.`,
        )
      : null,
    text(body.error)
      ? el(
          "div",
          { class: "banner bad", role: "note" },
          el("strong", {}, `${rows.class[i] || "error"}: `),
          pieces(body.error),
        )
      : null,
    facts([
      [
        "ended by",
        body.stop
          ? [
              shown(body.stop.reason),
              body.stop.detail ? el("span", { class: "dim" }, " ", pieces(body.stop.detail)) : null,
            ]
          : null,
      ],
      ["whose doing", rows.class[i]],
      ["model", rows.model[i]],
      ["steps", count(rows.steps[i])],
      ["tool calls", count(rows.tools[i])],
      [
        "tokens",
        given(rows.tokens[i])
          ? `${count(rows.tokens[i])}${given(rows.out[i]) ? `, ${count(rows.out[i])} sampled` : ""}`
          : null,
      ],
      ["time", duration(rows.dur[i])],
      ["components", body.reward && body.reward.components ? JSON.stringify(body.reward.components) : null],
    ]),
    text(body.task.description)
      ? section("task", "Task", block(body.task.description, { label: "task", class: "prose", lines: 12 }))
      : null,
    verdicts(i, body),
    lane ? section("time", "Time", lane) : null,
    turnSection(body, fetchWire),
    tokenLedger(body),
    recordSection(i, body),
  ];
}

function trajectoryView(i, params) {
  const holder = el("div", { class: "body" }, el("p", { class: "empty", role: "status" }, "Reading…"));
  const node = el("div", { class: "trajectory" }, headOf(i), holder);
  let gone = false,
    at = 0;
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
  const near = (d) => {
    const place = list.order.indexOf(i);
    if (place >= 0 && given(list.order[place + d])) location.hash = linkTo(list.order[place + d]);
  };
  return {
    node,
    async start() {
      scrollTo(0, 0);
      let body, problem;
      try {
        body = await bodyOf(i);
      } catch (e) {
        problem = e;
      }
      if (gone) return;
      if (body) holder.replaceChildren(...bodyNodes(i, body).filter(Boolean));
      else
        holder.replaceChildren(
          el(
            "div",
            { class: "banner" },
            problem
              ? shown(problem.message)
              : [
                  "What it said is not in this page: there is room for some, failures first. All of it: ",
                  el("code", {}, shown(`agentbox view ${page.source}`)),
                  " or ",
                  el("code", {}, shown(`agentbox traj show ${page.source}#${rows.id[i]}`)),
                  rows.error[i] ? el("p", {}, shown(rows.error[i])) : null,
                ],
          ),
          facts([
            ["ended by", rows.stop[i]],
            ["whose doing", rows.class[i]],
            ["model", rows.model[i]],
            ["steps", count(rows.steps[i])],
            ["tool calls", count(rows.tools[i])],
            ["tokens", count(rows.tokens[i])],
            ["time", duration(rows.dur[i])],
            ["started", stamp(rows.started[i])],
          ]),
        );
      document.documentElement.dataset.ready = rows.key[i];
      if (params.get("turn")) go(Number(params.get("turn")));
    },
    stop() {
      gone = true;
    },
    keys: {
      j: () => go(at + 1),
      k: () => go(at - 1),
      n: () => near(1),
      p: () => near(-1),
      e: unfold,
      u: () => {
        location.hash = listLink(list.query, list.sort === "urgency" ? "" : list.sort);
      },
      Escape: () => {
        location.hash = listLink(list.query, list.sort === "urgency" ? "" : list.sort);
      },
    },
  };
}
