// The turns of a trajectory, by thread.
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
    if (node.o === "sampled" || (node.role === "assistant" && node.o !== "prompt")) {
      turn = { node, answers: [] };
      out.push(turn);
    } else if (node.role === "tool" && turn) turn.answers.push(node);
    else {
      out.push({ node, plain: true });
      turn = null;
    }
  }
  return out;
}

function drawTurns(body, leaf, fetchWire) {
  const byIndex = new Map(body.nodes.map((n) => [n.i, n])),
    calls = new Map(body.calls.map((c) => [c.i, c])),
    runs = new Map(body.runs.map((r) => [r.i, r]));
  const files = new Map(),
    path = pathTo(byIndex, leaf);
  let n = 0;
  const failedAfter = new Map();
  body.calls
    .filter((c) => c.error)
    .forEach((c) => {
      const key = c.leaf ?? -1;
      failedAfter.set(key, [...(failedAfter.get(key) || []), c]);
    });
  const failedCalls = (node) =>
    (failedAfter.get(node.i) || []).map((c) =>
      el(
        "section",
        { class: "message callerror" },
        el("div", { class: "who" }, el("span", { class: "role" }, `call ${c.i} failed`), callFacts(c)),
        block(`${c.error.code}${given(c.error.status) ? " " + c.error.status : ""}: ${whole(c.error.msg)}`, {
          label: "error of the call",
        }),
        c.error.body ? block(c.error.body, { label: "answer of the server" }) : null,
        wireDetails(c, fetchWire),
      ),
    );
  const cutOff =
    path.length && given(path[0].p)
      ? [
          el(
            "p",
            { class: "banner" },
            `${plural(body.n_nodes - body.nodes.length, "message")} between are not in this page.`,
          ),
        ]
      : [];
  return cutOff.concat(
    turnsOf(path).map((turn) => {
      if (turn.plain) return [message(turn.node), failedCalls(turn.node)];
      n++;
      const call = calls.get(turn.node.c),
        used = new Set();
      const pairs = (turn.node.calls || []).map((c) => {
        const answer = turn.answers.find((a) => !used.has(a) && a.answers === c.id) || null;
        if (answer) used.add(answer);
        return toolPair(c, answer, answer ? runs.get(answer.r) : null, files);
      });
      return [
        el(
          "section",
          { class: "turn", id: "turn-" + n, tabindex: -1, "aria-label": "turn " + n },
          el(
            "div",
            { class: "who" },
            el(
              "a",
              {
                class: "turnno",
                href: "#",
                onclick: (event) => {
                  event.preventDefault();
                  history.replaceState(
                    null,
                    "",
                    location.hash.split("?")[0] + "?turn=" + event.currentTarget.dataset.turn,
                  );
                },
                "data-turn": n,
                title: "link to this turn",
              },
              `Turn ${n}`,
            ),
            callFacts(call),
            turn.node.scrubbed ? replaced() : null,
          ),
          turn.node.reasoning
            ? el(
                "details",
                { class: "reasoning", open: whole(turn.node.reasoning).length < 600 },
                el("summary", {}, "Reasoning"),
                block(turn.node.reasoning, { label: "reasoning", class: "prose" }),
              )
            : null,
          given(turn.node.text) && whole(turn.node.text).trim() !== ""
            ? block(turn.node.text, { label: "answer", class: "prose" })
            : null,
          pairs,
          turn.answers
            .filter((a) => !used.has(a))
            .map((a) => toolPair({ name: a.name || "tool", args: "" }, a, runs.get(a.r), files)),
          wireDetails(call, fetchWire),
        ),
        failedCalls(turn.node),
        turn.answers.map(failedCalls),
      ];
    }),
  );
}

// Other threads: forks, second speakers, what a compaction left behind.
function leavesOf(body) {
  const parents = new Set(body.nodes.map((n) => n.p).filter(given));
  return body.nodes.filter((n) => !parents.has(n.i)).map((n) => n.i);
}

function turnSection(body, fetchWire) {
  const leaves = leavesOf(body),
    main = body.leaf ?? leaves.at(-1),
    holder = el("div", { class: "turns" }, drawTurns(body, main, fetchWire));
  const orphans =
    body.nodes.length === 0
      ? el("p", { class: "empty" }, "There are no messages: it ended before the model was asked.")
      : null;
  const order = [main, ...leaves.filter((l) => l !== main)];
  const choose =
    order.length > 1
      ? el(
          "label",
          { class: "threads" },
          "Thread ",
          el(
            "select",
            {
              onchange: (event) =>
                holder.replaceChildren(
                  ...drawTurns(body, Number(event.target.value), fetchWire).flat(Infinity).filter(Boolean),
                ),
            },
            order.map((leaf, n) =>
              el("option", { value: leaf }, n === 0 ? "main" : `branch that ends at message ${leaf}`),
            ),
          ),
        )
      : null;
  const open = el("button", { type: "button", class: "quiet", onclick: () => unfold() }, "Expand all");
  return section("turns", "Turns", el("div", { class: "turnbar" }, choose, open), orphans, holder);
}
