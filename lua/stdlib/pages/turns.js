// One turn: what was thought and said, and each tool call beside its result.
function parsedArguments(text) {
  if (typeof text !== "string") return null;
  try {
    const value = JSON.parse(text);
    return value && typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

// Lines that differ, by longest common subsequence; beyond a size the one is shown as replaced by the other.
function lineDiff(before, after) {
  const a = before === "" ? [] : before.split("\n"),
    b = after === "" ? [] : after.split("\n");
  let head = 0,
    tail = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const x = a.slice(head, a.length - tail),
    y = b.slice(head, b.length - tail),
    out = a.slice(0, head).map((t) => [" ", t]);
  if (x.length * y.length > 250000) {
    out.push(...x.map((t) => ["-", t]), ...y.map((t) => ["+", t]));
  } else {
    const best = Array.from({ length: x.length + 1 }, () => new Uint32Array(y.length + 1));
    for (let i = x.length - 1; i >= 0; i--)
      for (let j = y.length - 1; j >= 0; j--)
        best[i][j] = x[i] === y[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
    let i = 0,
      j = 0;
    while (i < x.length || j < y.length) {
      if (i < x.length && j < y.length && x[i] === y[j]) {
        out.push([" ", x[i]]);
        i++;
        j++;
      } else if (i < x.length && (j >= y.length || best[i + 1][j] >= best[i][j + 1])) out.push(["-", x[i++]]);
      else out.push(["+", y[j++]]);
    }
  }
  return out.concat(a.slice(a.length - tail).map((t) => [" ", t]));
}

const DIFF_LINES = 240;

function diffBlock(path, before, after) {
  let lines = lineDiff(before, after);
  const near = new Set();
  lines.forEach(([kind], i) => {
    if (kind !== " ") for (let k = i - 3; k <= i + 3; k++) near.add(k);
  });
  const added = lines.filter((l) => l[0] === "+").length,
    removed = lines.filter((l) => l[0] === "-").length,
    kids = [];
  let skipped = 0,
    drawn = 0;
  const skip = () => {
    if (skipped) kids.push(el("span", { class: "dl skip" }, `⋯ ${plural(skipped, "line")}`));
    skipped = 0;
  };
  lines.forEach(([kind, text], i) => {
    if (!near.has(i) || drawn >= DIFF_LINES) {
      skipped++;
      return;
    }
    skip();
    drawn++;
    kids.push(
      el(
        "span",
        { class: "dl " + (kind === "+" ? "add" : kind === "-" ? "del" : "same") },
        el("span", { class: "sign" }, kind),
        shown(text),
      ),
    );
  });
  skip();
  const words = `changes of ${path}: ${added} lines added, ${removed} removed`;
  return el(
    "div",
    { class: "diff" },
    el(
      "div",
      { class: "diffhead" },
      el("span", { class: "path" }, shown(path)),
      el("span", { class: "plus" }, "+" + added),
      el("span", { class: "minus" }, "−" + removed),
    ),
    el("pre", { class: "block", tabindex: 0, role: "group", "aria-label": words }, kids),
  );
}

// What a call did to a file, when its arguments tell. `files` holds what earlier calls wrote.
function fileChange(args, files, failed) {
  const path = args.path ?? args.file_path,
    old = args.old_string ?? args.old_str,
    fresh = args.new_string ?? args.new_str,
    content = args.content ?? args.file_text;
  if (typeof path !== "string") return null;
  if (typeof old === "string" && typeof fresh === "string") {
    const known = files.get(path),
      text = known !== undefined && known.includes(old) ? known.replace(old, () => fresh) : undefined;
    if (text !== undefined && !failed) files.set(path, text);
    return text !== undefined ? diffBlock(path, known, text) : diffBlock(path, old, fresh);
  }
  if (typeof content === "string") {
    const known = files.get(path) ?? "";
    if (!failed) files.set(path, content);
    return diffBlock(path, known, content);
  }
  return null;
}

function argumentsOf(call, files, failed) {
  const args = parsedArguments(call.args);
  if (!args) return block(call.args ?? "", { label: "arguments", lines: 14 });
  const change = fileChange(args, files, failed),
    names = Object.keys(args);
  if (change) return change;
  if (names.length === 0) return el("p", { class: "dim" }, "no arguments");
  return names.map((name) => {
    const value = args[name],
      text = typeof value === "string" ? value : JSON.stringify(value);
    return text.length > 60 || text.includes("\n") || names.length === 1
      ? [el("div", { class: "argname" }, shown(name)), block(text, { label: "argument " + name, lines: 14 })]
      : el("div", { class: "arg" }, el("span", { class: "argname" }, shown(name)), " ", el("code", {}, shown(text)));
  });
}

const replaced = () =>
  el("span", { class: "flag", title: "bytes that were no UTF-8 stand as U+FFFD" }, "bytes replaced");

function toolPair(call, answer, run, files) {
  const failed = run ? run.is_error || (given(run.exit) && run.exit !== 0) : false,
    facts = [];
  if (run && given(run.exit))
    facts.push(el("span", { class: "exit " + (run.exit === 0 ? "ok" : "no") }, "exit " + run.exit));
  if (run && run.t) facts.push(el("span", { class: "dim" }, duration(run.t[1] - run.t[0])));
  if (run && run.is_error) facts.push(el("span", { class: "flag bad" }, "error"));
  if (run && run.cut)
    facts.push(el("span", { class: "flag", title: "not shown to the model" }, `${bytes(run.cut)} cut`));
  if (answer && answer.scrubbed) facts.push(replaced());
  const result = answer ? answer.text : run ? run.result : null;
  return el(
    "div",
    { class: "tool" + (failed ? " failed" : "") },
    el(
      "div",
      { class: "given" },
      el("div", { class: "toolhead" }, el("span", { class: "toolname" }, shown(call.name || "?"))),
      argumentsOf(call, files, run ? run.is_error : false),
    ),
    el(
      "div",
      { class: "got" },
      el("div", { class: "toolhead" }, el("span", { class: "dim" }, "result"), facts),
      given(result)
        ? block(result, { label: "result of " + (call.name || "tool") })
        : el("p", { class: "dim" }, "no result"),
      run && run.error ? [el("div", { class: "argname" }, "error"), block(run.error, { label: "error" })] : null,
      run && run.trace
        ? [el("div", { class: "argname" }, "traceback"), block(run.trace, { label: "traceback" })]
        : null,
    ),
  );
}

const finishOf = (call) => (call && call.finish ? (call.finish.raw ?? call.finish.norm) : null);

function callFacts(call) {
  if (!call) return null;
  const parts = [];
  if (call.usage) parts.push(`${short(call.usage.prompt)} → ${short(call.usage.completion)} tokens`);
  if (call.usage && call.usage.cached) parts.push(`${short(call.usage.cached)} cached`);
  if (call.t) parts.push(duration(call.t[2] - call.t[0]));
  if (finishOf(call)) parts.push(finishOf(call));
  if (call.tries > 1) parts.push(plural(call.tries, "try").replace("trys", "tries"));
  if (call.versions && call.versions.length) parts.push("weights " + call.versions.map((v) => v.v).join("+"));
  return el("span", { class: "dim facts" }, shown(parts.join("  ·  ")));
}

function message(node, label) {
  return el(
    "section",
    { class: "message from-" + (node.role || "other") },
    el(
      "div",
      { class: "who" },
      el("span", { class: "role" }, shown(label || node.role || "?")),
      node.o && node.o !== "prompt" ? el("span", { class: "dim" }, shown(node.o)) : null,
      node.scrubbed ? replaced() : null,
    ),
    given(node.text) && whole(node.text) !== ""
      ? block(node.text, { label: label || node.role, class: "prose", lines: node.role === "system" ? 6 : 18 })
      : el("p", { class: "dim" }, "no text"),
  );
}

function wireBlock(title, wire) {
  if (!wire) return null;
  const body = wire.body ?? wire.params;
  return [
    el(
      "h4",
      {},
      title,
      el(
        "span",
        { class: "dim" },
        ` ${bytes(wire.bytes || 0)}${wire.params ? ", without its messages and tools: those are the turns above" : ""}`,
      ),
    ),
    wire.lost
      ? el("p", { class: "dim" }, shown(wire.lost))
      : given(body)
        ? block(pretty(body), { label: title })
        : el("p", { class: "dim" }, "not in this page"),
  ];
}

function pretty(body) {
  if (typeof body !== "string") return body;
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}

// The request and the response of a call, drawn when they are opened.
function wireDetails(call, fetchWire) {
  if (!call || (!call.request && !call.response)) return null;
  const details = el("details", { class: "wire" }, el("summary", {}, `Request and response of call ${call.i}`));
  let drawn = false;
  details.addEventListener("toggle", async () => {
    if (!details.open || drawn) return;
    drawn = true;
    let request = call.request,
      response = call.response;
    if (fetchWire) {
      try {
        ({ request, response } = await fetchWire(call.i));
      } catch (problem) {
        details.append(el("p", { class: "banner warn" }, shown(problem.message)));
      }
    }
    details.append(
      ...[
        el(
          "dl",
          { class: "plainfacts" },
          [
            ["model", call.model],
            ["response id", call.id],
            ["sampling", call.sampling ? whole(call.sampling) : null],
            ["notes", call.notes ? whole(call.notes) : null],
          ]
            .filter((e) => e[1])
            .map(([k, v]) => [el("dt", {}, k), el("dd", {}, shown(v))]),
        ),
        wireBlock("Request", request),
        wireBlock("Response", response),
      ]
        .flat()
        .filter(Boolean),
    );
  });
  return details;
}
