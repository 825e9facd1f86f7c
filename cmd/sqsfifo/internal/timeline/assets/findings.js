// The tiles, the chips, the list of findings and the table of them.
const listed = { rows: findings, cursor: -1 };
const itemHeight = 62, wholeMost = 200; // a list of up to wholeMost findings has rows of any height

function buildTiles() {
  const box = byId("tiles");
  let framed = false;
  kinds.forEach((kind, k) => {
    const n = data.kinds[k];
    const big = make("span", "big", markOf(k), " ", make("b", "number", count(n)));
    const button = make("button", "k-" + kind.name, big, make("span", "name", kind.title), make("span", "small", kind.says));
    button.type = "button";
    button.dataset.kind = kind.name;
    button.dataset.count = String(n);
    button.setAttribute("aria-pressed", "false");
    if (!n) button.classList.add("zero");
    if (n && !framed && k < again) { button.classList.add("worst"); framed = true; }
    button.addEventListener("click", () => setFilter(view.kind === k && !view.cause ? -1 : k, null));
    box.append(button);
    document.body.dataset[kind.name] = String(n);
  });
}

function buildChips() {
  const box = byId("chips");
  for (const c of data.causes) {
    const label = kinds[c.kind].title + (c.text ? ": " : "");
    const button = make("button", "", markOf(c.kind), " " + label, c.text ? foreign(c.text) : "", " ", make("b", "number", count(c.count)));
    button.type = "button";
    button.dataset.cause = kinds[c.kind].name + ":" + c.text;
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      const on = view.cause && view.cause.kind === c.kind && view.cause.text === c.text;
      setFilter(on ? -1 : c.kind, on ? null : c);
    });
    box.append(button);
  }
  if (!data.causes.length) box.append(make("span", "muted", "nothing lost, nothing doubled"));
}

function setFilter(kind, cause) {
  view.kind = kind;
  view.cause = cause;
  markFilters();
  arrange();
  listFindings();
  redraw();
}

function markFilters() {
  byId("tiles").querySelectorAll("button").forEach((b, k) => b.setAttribute("aria-pressed", String(view.kind === k && !view.cause)));
  const pressed = view.cause ? kinds[view.cause.kind].name + ":" + view.cause.text : null;
  byId("chips").querySelectorAll("button").forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.cause === pressed)));
}

function listFindings() {
  listed.rows = view.kind >= 0 || view.cause || view.matches ? findings.filter(shown) : findings;
  const all = data.kinds.slice(0, duplicate).reduce((a, b) => a + b, 0);
  const narrowed = listed.rows.length < findings.length;
  byId("findings-title").textContent = "Findings · " + (narrowed ? count(listed.rows.length) + " of " : "") + count(all) +
    (findings.length < all && !narrowed ? ", " + count(findings.length) + " listed" : "");
  const whole = listed.rows.length <= wholeMost;
  byId("list").classList.toggle("whole", whole);
  byId("list-space").style.height = whole ? "0" : listed.rows.length * itemHeight + "px";
  document.body.dataset.listed = String(listed.rows.length);
  byId("list").scrollTop = 0;
  listed.cursor = -1;
  fillList(true);
}

const items = new Map(); // by position
function fillList(again) {
  const list = byId("list");
  if (again) { for (const item of items.values()) item.remove(); items.clear(); }
  const whole = listed.rows.length <= wholeMost;
  const first = whole ? 0 : Math.max(0, Math.floor(list.scrollTop / itemHeight) - 4);
  const end = whole ? listed.rows.length : Math.min(listed.rows.length, first + Math.ceil(list.clientHeight / itemHeight) + 8);
  for (const [i, item] of items) if ((i < first || i >= end) && !item.contains(document.activeElement)) { item.remove(); items.delete(i); }
  let after = byId("list-space");
  for (let i = first; i < end; i++) {
    if (!items.has(i)) items.set(i, buildItem(i));
    const item = items.get(i);
    if (after.nextSibling !== item) after.after(item);
    after = item;
  }
}

function buildItem(i) {
  const row = listed.rows[i], kind = rows.kind[row];
  const button = make("button", "",
    markOf(kind),
    make("span", "what", "#" + count(numberOf(row)) + " " + kinds[kind].title),
    make("span", "number", clockTime(rows.at[row])),
    make("span", "why", foreign(data.groups[rows.group[row]] || "(no group)"), " · ", make("bdi", "", visible(whyShort(row)))));
  button.type = "button";
  button.title = visible(whyShort(row));
  button.dataset.number = String(numberOf(row));
  button.tabIndex = i === Math.max(listed.cursor, 0) ? 0 : -1;
  if (row === view.selected) button.setAttribute("aria-current", "true");
  button.addEventListener("click", () => goTo(i, false));
  button.addEventListener("focus", () => { setCursor(i); });
  const item = make("div", "item", button);
  item.setAttribute("role", "listitem");
  item.setAttribute("aria-setsize", String(listed.rows.length));
  item.setAttribute("aria-posinset", String(i + 1));
  item.style.top = i * itemHeight + "px";
  return item;
}

// setCursor makes a position of the list the one that Tab reaches.
function setCursor(i) {
  listed.cursor = i;
  for (const [k, item] of items) item.querySelector("button").tabIndex = k === Math.max(i, 0) ? 0 : -1;
}

// showItem scrolls the list to a position.
function showItem(i) {
  const list = byId("list"), item = items.get(i), whole = list.classList.contains("whole");
  const top = whole ? item.offsetTop : i * itemHeight, height = whole ? item.offsetHeight : itemHeight;
  if (top < list.scrollTop) list.scrollTop = top;
  if (top + height > list.scrollTop + list.clientHeight) list.scrollTop = top + height - list.clientHeight;
  fillList(false);
  setCursor(i);
}

// goTo selects the finding at a position of the list.
function goTo(i, focus) {
  if (!listed.rows.length) return;
  i = Math.min(Math.max(i, 0), listed.rows.length - 1);
  showItem(i);
  select(listed.rows[i], true);
  if (focus) items.get(i)?.querySelector("button").focus({ preventScroll: true });
  pinCard(listed.rows[i]);
}

function markSelected() {
  for (const item of items.values()) {
    const button = item.querySelector("button");
    if (view.selected >= 0 && button.dataset.number === String(numberOf(view.selected))) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
}

// The table is for those who do not see the picture, and for paper.
const reportMost = 1000;
function buildReport() {
  const body = byId("report-rows");
  if (body.childElementCount) return;
  const n = Math.min(reportMost, findings.length);
  for (let i = 0; i < n; i++) {
    const row = findings[i];
    body.append(make("tr", "",
      make("td", "number", "#" + count(numberOf(row))), make("td", "", kinds[rows.kind[row]].title),
      make("td", "number", date(rows.at[row]) + " " + clockTime(rows.at[row], true)),
      make("td", "", foreign(data.groups[rows.group[row]])), make("td", "", foreign(placeOf(row))), make("td", "", make("bdi", "", visible(whyLong(row))))));
  }
  const all = data.kinds.slice(0, duplicate).reduce((a, b) => a + b, 0);
  byId("report-note").textContent = all === n ? "" : "The first " + count(n) + " of " + count(all) + ", the worst first.";
}
