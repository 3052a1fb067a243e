// A served page: rows as they come, the run's state, what was said when it is opened.
const live = { state: null, total: null, damaged: 0, pending: false, timer: null, lost: false };

function showLive() {
  const place = document.getElementById("live"),
    over = ["over", "stopped", "killed"].includes(live.state) || live.state === null;
  const word = live.lost
    ? "connection lost"
    : live.reading
      ? "reading"
      : live.state === null
        ? ""
        : over
          ? live.state
          : "live";
  place.replaceChildren(
    el(
      "span",
      { class: "pulse" + (over || live.lost ? " over" : "") },
      word && !over && !live.lost ? el("span", { "aria-hidden": "true" }, "●") : null,
      shown(`${word} ${count(rows.n)}${live.total && live.total > rows.n ? " of " + count(live.total) : ""}`),
    ),
  );
}

async function fetchRows(wanted) {
  while (rows.n < wanted) {
    const answer = await ask(`api/rows?from=${rows.n}`);
    let at = answer.from;
    const before = rows.n;
    for (const columns of answer.parts) {
      if (at + columns.n > rows.n) addRows(columns, rows.n - at);
      at += columns.n;
    }
    if (rows.n === before) break;
    showLive();
  }
}

// Draws again what shows rows, not more often than it costs little.
function redraw() {
  if (live.timer) return;
  live.timer = setTimeout(
    async () => {
      live.timer = null;
      if (document.hidden || !view) return;
      if (view.refresh) {
        view.refresh();
        return;
      }
      if (!view.overview || (main.contains(document.activeElement) && document.activeElement !== main)) return;
      await fetchFigures();
      if (!view.overview) return;
      const at = scrollY;
      view = overview();
      main.replaceChildren(view.node);
      scrollTo(0, at);
    },
    rows.n > 20000 ? 8000 : rows.n > 2000 ? 3000 : 800,
  );
}

async function fetchFigures() {
  try {
    page.figures = await ask("api/figures");
  } catch {
    /* the next one may come */
  }
}

function tellState(state) {
  Object.assign(live, { state: state.state ?? null, total: state.total ?? null, reading: state.reading, lost: false });
  if (state.damaged) page.damaged = state.damaged;
  showLive();
  if (state.n > rows.n && !live.pending) {
    live.pending = true;
    fetchRows(state.n)
      .then(redraw, () => {
        live.lost = true;
        showLive();
      })
      .finally(() => {
        live.pending = false;
      });
  }
}

async function startLive() {
  const state = await ask("api/state");
  Object.assign(live, { state: state.state ?? null, total: state.total ?? null, reading: state.reading });
  await fetchRows(state.n);
  await fetchFigures();
  const events = new EventSource("api/events");
  events.addEventListener("state", (event) => tellState(JSON.parse(event.data)));
  events.addEventListener("error", () => {
    live.lost = true;
    showLive();
  });
  showLive();
}
