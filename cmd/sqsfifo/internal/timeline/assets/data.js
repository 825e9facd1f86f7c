// The messages as arrays, one element for each row: see columns.go.
const data = JSON.parse(byId("data").textContent);

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64), out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

// reader reads numbers of variable length, as encoding/binary writes them.
function reader(base64) {
  const bytes = bytesOf(base64);
  let at = 0;
  const unsigned = () => {
    let value = 0, factor = 1;
    for (;;) {
      const b = bytes[at++];
      if (b < 0x80) return value + b * factor;
      value += (b & 0x7f) * factor;
      factor *= 128;
    }
  };
  return {
    unsigned,
    signed: () => { const u = unsigned(); return u % 2 ? -(u + 1) / 2 : u / 2; },
    bytes: (n) => bytes.subarray(at, at += n),
    byte: () => bytes[at++],
  };
}

const interval = data.interval_ms;
const rowCount = data.rows.count;
const groupCount = data.groups.length;
const rows = decodeRows(data.rows);

function decodeRows(from) {
  const n = from.count;
  const out = {
    number: data.complete ? null : new Uint32Array(n), at: new Float64Array(n), group: new Uint32Array(n), flags: new Uint8Array(n), kind: new Uint8Array(n),
    of: new Int32Array(n), other: new Int32Array(n), name: new Int32Array(n).fill(-1), error: new Int32Array(n).fill(-1),
    id: new Uint8Array(n * 8), source: new Uint32Array(n), line: new Int32Array(n),
    lostTo: new Uint8Array(n), twoBodies: new Uint8Array(n),
  };
  const column = {};
  for (const name of ["number", "at", "group", "flags", "id", "of", "other", "errors", "source", "line"]) column[name] = reader(from[name]);
  const lines = new Int32Array(from.sources.length);
  let number = 0, at = data.begin;
  for (let i = 0; i < n; i++) {
    number += 1 + (data.complete ? 0 : column.number.unsigned());
    if (out.number) out.number[i] = number;
    at += column.at.unsigned();
    out.at[i] = at;
    out.group[i] = column.group.unsigned();
    const f = out.flags[i] = column.flags.byte();
    if (f & 2) out.error[i] = column.errors.unsigned();
    else if (f & 1) out.of[i] = number - column.of.unsigned();
    else if (f & 128) out.name[i] = column.id.unsigned();
    else out.id.set(column.id.bytes(8), 8 * i);
    if (f & 32) out.other[i] = number - column.other.unsigned();
    const source = out.source[i] = column.source.unsigned();
    out.line[i] = lines[source] += column.line.signed();
    out.kind[i] = f & 28 ? lost : f & 32 ? bodies : f & 2 ? refused : f & 1 ? duplicate : f & 64 ? again : delivered;
  }
  return out;
}

// Messages are numbered from 1, as the terminal numbers them; 0 is none.
const numberOf = (row) => rows.number ? rows.number[row] : row + 1;

// rowOf returns the row of a message, -1 if the page has none of it.
function rowOf(number) {
  if (number < 1) return -1;
  if (!rows.number) return number <= rowCount ? number - 1 : -1;
  let low = 0, high = rowCount;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows.number[middle] < number) low = middle + 1; else high = middle;
  }
  return low < rowCount && rows.number[low] === number ? low : -1;
}

for (let i = 0; i < rowCount; i++) {
  if (rows.kind[i] === lost && rowOf(rows.of[i]) >= 0) rows.lostTo[rowOf(rows.of[i])] = 1;
  if (rows.other[i] > 0) {
    rows.twoBodies[i] = 1;
    if (rowOf(rows.other[i]) >= 0) rows.twoBodies[rowOf(rows.other[i])] = 1;
  }
}

// A lane is the rows of a group by time: laneRows from laneStart[g] to laneStart[g + 1].
const laneStart = new Uint32Array(groupCount + 1), laneRows = new Uint32Array(rowCount);
{
  for (let i = 0; i < rowCount; i++) laneStart[rows.group[i] + 1]++;
  for (let g = 0; g < groupCount; g++) laneStart[g + 1] += laneStart[g];
  const next = laneStart.slice();
  for (let i = 0; i < rowCount; i++) laneRows[next[rows.group[i]]++] = i;
}

// groupCounts has kindCount numbers for each group.
const groupCounts = new Uint32Array(groupCount * kindCount);
{
  const counts = reader(data.group_counts);
  for (let i = 0; i < groupCounts.length; i++) groupCounts[i] = counts.unsigned();
}

const bins = data.bins.counts.map((column) => {
  const from = reader(column), out = new Uint32Array(2048);
  for (let i = 0; i < out.length; i++) out[i] = from.unsigned();
  return out;
});

// The findings, the worst kind first, then by number.
const findings = new Uint32Array((() => {
  const of = [[], [], [], []];
  for (let i = 0; i < rowCount; i++) if (rows.kind[i] < duplicate && (data.complete || rows.flags[i])) of[rows.kind[i]].push(i);
  return of.flat();
})());

const textOf = new Map(data.texts.map((t) => [t.number, t]));

function idOf(row) {
  if (rows.kind[row] === refused) return "";
  if (rows.of[row] > 0) return rowOf(rows.of[row]) >= 0 ? idOf(rowOf(rows.of[row])) : "";
  if (rows.name[row] >= 0) return data.rows.names[rows.name[row]];
  let out = "";
  for (let i = 8 * row; i < 8 * row + 8; i++) out += rows.id[i].toString(16).padStart(2, "0");
  return out === "0000000000000000" ? "" : out;
}

function placeOf(row) {
  const from = data.rows.sources[rows.source[row]];
  return (data.files[from.file] || "log") + ":" + rows.line[row] + (from.replay ? " (replay " + from.replay + ")" : "");
}

// firstAfter returns the first place in a lane at or after a time.
function firstAfter(group, ms) {
  let low = laneStart[group], high = laneStart[group + 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows.at[laneRows[middle]] < ms) low = middle + 1; else high = middle;
  }
  return low;
}

function causeText(row) {
  const f = rows.flags[row];
  switch (rows.kind[row]) {
    case lost: return "other " + [f & 4 && "attributes", f & 8 && "group", f & 16 && "body"].filter(Boolean).join(" and ");
    case refused: { // as causeOf in texts.go has it
      const text = (data.rows.texts[rows.error[row]] || "").split(":", 1)[0];
      return [...text].slice(0, 40).join("");
    }
  }
  return "";
}

// before returns the last message that was accepted with the ID of this one, before it.
function acceptedBefore(row) {
  const group = rows.group[row], id = idOf(row);
  for (let i = firstAfter(group, rows.at[row] + 1) - 1; i >= laneStart[group]; i--) {
    const r = laneRows[i];
    if (r < row && !(rows.flags[r] & 3) && idOf(r) === id) return r;
  }
  return -1;
}

function whatDiffers(row) {
  const f = rows.flags[row], what = [f & 4 && "attributes", f & 8 && "group", f & 16 && "body"].filter(Boolean);
  return what.join(" and ") + (what.length > 1 || what[0] === "attributes" ? " differ" : " differs");
}

// whyShort says in a line what a finding is about.
function whyShort(row) {
  const against = (number) => {
    const r = rowOf(number);
    return "#" + count(number) + (r >= 0 ? ", " + span(rows.at[row] - rows.at[r]) + " before" : "");
  };
  switch (rows.kind[row]) {
    case lost: return whatDiffers(row) + " from " + against(rows.of[row]);
    case bodies: return "same dedupe_key as " + against(rows.other[row]) + ", other body";
    case again: return "sent again after its interval, " + placeOf(row);
    case refused: return data.rows.texts[rows.error[row]] || "";
    case duplicate: return "equal to " + against(rows.of[row]);
  }
  return "the first with its ID";
}

// whyLong is whyShort in sentences.
function whyLong(row) {
  const at = rows.at[row];
  const ago = (number) => {
    const r = rowOf(number);
    return r >= 0 ? span(at - rows.at[r]) + " before" : "within the interval before";
  };
  switch (rows.kind[row]) {
    case lost:
      return "SQS answered with success and delivers it to nobody: its deduplication ID was accepted " + ago(rows.of[row]) + " with message #" + count(rows.of[row]) +
        ", so SQS takes it for a duplicate. But its " + whatDiffers(row) + "; SQS compares the IDs alone.";
    case bodies:
      return "It has the dedupe_key of message #" + count(rows.other[row]) + ", " + ago(rows.other[row]) + ", and another body. The body decides the ID, so both count as new: one event reaches consumers as two.";
    case again: {
      const r = acceptedBefore(row);
      return "It was sent again and is delivered again" + (r >= 0 ? ": its ID was accepted with message #" + count(numberOf(r)) + ", " + span(at - rows.at[r]) + " before, and SQS forgets an ID after " + span(interval) : ", after its " + span(interval)) +
        ". Only a consumer that remembers longer can tell.";
    }
    case refused:
      return "SQS refused it, and the sender was told: " + (data.rows.texts[rows.error[row]] || "");
    case duplicate:
      return "It equals message #" + count(rows.of[row]) + ", " + ago(rows.of[row]) + ", in all that counts, and was suppressed as intended.";
  }
  return "It is the first with its ID. SQS suppresses each duplicate of it until " + clockTime(at + interval) + ".";
}
