// What is shown of the log: the time, the groups and their order, the filters.
const rowHeight = 20, lineHeight = 14;
let namesWidth = 196; // follows the names and the width of the window
const view = { from: 0, to: 1, kind: -1, cause: null, search: "", groups: null, matches: null, selected: -1, hovered: -1, pulse: 0 };

const whole = (() => {
  const last = Math.max(data.last, data.first + 1), tail = Math.min(interval, last - data.first + 1000);
  const margin = (last - data.first + tail) * 0.004;
  return { from: data.first - margin, to: last + tail + margin };
})();
view.from = whole.from;
view.to = whole.to;

// The lanes that are shown, from top to bottom, with the place of each.
const lanes = { order: [], tops: new Float64Array(1), place: new Int32Array(groupCount).fill(-1), open: new Uint8Array(groupCount), height: 0, version: 0 };

// Of each group whose lane is open: how many lines it has; and of each row its line.
const linesOf = new Uint32Array(groupCount), lineOf = new Int32Array(rowCount).fill(-1);

const worstOf = (g) => {
  for (let k = 0; k < duplicate; k++) if (groupCounts[g * kindCount + k]) return k;
  return kindCount;
};

const orders = {
  findings: (a, b) => {
    for (let k = 0; k < duplicate; k++) {
      if (k === again) continue; // as many as there are replays, in any group
      const d = groupCounts[b * kindCount + k] - groupCounts[a * kindCount + k];
      if (d) return d;
    }
    return a - b;
  },
  name: (a, b) => data.groups[a] < data.groups[b] ? -1 : data.groups[a] > data.groups[b] ? 1 : 0,
  time: (a, b) => a - b, // as they came
};

function arrange() {
  const order = [];
  for (let g = 0; g < groupCount; g++) {
    if (view.groups && !view.groups[g]) continue;
    if (view.kind >= 0 && !groupCounts[g * kindCount + view.kind]) continue;
    order.push(g);
  }
  order.sort(orders[byId("sort").value]);
  lanes.order = order;
  stack();
}

// stack gives each lane its place.
function stack() {
  const order = lanes.order;
  lanes.place.fill(-1);
  lanes.tops = new Float64Array(order.length + 1);
  let top = 0;
  for (let i = 0; i < order.length; i++) {
    lanes.place[order[i]] = i;
    lanes.tops[i] = top;
    top += laneHeight(order[i]);
  }
  lanes.tops[order.length] = lanes.height = top;
  lanes.version++;
  byId("expand").textContent = lanes.open.includes(1) ? "Collapse all" : "Expand all";
}

function laneHeight(g) {
  return lanes.open[g] ? Math.max(rowHeight, linesOf[g] * lineHeight + 6) : rowHeight;
}

// laneAt returns the index in the order of the lane at a height.
function laneAt(y) {
  let low = 0, high = lanes.order.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (lanes.tops[middle] <= y) low = middle; else high = middle - 1;
  }
  return Math.min(low, lanes.order.length - 1);
}

// open gives each ID of a group that overlaps with another a line of its own. All bars
// are equally long, so that they end in the order in which they begin.
function openLane(g) {
  lanes.open[g] = 1;
  if (linesOf[g]) return;
  const pool = (length, first) => {
    const busy = [], free = []; // free is a heap, the lowest line first
    let head = 0, lines = 0;
    const give = (line) => {
      let i = free.length;
      free.push(line);
      for (let up; i > 0 && free[up = (i - 1) >> 1] > line; i = up) free[i] = free[up];
      free[i] = line;
    };
    const take = () => {
      const line = free[0], last = free.pop();
      let i = 0;
      for (let down; (down = 2 * i + 1) < free.length; i = down) {
        if (down + 1 < free.length && free[down + 1] < free[down]) down++;
        if (free[down] >= last) break;
        free[i] = free[down];
      }
      if (free.length) free[i] = last;
      return line;
    };
    return {
      take: (at) => {
        while (head < busy.length && busy[head].end <= at) give(busy[head++].line);
        const line = free.length ? take() : lines++;
        busy.push({ end: at + length, line });
        return first + line;
      },
      lines: () => lines,
    };
  };
  const bars = pool(interval, 0);
  for (let i = laneStart[g]; i < laneStart[g + 1]; i++) {
    const r = laneRows[i];
    if (!(rows.flags[r] & 3)) lineOf[r] = bars.take(rows.at[r]);
  }
  const points = pool(interval / 10, bars.lines()); // without a bar in this lane
  for (let i = laneStart[g]; i < laneStart[g + 1]; i++) {
    const r = laneRows[i];
    if (!(rows.flags[r] & 3)) continue;
    const original = rowOf(rows.of[r]);
    lineOf[r] = original >= 0 && rows.group[original] === g ? lineOf[original] : points.take(rows.at[r]);
  }
  linesOf[g] = Math.max(1, bars.lines() + points.lines());
}

function openAll(all) {
  for (let g = 0; g < groupCount; g++) {
    if (all) openLane(g); else lanes.open[g] = 0;
  }
  stack();
}

let plot = 0; // since the last picture
const plotWidth = () => plot || Math.max(50, lanesCanvas.clientWidth - namesWidth);
const xOf = (ms) => namesWidth + (ms - view.from) / (view.to - view.from) * plotWidth();
const timeAt = (x) => view.from + (x - namesWidth) / plotWidth() * (view.to - view.from);

function setTime(from, to) {
  const least = 200, most = (whole.to - whole.from) * 1.2;
  const length = Math.min(Math.max(to - from, least), most);
  const middle = (from + to) / 2;
  from = middle - length / 2;
  from = Math.min(Math.max(from, whole.from - length * 0.5), whole.to - length * 0.5);
  view.from = from;
  view.to = from + length;
  redraw();
}

function zoom(factor, x) {
  const at = timeAt(x === undefined ? namesWidth + plotWidth() / 2 : x);
  setTime(at - (at - view.from) * factor, at + (view.to - at) * factor);
}

const pan = (share) => setTime(view.from + (view.to - view.from) * share, view.to + (view.to - view.from) * share);

// shown reports whether the filters leave a row bright.
function shown(row) {
  if (view.kind >= 0 && rows.kind[row] !== view.kind) return false;
  if (view.cause !== null && !(rows.kind[row] === view.cause.kind && causeText(row) === view.cause.text)) return false;
  return !view.matches || view.matches.has(row) || view.groups[rows.group[row]] === 1;
}

// search narrows the groups and the findings, and selects what a number names.
function search(text) {
  view.search = text = text.trim();
  view.groups = view.matches = null;
  let says = "";
  const number = /^#\s*([\d\s.,\u202f]+)$/.exec(text);
  if (number) {
    const wanted = Number(number[1].replace(/\D/g, "")), row = rowOf(wanted);
    says = row >= 0 ? "" : wanted >= 1 && wanted <= data.messages ? "not in this page" : "no such message";
    if (row >= 0) select(row, true);
  } else if (text) {
    const groups = new Uint8Array(groupCount), matches = new Set(), lower = text.toLowerCase();
    let named = 0;
    for (let g = 0; g < groupCount; g++) if (data.groups[g].toLowerCase().includes(lower)) { groups[g] = 1; named++; }
    matchIDs(lower, matches);
    for (const t of data.texts) if (JSON.stringify(t).toLowerCase().includes(JSON.stringify(lower).slice(1, -1)) && rowOf(t.number) >= 0) matches.add(rowOf(t.number));
    for (const row of matches) if (!groups[rows.group[row]]) groups[rows.group[row]] = 2; // shown because of a message
    view.groups = groups;
    view.matches = matches;
    says = count(named) + (named === 1 ? " group, " : " groups, ") + count(matches.size) + (matches.size === 1 ? " message" : " messages");
  }
  byId("found").textContent = says;
  arrange();
  listFindings();
  redraw();
}

function matchIDs(prefix, matches) {
  const named = data.rows.names.map((name) => name.toLowerCase().includes(prefix));
  const hex = /^[0-9a-f]{4,64}$/.test(prefix) ? prefix.slice(0, 16) : "";
  const whole = [...hex.matchAll(/../g)].map((two) => parseInt(two[0], 16));
  const half = hex.length % 2 ? parseInt(hex.at(-1), 16) : -1;
  for (let i = 0; i < rowCount; i++) {
    if (rows.kind[i] === refused) continue;
    const of = rows.of[i] > 0 ? rowOf(rows.of[i]) : i;
    if (of < 0) continue;
    if (rows.name[of] >= 0) { if (named[rows.name[of]]) matches.add(i); continue; }
    if (!hex) continue;
    let equal = half < 0 || rows.id[8 * of + whole.length] >> 4 === half;
    for (let k = 0; equal && k < whole.length; k++) equal = rows.id[8 * of + k] === whole[k];
    if (equal) matches.add(i);
  }
}

// select marks a row. With reveal it brings the row into view if its mark is not drawn
// there already; a view that has the mark stays.
function select(row, reveal) {
  view.selected = row;
  document.body.dataset.selected = row < 0 ? "" : String(numberOf(row));
  if (row >= 0) view.pulse = performance.now();
  if (row >= 0 && reveal && !isDrawn(row)) {
    const g = rows.group[row];
    if (lanes.place[g] < 0) {
      view.kind = -1; view.cause = null; view.groups = view.matches = null;
      byId("search").value = view.search = byId("found").textContent = "";
      markFilters();
      arrange();
      listFindings();
    }
    const length = Math.min(view.to - view.from, Math.max(interval * 4, (view.to - view.from) / 40));
    view.from = rows.at[row] - length / 2;
    view.to = view.from + length;
    const top = lanes.tops[lanes.place[g]], room = scroller.clientHeight;
    const y = top + (lanes.open[g] ? 3 + lineOf[row] * lineHeight : 0);
    if (y < scroller.scrollTop + 10 || y > scroller.scrollTop + room - 40) {
      byId("spacer").style.height = Math.max(0, lanes.height - room) + "px";
      scroller.scrollTop = y - room / 2;
    }
  }
  markSelected();
  redraw();
}

// isDrawn reports whether the picture has the mark of a row, whole and not merged with
// others.
function isDrawn(row) {
  return lanes.place[rows.group[row]] >= 0 && hits.some((hit) => hit.row === row && hit.more === 1 &&
    hit.x >= namesWidth + hit.half && hit.x <= scroller.clientWidth - hit.half && hit.y >= hit.half && hit.y <= scroller.clientHeight - hit.half);
}
