// The frame: where one is, the keys, light and dark.
const bar = document.getElementById("bar"),
  main = document.getElementById("main"),
  root = document.documentElement;
const THEMES = ["auto", "light", "dark"];
let view = null;

function keep(name, value) {
  try {
    if (value === undefined) return localStorage.getItem(name);
    localStorage.setItem(name, value);
  } catch {
    /* a page from a file may have no storage */
  }
  return null;
}

let theme = THEMES.includes(keep("agentbox-theme")) ? keep("agentbox-theme") : "auto";
const themeButton = el("button", {
  type: "button",
  class: "quiet",
  onclick: () => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % 3]),
});

function setTheme(name) {
  theme = name;
  if (name === "auto") delete root.dataset.theme;
  else root.dataset.theme = name;
  themeButton.textContent = { auto: "◐ Auto", light: "☀ Light", dark: "☾ Dark" }[name];
  themeButton.setAttribute("aria-label", `Theme: ${name}. Change it.`);
  keep("agentbox-theme", name);
}

const HELP = [
  ["g o", "overview"],
  ["g l", "all trajectories"],
  ["/", "filter"],
  ["j  k", "next, previous row or turn"],
  ["Enter", "open the row"],
  ["n  p", "next, previous trajectory of the list"],
  ["e", "expand everything of a trajectory"],
  ["u  Esc", "back to the list; clear the filter"],
  ["t", "light, dark"],
  ["?", "this help"],
];
const FILTERS = [
  ["word", "in id, task, model, status, reason, error"],
  ["status:failed", "also task: model: stop: class: group: run: id:"],
  ["stop:max_turns$", "exactly so"],
  ["reward<0.5", "also steps tokens tools dur attempt version; < <= > >= ="],
  ["flag:mismatch", "also tamper, drift, unscored, retry, rl"],
  ["-status:success", "not so"],
  ['"two words"', "with a blank"],
];
const help = el(
  "dialog",
  { class: "help", "aria-labelledby": "helptitle" },
  el("h2", { id: "helptitle" }, "Keys"),
  el(
    "dl",
    {},
    HELP.map(([k, w]) => [
      el(
        "dt",
        {},
        k.split("  ").map((key) => el("kbd", {}, key)),
      ),
      el("dd", {}, w),
    ]),
  ),
  el("h2", {}, "Filter"),
  el(
    "dl",
    {},
    FILTERS.map(([k, w]) => [el("dt", {}, el("code", {}, k)), el("dd", {}, w)]),
  ),
  el("form", { method: "dialog" }, el("button", { class: "quiet" }, "Close")),
);

const tabs = [
  ["#/", "Overview"],
  ["#/list", "Trajectories"],
].map(([href, label]) => el("a", { href, class: "tab" }, label));
bar.append(
  el("button", { type: "button", class: "skip", onclick: () => main.focus() }, "Skip to content"),
  el(
    "a",
    { class: "brand", href: "#/", "aria-label": "agentbox: overview" },
    vec(
      "svg",
      { viewBox: "0 0 16 16", "aria-hidden": "true" },
      vec("rect", { x: 1, y: 1, width: 14, height: 14, rx: 3 }),
      vec("path", { d: "M5 8.2l2.2 2.3L11.3 6" }),
    ),
    el("span", {}, "agentbox"),
  ),
  el("nav", { "aria-label": "Views" }, tabs),
  el("span", { class: "runname" }, shown(page.title)),
  el("span", { id: "live" }),
  themeButton,
  el(
    "button",
    { type: "button", class: "quiet", "aria-label": "Keys and filters", onclick: () => help.showModal() },
    "?",
  ),
);
document.body.append(help);
setTheme(theme);

function unescaped(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?"),
    params = new URLSearchParams(query || "");
  if (view) view.stop();
  delete root.dataset.ready;
  let i = null,
    tab = 0;
  if (path.startsWith("t/")) {
    const key = unescaped(path.slice(2));
    i = byKey.get(key) ?? null;
    tab = 1;
    if (list.order.length === 0) reorder();
    view =
      i === null
        ? {
            node: el("p", { class: "empty" }, "There is no trajectory ", el("code", {}, shown(key)), " in this page."),
            start() {},
            stop() {},
            keys: {},
          }
        : trajectoryView(i, params);
  } else if (path === "list") {
    tab = 1;
    if (list.query !== (params.get("q") || "") || list.sort !== (params.get("sort") || "urgency")) {
      list.at = 0;
      list.scroll = 0;
    }
    list.query = params.get("q") || "";
    const sort = params.get("sort") || "urgency";
    list.sort = rows[sort.replace(/^-/, "")] ? sort : "urgency";
    view = listView();
  } else {
    view = overview();
  }
  main.replaceChildren(view.node);
  tabs.forEach((a, n) => {
    if (n === tab) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  });
  document.title = tame(`${i === null ? page.title : rows.task[i]} · agentbox`);
  view.start();
  if (!path.startsWith("t/") || i === null) root.dataset.ready = path || "overview";
}

let before = null;
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open || !view) return;
  const typing = event.target.closest("input, select, textarea");
  if (typing && event.key !== "Escape") return;
  if (typing) {
    event.target.blur();
    return;
  }
  const chord = before === "g" ? { o: "#/", l: "#/list" }[event.key] : null;
  before = event.key;
  if (chord) {
    location.hash = chord;
    return;
  }
  if (event.key === "?") {
    help.showModal();
    return;
  }
  if (event.key === "t") {
    setTheme(THEMES[(THEMES.indexOf(theme) + 1) % 3]);
    say(`Theme: ${theme}`);
    return;
  }
  if (event.key === "Enter" && event.target.closest("a, button, summary")) return;
  const act = view.keys[event.key];
  if (act && !(event.target.closest("pre, .scroll") && /^Arrow|Page|Home|End/.test(event.key))) {
    event.preventDefault();
    act();
  }
});
addEventListener("hashchange", () => {
  route();
  main.focus({ preventScroll: true });
});
addEventListener("beforeprint", () =>
  document.querySelectorAll("#main details.reasoning").forEach((d) => {
    d.open = true;
  }),
);
if (page.live)
  startLive().then(route, (problem) =>
    main.replaceChildren(el("p", { class: "banner bad", role: "alert" }, shown(problem.message))),
  );
else route();
