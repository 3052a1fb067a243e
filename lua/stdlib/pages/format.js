// Numbers as people read them.
const none = "–";
const given = (value) => value !== null && value !== undefined;

const grouped = new Intl.NumberFormat("en-US");

function count(n) {
  return given(n) ? grouped.format(n) : none;
}

function short(n) {
  if (!given(n)) return none;
  const size = Math.abs(n);
  if (size >= 1e9) return (n / 1e9).toFixed(1) + "G";
  if (size >= 1e6) return (n / 1e6).toFixed(1) + "M";
  if (size >= 1e4) return (n / 1e3).toFixed(0) + "k";
  if (size >= 1e3) return (n / 1e3).toFixed(1) + "k";
  return String(Math.round(n));
}

function number(n, digits = 4) {
  if (!given(n)) return none;
  return Number.isInteger(n) ? String(n) : String(Number(n.toPrecision(digits)));
}

function duration(s) {
  if (!given(s)) return none;
  if (s < 0.001) return "0 s";
  if (s < 1) return Math.round(s * 1000) + " ms";
  if (s < 100) return Number(s.toPrecision(3)) + " s";
  const m = Math.floor(s / 60);
  if (m < 60) return `${m} min ${Math.round(s % 60)} s`;
  return `${Math.floor(m / 60)} h ${m % 60} min`;
}

function bytes(n) {
  if (n < 1000) return n + (n === 1 ? " byte" : " bytes");
  if (n < 1e6) return (n / 1e3).toFixed(1) + " kB";
  return (n / 1e6).toFixed(1) + " MB";
}

const percent = (x) => (given(x) ? (x * 100).toFixed((x > 0 && x < 0.1) || (x > 0.995 && x < 1) ? 1 : 0) + " %" : none);
const stamp = (s) => (given(s) ? new Date(s * 1000).toISOString().slice(0, 19).replace("T", " ") + " UTC" : none);

// An estimate with its interval.
const spread = (e, format) => (given(e.low) ? `${format(e.low)} – ${format(e.high)}` : "no interval");

const STATUS = {
  success: { word: "success", mark: "✓", order: 9 },
  failed: { word: "failed", mark: "✗", order: 3 },
  timeout: { word: "timeout", mark: "◷", order: 4 },
  max_steps: { word: "max steps", mark: "⤒", order: 5 },
  error: { word: "error", mark: "!", order: 1 },
};
const statusOf = (name) => STATUS[name] || { word: String(name), mark: "·", order: 2 };

function badge(name) {
  const status = statusOf(name);
  return el(
    "span",
    { class: "badge s-" + (STATUS[name] ? name : "other") },
    el("span", { class: "mark", "aria-hidden": "true" }, status.mark),
    shown(status.word),
  );
}

const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
