// The card says the why of the message under the pointer, or of the one selected.
const card = byId("card");
let pinned = false, shownLast = 0; // counts what was shown and hidden

function fillCard(row, more) {
  const kind = rows.kind[row], number = numberOf(row);
  card.replaceChildren();
  card.append(make("div", "head", markOf(kind), make("span", "", "#" + count(number) + " " + (kinds[kind].one || kinds[kind].title))));
  card.append(make("div", "muted number", date(rows.at[row]) + " " + clockTime(rows.at[row], true) + " UTC · ", foreign(data.groups[rows.group[row]] || "(no group)"), " · ", foreign(placeOf(row))));
  card.append(make("p", "", visible(whyLong(row))));
  const text = textOf.get(number);
  if (text) {
    const other = text.with > 0 ? "#" + count(text.with) : "";
    card.append(differenceOf(text.body, "#" + count(number), other));
    if (text.attributes && text.attributes.length) {
      card.append(make("div", "muted", "attributes"), make("ul", "", ...text.attributes.map((a) => make("li", "", foreign(a, "code")))));
    }
    const with_ = rowOf(text.with);
    if (with_ >= 0 && rows.group[with_] !== rows.group[row]) {
      card.append(make("div", "", make("span", "muted", "group "), foreign(data.groups[rows.group[row]], "code"), " instead of ", foreign(data.groups[rows.group[with_]], "code")));
    }
  } else if (kind < again) {
    card.append(make("p", "muted", data.has_texts ? "The page does not have its text: it has those of the first findings of each kind." : "The page was made without texts."));
  }
  const id = idOf(row);
  if (id) card.append(make("div", "", make("span", "muted", "ID "), foreign(id, "code")));
  const named = kind === bodies ? rows.other[row] : rows.of[row];
  if (rowOf(named) >= 0) {
    const link = make("button", "", "go to #" + count(named));
    link.type = "button";
    link.addEventListener("click", () => { select(rowOf(named), true); pinCard(rowOf(named)); });
    card.append(link);
  }
  if (more > 1) card.append(make("div", "muted", count(more - 1) + " more at this place; zoom in"));
  card.dataset.number = String(number);
}

// placeCard puts the card beside a place, above or below it. The card covers neither the
// place nor the list of findings, which is at the right of the lanes or below them.
function placeCard(x, y) {
  shownLast++;
  const list = byId("side").getBoundingClientRect(), stacked = list.left < 10, gap = 18, margin = 6;
  const right = stacked ? innerWidth : list.left, bottom = stacked ? list.top : innerHeight;
  const below = bottom - y - gap - margin, above = y - gap - margin;
  card.hidden = false;
  card.style.maxHeight = "";
  card.style.width = Math.min(400, right - 2 * margin) + "px";
  const under = card.offsetHeight <= below || below >= above;
  card.style.maxHeight = (under ? below : above) + "px";
  card.style.left = Math.max(margin, Math.min(x + 16, right - card.offsetWidth - margin)) + "px";
  card.style.top = (under ? y + gap : y - gap - card.offsetHeight) + "px";
}

function showCard(hit, x, y) {
  fillCard(hit.row, hit.more);
  pinned = false;
  placeCard(x, y);
}

// pinCard leaves the card at the mark, so that the pointer can reach it.
function pinCard(row) {
  fillCard(row, 1);
  card.hidden = true; // until it has its place
  pinned = false; // that the lanes scroll to it does not hide it
  const before = shownLast;
  const draw = () => {
    if (shownLast !== before) return;
    const at = placeOnCanvas(row), box = lanesCanvas.getBoundingClientRect();
    if (at) placeCard(box.left + Math.min(Math.max(at.x, namesWidth), box.width), box.top + Math.min(Math.max(at.y, 0), box.height));
    pinned = true;
  };
  requestAnimationFrame(() => requestAnimationFrame(draw));
}

function hideCard() {
  shownLast++;
  card.hidden = true;
  pinned = false;
}

// showCounts says what a column of a lane counts.
function showCounts(lane, column, x, y) {
  const at = (c) => view.from + c * columnWidth / plotWidth() * (view.to - view.from);
  const counts = new Array(kindCount).fill(0), end = firstAfter(lane, at(column + 1));
  let all = 0;
  for (let i = firstAfter(lane, at(column)); i < end; i++, all++) counts[rows.kind[laneRows[i]]]++;
  if (!all) { hideCard(); return; }
  card.replaceChildren(make("div", "head", foreign(data.groups[lane] || "(no group)")), make("div", "muted number", clockTime(at(column)) + "–" + clockTime(at(column + 1)) + " UTC"));
  counts.forEach((n, k) => { if (n) card.append(make("div", "", markOf(k), " ", make("b", "number", count(n)), " " + (kinds[k].one || kinds[k].title))); });
  card.append(make("div", "muted", "zoom in to see each"));
  card.dataset.number = "";
  pinned = false;
  placeCard(x, y);
}

// hitAt returns the mark at a place of the canvas, or one within slack pixels.
function hitAt(x, y, slack) {
  let best = null, nearest = 1e9;
  for (const hit of hits) {
    const half = hit.half + slack;
    if (y < hit.y - half || y > hit.y + half || x < hit.x - half || x > hit.x + Math.max(half, hit.until || 0)) continue;
    const distance = Math.abs(hit.x - x) + Math.abs(hit.y - y) + rows.kind[hit.row] * 0.5;
    if (distance < nearest) { nearest = distance; best = hit; }
  }
  return best;
}
