// Elements and text. Whatever came from a model, a tool or a server goes through `shown`, which makes text nodes.
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attrs, kids) {
  for (const [name, value] of Object.entries(attrs || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else
      node.setAttribute(
        name,
        value === true ? "" : name === "title" || name === "aria-label" ? tame(String(value)) : String(value),
      );
  }
  for (const kid of kids.flat(Infinity)) {
    if (kid !== null && kid !== undefined && kid !== false) node.append(kid);
  }
  return node;
}

const el = (name, attrs, ...kids) => fill(document.createElement(name), attrs, kids);
const vec = (name, attrs, ...kids) =>
  fill(document.createElementNS(SVG, name), attrs, name === "title" ? kids.map(tame) : kids);

// Escape sequences that colour, other controls, marks that reorder or hide text, halves of characters.
const ODD = new RegExp(
  "\\x1b\\[([0-9;:]*)m|\\x1b\\][^\\x07\\x1b]*(?:\\x07|\\x1b\\\\)|\\r(?=\\n)|" +
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u00ad\\u061c\\u115f\\u1160\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\ufff9-\\ufffb" +
    "\\ud800-\\udfff\\u{e0000}-\\u{e007f}]",
  "gu",
);
const NAMES = {
  0x200b: "ZWSP",
  0x200c: "ZWNJ",
  0x200d: "ZWJ",
  0x200e: "LRM",
  0x200f: "RLM",
  0x202a: "LRE",
  0x202b: "RLE",
  0x202c: "PDF",
  0x202d: "LRO",
  0x202e: "RLO",
  0x2066: "LRI",
  0x2067: "RLI",
  0x2068: "FSI",
  0x2069: "PDI",
  0x61c: "ALM",
  0xfeff: "BOM",
  0x2028: "LSEP",
  0x2029: "PSEP",
  0xad: "SHY",
};

// The same where only characters fit: a title, a label.
function tame(text) {
  return text.replace(ODD, "\u25a1");
}

function control(char) {
  const code = char.codePointAt(0);
  const hex = "U+" + code.toString(16).toUpperCase().padStart(4, "0");
  const word = code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? "\u2421" : NAMES[code] || hex;
  return el("span", { class: "odd", title: hex }, word);
}

// Colours of a terminal as classes; what else it was told to do is not done.
function sgr(state, codes) {
  const list = codes === "" ? [0] : codes.split(/[;:]/).map(Number);
  for (let i = 0; i < list.length; i++) {
    const code = list[i];
    if (code === 0) {
      state.fg = null;
      state.bold = false;
    } else if (code === 1) state.bold = true;
    else if (code === 22) state.bold = false;
    else if (code >= 30 && code <= 37) state.fg = code - 30;
    else if (code >= 90 && code <= 97) state.fg = code - 90;
    else if (code === 39) state.fg = null;
    else if (code === 38 || code === 48) i += list[i + 1] === 5 ? 2 : list[i + 1] === 2 ? 4 : 0;
  }
}

function shown(text) {
  const out = document.createDocumentFragment();
  const state = { fg: null, bold: false };
  let at = 0;
  const plain = (to) => {
    if (to <= at) return;
    const piece = text.slice(at, to);
    const name = [state.fg === null ? "" : "a" + state.fg, state.bold ? "ab" : ""].join(" ").trim();
    out.append(name ? el("span", { class: name }, piece) : piece);
  };
  text = String(text);
  for (const match of text.matchAll(ODD)) {
    plain(match.index);
    at = match.index + match[0].length;
    if (match[1] !== undefined) sgr(state, match[1]);
    else if (match[0].length === 1 || match[0].codePointAt(0) > 0xffff) {
      if (match[0] !== "\r" || text[at] !== "\n") out.append(control(match[0]));
    } else out.append(control("\x1b"), el("span", { class: "odd" }, "OSC"));
  }
  plain(text.length);
  return out;
}

// A text that may have been cut: a string, or {h, n, t}.
const whole = (text) =>
  text === null || text === undefined
    ? ""
    : typeof text === "string"
      ? text
      : typeof text === "object" && "h" in text
        ? text.h + "\n…\n" + text.t
        : JSON.stringify(text, null, 2);

function pieces(text) {
  if (text && typeof text === "object" && "h" in text && "t" in text) {
    return [shown(text.h), el("span", { class: "gap" }, `… ${bytes(text.n)} are not in this page …`), shown(text.t)];
  }
  return [shown(whole(text))];
}

const lineCount = (text) => {
  let n = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) n++;
  return n;
};

// A block of text, folded when it is long.
function block(text, options = {}) {
  const plain = whole(text),
    lines = lineCount(plain),
    limit = options.lines || 18;
  const pre = el(
    "pre",
    { class: "block " + (options.class || ""), tabindex: 0, role: "group", "aria-label": options.label || "text" },
    pieces(text),
  );
  if (lines <= limit + 4 && plain.length <= limit * 160) return pre;
  pre.classList.add("folded");
  const button = el("button", {
    class: "more",
    type: "button",
    "aria-expanded": "false",
    onclick: () => {
      const folded = pre.classList.toggle("folded");
      button.textContent = folded ? label : "Show less";
      button.setAttribute("aria-expanded", String(!folded));
    },
  });
  const label = lines > limit ? `Show all ${count(lines)} lines` : `Show all ${bytes(plain.length)}`;
  button.textContent = label;
  return el("div", { class: "foldable" }, pre, button);
}

const say = (text) => {
  document.getElementById("say").textContent = text;
};
