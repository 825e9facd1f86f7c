// The lanes: time runs from right to left past the line in the middle, which is now. What
// is right of it of a bar is how long its ID is remembered yet.
const lineHeight = 16, axisHeight = 24;
let namesWidth = 196; // follows the names and the width of the window
const scroller = byId("scroll"), lanesCanvas = byId("lanes");
let lanes = []; // { group, lines, top, entries }
let lanesHeight = 0;

// layLanes gives each remembered ID a line in the lane of its group, and each suppressed
// message the line of its original.
function layLanes(state) {
  const byGroup = new Map(), lineOfMessage = new Map();
  const laneOf = (group) => {
    if (!byGroup.has(group)) byGroup.set(group, { group, ends: [], entries: [], marks: [] });
    return byGroup.get(group);
  };
  const place = (entry, forgotten) => {
    const lane = laneOf(entry.group);
    let line = lane.ends.findIndex((end) => end <= entry.accepted);
    if (line < 0) line = lane.ends.length;
    lane.ends[line] = entry.until;
    lane.entries.push({ ...entry, line, forgotten });
    lineOfMessage.set(entry.message, { lane, line });
  };
  const known = new Set(state.window.map((entry) => entry.message));
  const past = new Map(); // originals that the queue forgets or has forgotten
  for (const s of state.suppression) if (!known.has(s.original.message)) past.set(s.original.message, s.original);
  const all = [...state.window.map((entry) => [entry, false]), ...[...past.values()].map((entry) => [entry, true])];
  all.sort((a, b) => a[0].accepted - b[0].accepted);
  for (const [entry, forgotten] of all) place(entry, forgotten);
  for (const s of state.suppression) {
    const at = lineOfMessage.get(s.original.message);
    at.lane.marks.push({ at: s.at, line: at.line, kind: s.lost ? lost : duplicate });
    const entry = at.lane.entries.find((e) => e.message === s.original.message);
    if (s.lost && entry) entry.lostTo = true;
  }
  lanes = [...byGroup.values()].sort((a, b) => a.group < b.group ? -1 : a.group > b.group ? 1 : 0);
  let top = 0;
  for (const lane of lanes) {
    lane.top = top;
    lane.height = Math.max(1, lane.ends.length) * lineHeight + 6;
    top += lane.height;
  }
  lanesHeight = top;
}

let hatch = null;
function makeHatch() {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const g = tile.getContext("2d");
  g.strokeStyle = theme.lost;
  g.lineWidth = 1.3;
  for (const d of [-6, 0, 6]) { g.beginPath(); g.moveTo(d - 1, 7); g.lineTo(d + 7, -1); g.stroke(); }
  hatch = lanesCanvas.getContext("2d").createPattern(tile, "repeat");
}
onTheme.push(makeHatch);
makeHatch();

function drawLanes(now, interval) {
  const width = scroller.clientWidth, height = scroller.clientHeight, ratio = window.devicePixelRatio || 1;
  namesWidth = widthOfNames(lanes.map((lane) => lane.group), width, 24);
  if (width <= namesWidth || !height) return 0; // on paper
  byId("spacer").style.height = Math.max(0, lanesHeight + axisHeight - height) + "px";
  if (lanesCanvas.width !== Math.round(width * ratio) || lanesCanvas.height !== Math.round(height * ratio)) {
    lanesCanvas.width = Math.round(width * ratio);
    lanesCanvas.height = Math.round(height * ratio);
    lanesCanvas.style.width = width + "px";
    lanesCanvas.style.height = height + "px";
  }
  const g = lanesCanvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  const from = now - interval * 1.1, to = now + interval * 1.1, scale = (width - namesWidth) / (to - from);
  const xOf = (ms) => namesWidth + (ms - from) * scale, top = scroller.scrollTop - axisHeight;
  let drawn = 0;
  g.textBaseline = "middle";
  g.fillStyle = theme.line;
  for (let t = Math.ceil(from / 60000) * 60000; t < to; t += 60000) g.fillRect(Math.round(xOf(t)), 0, 1, height);
  for (const lane of lanes) {
    const y = lane.top - top;
    if (y + lane.height < axisHeight || y > height) continue;
    g.fillStyle = theme.line;
    g.fillRect(0, Math.round(y + lane.height) - 1, width, 1);
    for (const e of lane.entries) {
      const x = Math.max(namesWidth, xOf(e.accepted)), end = xOf(e.until), middle = xOf(now), cy = y + 3 + e.line * lineHeight + lineHeight / 2;
      if (end < namesWidth) continue;
      drawn++;
      g.globalAlpha = 0.55;
      g.fillStyle = theme.bar;
      g.fillRect(x, cy - 5, Math.min(middle, end) - x, 10);
      g.globalAlpha = 1;
      if (end > middle) g.fillRect(middle, cy - 5, end - middle, 10);
      if (e.lostTo) { g.fillStyle = hatch; g.fillRect(x, cy - 5, end - x, 10); }
      g.fillStyle = theme["bar-edge"];
      g.fillRect(x, cy + 4.5, end - x, 1);
      g.fillRect(end - 1.5, cy - 6, 1.5, 12);
      const left = (e.until - now) / 1000;
      g.font = '11px ui-monospace, "DejaVu Sans Mono", monospace';
      if (left > 0) {
        g.fillStyle = theme.text;
        if (end - middle > 62 && !e.lostTo) g.fillText(span(Math.ceil(left) * 1000), middle + 6, cy + 0.5);
        if (middle - x > 150 && !e.lostTo) g.fillText(visible(e.id).slice(0, 16) || "(deleted)", x + 9, cy + 0.5);
      }
      if (xOf(e.accepted) >= namesWidth) drawMark(g, delivered, xOf(e.accepted), cy, 5);
    }
    g.fillStyle = theme.focus;
    g.fillRect(Math.round(xOf(now)) - 1, y, 2, lane.height);
    for (const m of lane.marks) {
      const x = xOf(m.at);
      if (x >= namesWidth) drawMark(g, m.kind, x, y + 3 + m.line * lineHeight + lineHeight / 2, 5.5);
    }
    g.fillStyle = theme.panel;
    g.fillRect(0, y, namesWidth - 1, lane.height - 1);
    g.fillStyle = theme.text;
    g.font = "12px system-ui, sans-serif";
    let name = visible(lane.group) || "(no group)";
    while (name.length > 2 && g.measureText(name).width > namesWidth - 20) name = name.slice(0, -2) + "…";
    g.fillText(name, 10, y + 3 + lineHeight / 2);
  }
  g.fillStyle = theme.panel;
  g.fillRect(0, 0, width, axisHeight);
  g.fillStyle = theme.line;
  g.fillRect(0, axisHeight - 1, width, 1);
  g.fillRect(namesWidth - 1, 0, 1, height);
  g.font = "12px system-ui, sans-serif";
  g.fillStyle = theme.text;
  g.fillText(count(lanes.length) + (lanes.length === 1 ? " group" : " groups"), 10, axisHeight / 2);
  let free = 0; // right of the last label
  for (let t = Math.ceil(from / 60000) * 60000; t < to; t += 60000) {
    if (xOf(t) < free || Math.abs(xOf(t) - xOf(now)) < 52 || xOf(t) > width - 40) continue;
    free = xOf(t) + 44;
    g.fillStyle = theme.muted;
    g.fillText(clockTime(t).slice(0, 5), xOf(t) + 3, axisHeight / 2);
    g.fillStyle = theme.edge;
    g.fillRect(Math.round(xOf(t)), axisHeight - 7, 1, 7);
  }
  const middle = Math.round(xOf(now));
  g.fillStyle = theme.focus;
  if (lanesHeight - top < height) g.fillRect(middle - 1, lanesHeight - top, 2, height);
  g.fillRect(middle - 1, 0, 2, axisHeight);
  g.fillText("now", middle + 5, axisHeight / 2);
  return drawn;
}
