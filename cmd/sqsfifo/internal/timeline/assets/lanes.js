// The picture: the lanes, their axis, the overview above and the map beside.
const scroller = byId("scroll"), lanesCanvas = byId("lanes");
const columnWidth = 6, mostDetailed = 3500, leastInterval = 10;

// A lane that is open is drawn in detail for longer: the lines in view bound its shapes.
const leastOpenInterval = 8;
const inDetail = (lane) => stats.detailed || (lanes.open[lane] && data.complete && interval / (view.to - view.from) * plotWidth() >= leastOpenInterval);
const stats = { shapes: 0, detailed: false, drawn: 0 };

// What the pointer can meet: marks, and merged findings.
let hits = [];

const patterns = {};
function makePatterns() {
  const tile = (draw) => {
    const c = document.createElement("canvas");
    c.width = c.height = 6;
    draw(c.getContext("2d"));
    return c;
  };
  const hatch = tile((g) => {
    g.strokeStyle = theme.lost; g.lineWidth = 1.3;
    for (const d of [-6, 0, 6]) { g.beginPath(); g.moveTo(d - 1, 7); g.lineTo(d + 7, -1); g.stroke(); }
  });
  const dots = tile((g) => {
    g.fillStyle = theme.bodies;
    for (const [x, y] of [[1.5, 1.5], [4.5, 4.5]]) { g.beginPath(); g.arc(x, y, 0.95, 0, 7); g.fill(); }
  });
  const g = lanesCanvas.getContext("2d");
  patterns.hatch = g.createPattern(hatch, "repeat");
  patterns.dots = g.createPattern(dots, "repeat");
}
onTheme.push(makePatterns, () => { themes++; redraw(); });
let themes = 0; // how often it changed

// A mark is drawn once and copied from then on.
const sprites = new Map(), spriteSize = 20;
function stamp(g, kind, x, y, r) {
  const ratio = window.devicePixelRatio || 1, key = kind * 100 + 2 * r;
  let sprite = sprites.get(key);
  if (!sprite || sprite.ratio !== ratio || sprite.themes !== themes) {
    sprite = { ratio, themes, canvas: document.createElement("canvas") };
    sprite.canvas.width = sprite.canvas.height = spriteSize * ratio;
    const s = sprite.canvas.getContext("2d");
    s.scale(ratio, ratio);
    drawMark(s, kind, spriteSize / 2, spriteSize / 2, r);
    sprites.set(key, sprite);
  }
  g.drawImage(sprite.canvas, Math.round((x - spriteSize / 2) * ratio) / ratio, Math.round((y - spriteSize / 2) * ratio) / ratio, spriteSize, spriteSize);
}

// cached keeps what a part of the picture looks like until its key changes.
function cached(key, width, height, paint) {
  const memory = {};
  return (g, x, y) => {
    const ratio = window.devicePixelRatio || 1, now = [key(), width(), height(), ratio, themes].join(" ");
    if (memory.key !== now) {
      memory.key = now;
      memory.canvas = document.createElement("canvas");
      paint(sized(memory.canvas, width(), height()), width(), height());
    }
    if (g && memory.canvas.width && memory.canvas.height) g.drawImage(memory.canvas, x, y, width(), height());
    return now;
  };
}

// sized fits a canvas to its place and returns its context.
function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const w = Math.round(width * ratio), h = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
  }
  const g = canvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  return g;
}

let asked = false;
function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; draw(); });
}

let fittedTo = 0;
function fitNames(width) {
  if (fittedTo === width) return;
  fittedTo = width;
  namesWidth = widthOfNames(data.groups, width, 84);
  document.documentElement.style.setProperty("--names", namesWidth + "px");
}

function draw() {
  const begun = performance.now();
  const width = scroller.clientWidth, height = scroller.clientHeight;
  fitNames(width);
  if (width <= namesWidth || !height) return; // on paper
  plot = Math.max(50, width - namesWidth);
  byId("spacer").style.height = Math.max(0, lanes.height - height) + "px";
  const g = sized(lanesCanvas, width, height);
  stats.shapes = 0;
  hits = [];
  const top = scroller.scrollTop;
  const first = lanes.order.length ? laneAt(top) : 0;
  let end = first, events = 0;
  while (end < lanes.order.length && lanes.tops[end] < top + height) {
    const lane = lanes.order[end++];
    events += firstAfter(lane, view.to) - firstAfter(lane, view.from - interval);
  }
  const barWidth = interval / (view.to - view.from) * plotWidth();
  stats.detailed = events <= mostDetailed && (barWidth >= leastInterval || !data.complete);
  const ticks = ticksOf();
  g.fillStyle = theme.line;
  for (const t of ticks.times) g.fillRect(Math.round(xOf(t)), 0, 1, Math.min(height, lanes.height - top));
  for (let i = first; i < end; i++) g.fillRect(namesWidth, Math.round(lanes.tops[i + 1] - top) - 1, width - namesWidth, 1);
  for (let i = first; i < end; i++) {
    if (inDetail(lanes.order[i])) drawDetailed(g, lanes.order[i], lanes.tops[i] - top, barWidth, height);
    else drawCounts(g, lanes.order[i], lanes.tops[i] - top);
  }
  drawRelation(g);
  drawNames(g, 0, 0);
  drawAxis(ticks);
  drawOverview();
  drawMap();
  stats.drawn = performance.now() - begun;
  document.body.dataset.shapes = String(stats.shapes);
  document.body.dataset.detailed = String(stats.detailed);
}

const yOf = (row, y) => lanes.open[rows.group[row]] && lineOf[row] >= 0 ? y + 3 + lineOf[row] * lineHeight + lineHeight / 2 : y + rowHeight / 2;

function dim(g, row) { g.globalAlpha = shown(row) ? 1 : 0.22; }

// drawDetailed draws each message: its bar if its ID was accepted, and its mark.
function drawDetailed(g, lane, y, barWidth, height) {
  const from = firstAfter(lane, view.from - interval), to = firstAfter(lane, view.to + (view.to - view.from) * 0.02);
  const open = lanes.open[lane], half = open ? 5 : 4;
  const wide = Math.max(1, Math.round(barWidth)), bars = [], marks = [];
  for (let i = from; i < to; i++) {
    const r = laneRows[i], cy = yOf(r, y), x = xOf(rows.at[r]);
    if (cy < -10 || cy > height + 10) continue;
    if (x >= namesWidth - 8) marks.push({ r, x, cy });
    if (!(rows.flags[r] & 3)) bars.push({ r, i, x: Math.round(x), top: Math.round(cy - half) });
  }
  const filtered = view.kind >= 0 || view.cause !== null || view.matches !== null;
  const each = (draw) => { for (const bar of bars) { if (filtered) dim(g, bar.r); draw(bar); } };
  g.fillStyle = theme.bar;
  each((bar) => g.fillRect(bar.x, bar.top, wide, 2 * half));
  each((bar) => {
    if (!rows.lostTo[bar.r] && !rows.twoBodies[bar.r]) return;
    g.fillStyle = rows.lostTo[bar.r] ? patterns.hatch : patterns.dots;
    g.fillRect(bar.x, bar.top, wide, 2 * half);
    stats.shapes++;
  });
  g.fillStyle = theme["bar-edge"];
  each((bar) => {
    g.fillRect(bar.x + wide - 1, bar.top - 1, 1, 2 * half + 2);
    g.fillRect(bar.x, bar.top + 2 * half, wide, 1);
  });
  stats.shapes += 3 * bars.length;
  if (open && barWidth > 150) {
    g.fillStyle = theme.text;
    g.font = '10px ui-monospace, "DejaVu Sans Mono", monospace';
    g.textBaseline = "middle";
    each((bar) => {
      if (rows.lostTo[bar.r] || rows.twoBodies[bar.r] || bar.x <= namesWidth - barWidth + 150) return;
      const next = nextOnLine(bar.i, to, bar.r);
      if (next >= 0 && xOf(rows.at[next]) - bar.x <= 150) return;
      g.fillText(visible(idOf(bar.r)).slice(0, 16), Math.max(bar.x, namesWidth) + 11, bar.top + half + 0.5);
      stats.shapes++;
    });
  }
  // The worst on top.
  marks.sort((a, b) => rows.kind[b.r] - rows.kind[a.r] || a.r - b.r);
  for (const { r, x, cy } of marks) {
    if (filtered) dim(g, r);
    stamp(g, rows.kind[r], x, cy, rows.kind[r] < duplicate ? 5.5 : 4.5);
    hits.push({ x, y: cy, half: 7, row: r, more: 1 });
  }
  stats.shapes += 2 * marks.length;
  g.globalAlpha = 1;
}

// nextOnLine returns the next row of a lane on the same line, -1 if there is none near.
function nextOnLine(i, to, row) {
  for (let k = i + 1; k < Math.min(to, i + 200); k++) if (lineOf[laneRows[k]] === lineOf[row]) return laneRows[k];
  return -1;
}

let ups = new Uint32Array(0), downs = new Uint32Array(0);

// drawCounts draws how many messages each column of a lane has, and the findings.
function drawCounts(g, lane, y) {
  const columns = Math.ceil(plotWidth() / columnWidth);
  if (ups.length < columns) { ups = new Uint32Array(columns); downs = new Uint32Array(columns); }
  ups.fill(0); downs.fill(0);
  const scale = columns / (view.to - view.from) * (plotWidth() / (columns * columnWidth));
  const to = firstAfter(lane, view.to), marks = [];
  let most = 1;
  for (let i = firstAfter(lane, view.from); i < to; i++) {
    const r = laneRows[i], c = Math.min(columns - 1, Math.floor((rows.at[r] - view.from) * scale));
    if (rows.kind[r] === refused) { marks.push(r); continue; }
    const n = rows.flags[r] & 1 ? ++downs[c] : ++ups[c];
    if (n > most) most = n;
    if (rows.kind[r] < again) marks.push(r);
  }
  const middle = Math.round(y + rowHeight / 2) + 1, unit = 8 / Math.sqrt(Math.max(most, 4));
  const columnsOf = (counts, kind, faded, up) => {
    g.globalAlpha = faded ? 0.3 : 1;
    g.fillStyle = theme[kinds[kind].name];
    for (let c = 0; c < columns; c++) {
      if (!counts[c]) continue;
      const h = Math.max(2, Math.round(unit * Math.sqrt(counts[c])));
      g.fillRect(namesWidth + c * columnWidth, up ? middle - h : middle + 1, columnWidth - 1, h);
      stats.shapes++;
    }
  };
  // Of a page without all messages the columns would count the wrong ones.
  if (data.complete) columnsOf(ups, delivered, view.kind >= 0 && view.kind !== delivered && view.kind !== again, true);
  if (data.complete) columnsOf(downs, duplicate, view.kind >= 0 && view.kind !== duplicate, false);
  g.globalAlpha = 1;
  drawMerged(g, marks, y + rowHeight / 2);
}

// drawMerged draws findings, those that would touch as one with their number.
function drawMerged(g, marks, y) {
  let i = 0;
  while (i < marks.length) {
    const x = xOf(rows.at[marks[i]]);
    let end = i + 1, worst = marks[i];
    const wide = () => end - i > 1 ? 19 + 6.5 * count(end - i).length : 14;
    while (end < marks.length && xOf(rows.at[marks[end]]) - x < wide()) {
      if (rows.kind[marks[end]] < rows.kind[worst]) worst = marks[end];
      end++;
    }
    const more = end - i;
    dim(g, worst);
    if (more > 1) {
      const text = count(more), width = 17 + 6.5 * text.length;
      g.fillStyle = theme.ground;
      g.fillRect(x - 7, y - 7.5, width, 15);
      g.strokeStyle = theme[kinds[rows.kind[worst]].name];
      g.lineWidth = 1;
      g.strokeRect(x - 7.5, y - 7.5, width + 1, 15);
      g.fillStyle = theme[kinds[rows.kind[worst]].name];
      g.font = "bold 11px system-ui, sans-serif";
      g.textBaseline = "middle";
      g.fillText(text, x + 8, y + 0.5);
      stats.shapes += 3;
    }
    if (more === 1 && rows.kind[worst] !== lost) {
      g.fillStyle = theme.ground;
      g.fillRect(x - 8, y - 7.5, 16, 15);
    }
    stamp(g, rows.kind[worst], x, y, rows.kind[worst] === bodies ? 6 : 5);
    stats.shapes += 3;
    hits.push({ x, y, half: 8, row: worst, more, until: more > 1 ? 17 + 6.5 * count(more).length : 0 });
    g.globalAlpha = 1;
    i = end;
  }
}

// placeOnCanvas returns where a row is drawn, null if its lane is not shown.
function placeOnCanvas(row) {
  const at = lanes.place[rows.group[row]];
  if (at < 0) return null;
  const y = lanes.tops[at] - scroller.scrollTop;
  return { x: xOf(rows.at[row]), y: inDetail(rows.group[row]) ? yOf(row, y) : y + rowHeight / 2 };
}

// drawRelation draws a line from the message that is looked at to the one it names.
function drawRelation(g) {
  const row = view.hovered >= 0 ? view.hovered : view.selected;
  if (row >= 0) {
    const here = placeOnCanvas(row);
    const other = rowOf(rows.kind[row] === bodies ? rows.other[row] : rows.of[row]);
    const there = other >= 0 ? placeOnCanvas(other) : null;
    if (here && there) {
      g.strokeStyle = theme[kinds[rows.kind[row]].name];
      g.lineWidth = 1.5;
      g.setLineDash([4, 3]);
      g.beginPath(); g.moveTo(here.x, here.y);
      g.quadraticCurveTo((here.x + there.x) / 2, Math.min(here.y, there.y) - 14, there.x, there.y);
      g.stroke();
      g.setLineDash([]);
      g.strokeRect(there.x - 8, there.y - 8, 16, 16);
    }
  }
  if (view.selected < 0) return;
  const here = placeOnCanvas(view.selected);
  if (!here) return;
  const age = performance.now() - view.pulse;
  const still = age > 900 || matchMedia("(prefers-reduced-motion: reduce)").matches;
  g.strokeStyle = theme.focus;
  g.lineWidth = 2;
  g.beginPath();
  g.arc(here.x, here.y, still ? 10 : 10 + 14 * Math.abs(Math.cos(age / 190)), 0, 7);
  g.stroke();
  if (!still) redraw();
}

// The names do not change while the time does.
const drawNames = cached(() => [scroller.scrollTop, lanes.version].join(" "), () => namesWidth, () => scroller.clientHeight, (g, width, height) => {
  const top = scroller.scrollTop;
  g.fillStyle = theme.panel;
  g.fillRect(0, 0, namesWidth, height);
  g.textBaseline = "middle";
  for (let i = lanes.order.length ? laneAt(top) : 0; i < lanes.order.length && lanes.tops[i] < top + height; i++) {
    const lane = lanes.order[i], end = lanes.tops[i + 1] - top, y = Math.max(lanes.tops[i] - top, Math.min(0, end - rowHeight)); // stays in view
    g.fillStyle = theme.line;
    g.fillRect(0, Math.round(lanes.tops[i + 1] - top) - 1, namesWidth, 1);
    let right = namesWidth - 8;
    g.font = "12px system-ui, sans-serif";
    g.textAlign = "right";
    for (const k of [lost, bodies, refused]) {
      const n = groupCounts[lane * kindCount + k];
      if (!n) continue;
      g.fillStyle = theme[kinds[k].name];
      g.fillText(count(n), right, y + rowHeight / 2);
      right -= g.measureText(count(n)).width + 9;
      drawMark(g, k, right, y + rowHeight / 2, 5);
      right -= 10;
    }
    g.textAlign = "left";
    g.fillStyle = theme.muted;
    g.fillText(lanes.open[lane] ? "▾" : "▸", 5, y + rowHeight / 2);
    g.fillStyle = theme.text;
    g.fillText(clipped(g, visible(data.groups[lane]) || "(no group)", right - 22), 18, y + rowHeight / 2);
  }
  g.fillStyle = theme.line;
  g.fillRect(namesWidth - 1, 0, 1, height);
  if (!lanes.order.length) {
    g.fillStyle = theme.muted;
    g.fillText("nothing matches", 18, 14);
  }
});

const clippedTexts = new Map();
function clipped(g, text, width) {
  const key = text + "\n" + Math.round(width);
  let out = clippedTexts.get(key);
  if (out !== undefined) return out;
  out = text;
  if (g.measureText(out).width > width) {
    let n = out.length;
    while (n > 1 && g.measureText(out.slice(0, n) + "…").width > width) n--;
    out = out.slice(0, n) + "…";
  }
  if (clippedTexts.size > 5000) clippedTexts.clear();
  clippedTexts.set(key, out);
  return out;
}

const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 108e5, 216e5, 432e5, 864e5, 1728e5, 6048e5, 2592e6, 7776e6, 31536e6];
function ticksOf() {
  const wanted = (view.to - view.from) / Math.max(2, plotWidth() / 110);
  const step = steps.find((s) => s >= wanted) || 315360e6;
  const times = [];
  for (let t = Math.ceil(view.from / step) * step; t < view.to; t += step) times.push(t);
  return { step, times };
}

function drawAxis(ticks) {
  const canvas = byId("axis"), width = lanesCanvas.clientWidth;
  const g = sized(canvas, byId("stage").clientWidth, 24);
  g.fillStyle = theme.panel;
  g.fillRect(0, 0, byId("stage").clientWidth, 24);
  g.font = "12px system-ui, sans-serif";
  g.textBaseline = "middle";
  g.fillStyle = theme.text;
  g.fillText(count(lanes.order.length) + (lanes.order.length === 1 ? " group" : " groups") + (lanes.order.length < groupCount ? " of " + count(groupCount) : ""), 8, 12);
  let day = "";
  for (const t of ticks.times) {
    const x = xOf(t);
    if (x > width - 20) break;
    g.fillStyle = theme.edge;
    g.fillRect(Math.round(x), 17, 1, 7);
    let text = ticks.step >= 864e5 ? date(t) : clockTime(t, ticks.step < 1000);
    if (ticks.step < 864e5 && date(t) !== day) {
      if (day !== "") text = date(t).slice(5) + " " + text;
      day = date(t);
    }
    g.fillStyle = theme.text;
    g.fillText(text, x + 4, 12);
  }
}

const overviewTime = (share) => whole.from + share * (whole.to - whole.from);
const overviewWidth = () => byId("top").clientWidth - namesWidth - 25, overviewHeight = 48;

const drawWholeLog = cached(() => "", overviewWidth, () => overviewHeight, (g, width) => {
  const { found, up, down, most } = overviewColumns(width);
  for (let x = 0; x < width; x += 2) {
    const i = x / 2;
    if (up[i]) { g.fillStyle = theme.delivered; const h = Math.max(1, 17 * Math.sqrt(up[i] / most)); g.fillRect(x, 31 - h, 1.5, h); }
    if (down[i]) { g.fillStyle = theme.duplicate; const h = Math.max(1, 15 * Math.sqrt(down[i] / most)); g.fillRect(x, 32, 1.5, h); }
    for (let k = refused; k >= 0; k--) {
      if (found[k][i]) { g.fillStyle = theme[kinds[k].name]; g.fillRect(x, k === lost ? 0 : 7, 2, k === lost ? 9 : 4); }
    }
  }
});

// drawOverview draws the whole log and a box around the part in view.
function drawOverview() {
  const width = overviewWidth(), g = sized(byId("overview"), width, overviewHeight);
  drawWholeLog(g, 0, 0);
  const scale = width / (whole.to - whole.from);
  const left = Math.max(1, (view.from - whole.from) * scale), right = Math.min(width - 1, (view.to - whole.from) * scale);
  g.strokeStyle = theme.text;
  g.lineWidth = 2;
  g.strokeRect(left, 1, Math.max(3, right - left), overviewHeight - 2);
}

function overviewColumns(width) {
  const n = Math.ceil(width / 2), make = () => new Uint32Array(n);
  const out = { found: [make(), make(), make(), make()], up: make(), down: make(), most: 1 };
  const scale = width / 2 / (whole.to - whole.from);
  for (let i = 0; i < 2048; i++) {
    const c = Math.min(n - 1, Math.max(0, Math.floor((data.bins.start + (i + 0.5) * data.bins.width - whole.from) * scale)));
    for (let k = 0; k < kindCount; k++) {
      const m = bins[k][i];
      if (!m) continue;
      if (k < duplicate && k !== again) out.found[k][c] += m;
      if (k === lost || k === duplicate) out.down[c] += m; else if (k !== refused) out.up[c] += m;
    }
    out.most = Math.max(out.most, out.up[c], out.down[c]);
  }
  return out;
}

// drawMap shows in which of the lanes, from top to bottom, the findings are.
const drawMapPicture = cached(() => lanes.version, () => 10, () => scroller.clientHeight, (g, width, height) => {
  const scale = height / Math.max(lanes.height, height);
  for (const k of [refused, bodies, lost]) {
    g.fillStyle = theme[kinds[k].name];
    for (let i = 0; i < lanes.order.length; i++) {
      if (!groupCounts[lanes.order[i] * kindCount + k]) continue;
      g.fillRect(k === lost ? 1 : k === bodies ? 4 : 7, lanes.tops[i] * scale, 3, Math.max(1.5, (lanes.tops[i + 1] - lanes.tops[i]) * scale - 0.5));
    }
  }
});

let mapDrawn = "";
function drawMap() {
  const now = drawMapPicture(null) + " " + scroller.scrollTop;
  if (now === mapDrawn) return;
  mapDrawn = now;
  const height = scroller.clientHeight, g = sized(byId("map"), 10, height);
  drawMapPicture(g, 0, 0);
  const scale = height / Math.max(lanes.height, height);
  g.strokeStyle = theme.text;
  g.lineWidth = 1;
  if (lanes.height > height) g.strokeRect(0.5, scroller.scrollTop * scale + 0.5, 9, Math.max(4, height * scale - 1));
}
