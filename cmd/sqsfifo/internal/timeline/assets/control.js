// Pointer, keys, and the beginning.
const page = document.body;

let drag = null;
const fingers = new Map(); // where each pointer is that is down

// pinch keeps the times under two fingers while one of them moves to x.
function pinch(id, x) {
  const [still] = [...fingers].filter(([other]) => other !== id).map(([, at]) => at);
  const was = fingers.get(id), scale = (timeAt(was) - timeAt(still)) / (x - still);
  if (!(scale > 0)) return; // the fingers have passed each other
  const from = timeAt(still) - (still - namesWidth) * scale;
  setTime(from, from + plotWidth() * scale);
}

lanesCanvas.addEventListener("pointerdown", (e) => {
  if (e.button !== 0) return;
  const box = lanesCanvas.getBoundingClientRect();
  fingers.set(e.pointerId, e.clientX - box.left);
  drag = { x: e.clientX, y: e.clientY, from: view.from, to: view.to, top: scroller.scrollTop, moved: false, names: e.clientX - box.left < namesWidth };
  lanesCanvas.setPointerCapture(e.pointerId);
});
lanesCanvas.addEventListener("pointermove", (e) => {
  const box = lanesCanvas.getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top;
  if (fingers.size === 2) {
    hideCard();
    if (fingers.has(e.pointerId)) pinch(e.pointerId, x);
    if (drag) drag.moved = true;
  }
  if (fingers.has(e.pointerId)) fingers.set(e.pointerId, x);
  if (fingers.size > 1) return;
  if (drag) {
    const dx = e.clientX - drag.x, dy = e.clientY - drag.y;
    if (!drag.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
    drag.moved = true;
    hideCard();
    scroller.scrollTop = drag.top - dy;
    if (!drag.names) {
      const shift = dx / plotWidth() * (drag.to - drag.from);
      setTime(drag.from - shift, drag.to - shift);
    }
    return;
  }
  lanesCanvas.style.cursor = x < namesWidth ? "pointer" : "";
  const hit = x < namesWidth ? null : hitAt(x, y, 0);
  const row = hit ? hit.row : -1;
  if (hit && row !== view.hovered) showCard(hit, e.clientX, e.clientY);
  if (!hit && !pinned) {
    const lane = data.complete && x >= namesWidth && y + scroller.scrollTop < lanes.height ? laneAt(y + scroller.scrollTop) : -1;
    if (lane >= 0 && !inDetail(lanes.order[lane]) && y + scroller.scrollTop < lanes.tops[lane] + rowHeight) showCounts(lanes.order[lane], Math.floor((x - namesWidth) / columnWidth), e.clientX, e.clientY);
    else hideCard();
  }
  if (row !== view.hovered) { view.hovered = row; redraw(); }
});
lanesCanvas.addEventListener("pointerup", (e) => {
  const was = drag;
  fingers.delete(e.pointerId);
  drag = null;
  if (!was || was.moved) return;
  const box = lanesCanvas.getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top;
  if (x < namesWidth) {
    const i = laneAt(y + scroller.scrollTop);
    if (i < 0 || y + scroller.scrollTop > lanes.height) return;
    const g = lanes.order[i];
    if (lanes.open[g]) lanes.open[g] = 0; else openLane(g);
    stack();
    redraw();
    return;
  }
  const hit = hitAt(x, y, e.pointerType === "touch" ? 8 : 0);
  if (hit) {
    const i = listed.rows.indexOf(hit.row);
    if (i >= 0) showItem(i);
    select(hit.row, false);
    pinCard(hit.row);
  } else { select(-1, false); hideCard(); }
});
lanesCanvas.addEventListener("pointercancel", (e) => { fingers.delete(e.pointerId); drag = null; });
lanesCanvas.addEventListener("pointerleave", () => { if (view.hovered >= 0) { view.hovered = -1; redraw(); } if (!pinned) hideCard(); });
lanesCanvas.addEventListener("dblclick", (e) => {
  const x = e.clientX - lanesCanvas.getBoundingClientRect().left;
  if (x > namesWidth) zoom(0.4, x);
});
scroller.addEventListener("wheel", (e) => {
  const x = e.clientX - lanesCanvas.getBoundingClientRect().left;
  if (x < namesWidth) return; // scrolls
  e.preventDefault();
  hideCard();
  if (e.shiftKey && !e.ctrlKey) { scroller.scrollTop += e.deltaY || e.deltaX; return; }
  if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) pan(e.deltaX / plotWidth());
  else zoom(Math.exp(Math.sign(e.deltaY) * Math.min(Math.abs(e.deltaY), 240) * (e.deltaMode ? 0.05 : 0.0022)), x);
}, { passive: false });
scroller.addEventListener("scroll", () => { if (pinned) hideCard(); redraw(); });

const overviewCanvas = byId("overview");
let overviewDrag = null;
const overviewAt = (e) => { const box = overviewCanvas.getBoundingClientRect(); return overviewTime((e.clientX - box.left) / box.width); };
overviewCanvas.addEventListener("pointerdown", (e) => {
  const at = overviewAt(e), length = view.to - view.from;
  if (at < view.from || at > view.to) setTime(at - length / 2, at + length / 2);
  overviewDrag = at - view.from;
  overviewCanvas.setPointerCapture(e.pointerId);
});
overviewCanvas.addEventListener("pointermove", (e) => {
  if (overviewDrag === null) return;
  const from = overviewAt(e) - overviewDrag;
  setTime(from, from + view.to - view.from);
});
for (const end of ["pointerup", "pointercancel"]) overviewCanvas.addEventListener(end, () => { overviewDrag = null; });
overviewCanvas.addEventListener("wheel", (e) => { e.preventDefault(); zoom(e.deltaY > 0 ? 1.3 : 1 / 1.3); }, { passive: false });

byId("map").addEventListener("click", (e) => {
  const box = byId("map").getBoundingClientRect();
  scroller.scrollTop = (e.clientY - box.top) / box.height * Math.max(lanes.height, box.height) - box.height / 2;
});

byId("list").addEventListener("scroll", () => fillList(false));
byId("list").addEventListener("keydown", (e) => {
  const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[e.key];
  const to = e.key === "Home" ? 0 : e.key === "End" ? listed.rows.length - 1 : by ? listed.cursor + by : -1;
  if (to < 0 && !by && e.key !== "Home") return;
  e.preventDefault();
  e.stopPropagation();
  goTo(to, true);
});

let typing = 0;
byId("search").addEventListener("input", (e) => {
  clearTimeout(typing);
  typing = setTimeout(() => search(e.target.value), rowCount > 200000 ? 250 : 80);
});
byId("sort").addEventListener("change", () => { arrange(); redraw(); });
byId("expand").addEventListener("click", () => {
  const at = view.selected >= 0 ? rows.group[view.selected] : lanes.order.length ? lanes.order[laneAt(scroller.scrollTop)] : -1;
  const offset = at >= 0 && lanes.place[at] >= 0 ? lanes.tops[lanes.place[at]] - scroller.scrollTop : 0;
  openAll(!lanes.open.includes(1));
  byId("spacer").style.height = Math.max(0, lanes.height - scroller.clientHeight) + "px";
  if (at >= 0 && lanes.place[at] >= 0) scroller.scrollTop = lanes.tops[lanes.place[at]] - offset;
  redraw();
});
byId("zoom-in").addEventListener("click", () => zoom(1 / 1.6));
byId("zoom-out").addEventListener("click", () => zoom(1.6));
byId("fit").addEventListener("click", () => setTime(whole.from, whole.to));
byId("theme").addEventListener("click", toggleTheme);
byId("help-open").addEventListener("click", () => byId("help").showModal());
addEventListener("resize", () => { fillList(false); redraw(); });
addEventListener("beforeprint", buildReport);

function step(by) {
  goTo(listed.cursor < 0 ? (by > 0 ? 0 : listed.rows.length - 1) : listed.cursor + by, false);
}

addEventListener("keydown", (e) => {
  const typed = e.target.matches("input, select, textarea");
  if (e.key === "Escape") {
    if (!card.hidden) hideCard();
    else if (byId("search").value) { clearTimeout(typing); byId("search").value = ""; search(""); }
    else if (view.kind >= 0) setFilter(-1, null);
    else select(-1, false);
    if (typed) e.target.blur();
    return;
  }
  if (typed || e.ctrlKey || e.metaKey || e.altKey || byId("help").open) return;
  const keys = {
    "/": () => byId("search").focus(), "?": () => byId("help").showModal(),
    "+": () => zoom(1 / 1.6), "=": () => zoom(1 / 1.6), "-": () => zoom(1.6), "0": () => setTime(whole.from, whole.to),
    ArrowLeft: () => pan(-0.1), ArrowRight: () => pan(0.1),
    ArrowUp: () => { scroller.scrollTop -= 3 * rowHeight; }, ArrowDown: () => { scroller.scrollTop += 3 * rowHeight; },
    Home: () => setTime(whole.from, whole.from + view.to - view.from), End: () => setTime(whole.to - view.to + view.from, whole.to),
    n: () => step(1), p: () => step(-1),
  };
  if (!keys[e.key]) return;
  e.preventDefault();
  keys[e.key]();
});

function describe() {
  const parts = [data.files.map((f) => visible(f)).join(", ")];
  if (data.replays_ms.length) parts.push("replayed after " + data.replays_ms.map(span).join(" and "));
  parts.push("scope " + data.scope, count(data.messages) + " messages in " + count(groupCount) + (groupCount === 1 ? " group" : " groups"));
  if (data.messages) parts.push(date(data.first) + " " + clockTime(data.first) + "–" + (date(data.first) === date(data.last) ? "" : date(data.last) + " ") + clockTime(data.last) + " UTC");
  byId("about").textContent = byId("about").title = parts.join(" · ");
  if (data.complete) return;
  byId("partial").hidden = false;
  const listedAll = findings.length === data.kinds.slice(0, duplicate).reduce((a, b) => a + b, 0);
  byId("partial").textContent = count(data.messages) + " messages: the numbers and the strip count all, the lanes have the " + (listedAll ? "" : "first ") + "findings and what they name.";
}

function buildLegend() {
  const box = byId("legend");
  kinds.forEach((kind, k) => box.append(make("span", "", markOf(k), " " + (kind.one || kind.title))));
  const sample = (text, pattern) => {
    const canvas = document.createElement("canvas"), label = make("span", "", canvas, " " + text);
    canvas.setAttribute("aria-hidden", "true");
    const paint = () => {
      const g = sized(canvas, 30, 12);
      g.fillStyle = theme.bar; g.fillRect(0, 1, 30, 10);
      if (pattern) { g.fillStyle = patterns[pattern]; g.fillRect(0, 1, 30, 10); }
      g.fillStyle = theme["bar-edge"]; g.fillRect(28.5, 0, 1.5, 12); g.fillRect(0, 10.5, 30, 1);
    };
    onTheme.push(paint);
    paint();
    box.append(label);
  };
  sample("the " + span(interval) + " of an ID");
  sample("something was lost to it", "hatch");
  sample("its key has two bodies", "dots");
}

makePatterns();
describe();
buildTiles();
buildChips();
buildLegend();
if (rowCount <= 400) openAll(true);
arrange();
listFindings();
draw();
page.dataset.messages = String(data.messages);
page.dataset.groups = String(groupCount);
requestAnimationFrame(() => { page.dataset.opened = String(Math.round(performance.now())); });
// After the picture, for those who do not see it.
(window.requestIdleCallback || setTimeout)(buildReport);

// For tests: the state, and how fast it pans.
window.sqsfifoPage = {
  view, stats, hits: () => hits, select: (number) => select(rowOf(number), true),
  mark: (number) => {
    const at = placeOnCanvas(rowOf(number)), box = lanesCanvas.getBoundingClientRect();
    return at && { x: box.left + at.x, y: box.top + at.y };
  },
  fps: (seconds, share) => new Promise((done) => {
    const length = (whole.to - whole.from) * share, start = performance.now();
    let frames = 0, last = start, slowest = 0, work = 0;
    const frame = (now) => {
      if (frames) slowest = Math.max(slowest, now - last);
      last = now;
      const t = (performance.now() - start) / (seconds * 1000);
      if (t >= 1) return done({ fps: frames / seconds, slowest, work: work / frames, shapes: stats.shapes });
      const from = whole.from + (whole.to - whole.from - length) * t;
      view.from = from; view.to = from + length;
      draw();
      work += stats.drawn;
      frames++;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }),
};
