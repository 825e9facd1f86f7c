// The state of the queue comes by server-sent events; what the buttons do goes back as
// requests that any program can make.
let state = null, clockOffset = 0, source = null, wantedQueue = "";

// now is the time on the queue's clock.
const now = () => Date.now() + clockOffset + (state ? state.ahead_ms : 0);

function connect() {
  if (source) source.close();
  source = new EventSource("/_sqsfifo/live" + (wantedQueue ? "?queue=" + encodeURIComponent(wantedQueue) : ""));
  source.addEventListener("open", () => says("live"));
  source.addEventListener("error", () => says(source.readyState === EventSource.CLOSED ? "closed by the server; reload the page" : "the server does not answer"));
  source.addEventListener("message", (e) => {
    const event = JSON.parse(e.data);
    clockOffset = event.sent - Date.now();
    show(event.state);
  });
}

function says(text) {
  byId("connection").textContent = text;
  document.body.dataset.connection = text;
}

function trouble(text) {
  byId("trouble").hidden = !text;
  byId("trouble").textContent = visible(text);
}

async function call(method, path, body) {
  try {
    const answer = await fetch("/_sqsfifo/" + path, {
      method, headers: body ? { "Content-Type": "application/json" } : {}, body: body ? JSON.stringify(body) : undefined,
    });
    const text = await answer.text();
    trouble(answer.ok ? "" : text);
  } catch (e) {
    trouble("the server does not answer: " + e.message);
  }
}

function show(next) {
  const before = state;
  state = next;
  const list = byId("queue");
  if (!before || before.queues.join("\n") !== state.queues.join("\n")) {
    list.replaceChildren(...state.queues.map((name) => {
      const option = make("option", "", visible(name));
      option.value = name;
      return option;
    }));
  }
  list.value = state.queue;
  const a = state.attributes || {}, fifo = a.FifoQueue === "true";
  byId("about").textContent = !state.queue ? "no queue" : [
    location.origin + state.path,
    fifo ? "scope " + (a.DeduplicationScope || "queue") : "a standard queue suppresses nothing",
    fifo ? (a.ContentBasedDeduplication === "true" ? "content-based" : "with deduplication IDs") : "",
    count(Number(a.ApproximateNumberOfMessages || 0)) + " visible", count(Number(a.ApproximateNumberOfMessagesNotVisible || 0)) + " in flight",
    Number(a.ApproximateNumberOfMessagesDelayed) ? count(Number(a.ApproximateNumberOfMessagesDelayed)) + " delayed" : "",
  ].filter(Boolean).join(" · ");
  byId("about").title = byId("about").textContent;
  byId("remembered").textContent = count(state.remembered) + (state.remembered > state.window.length ? ", the newest " + count(state.window.length) + " shown" : "") + "; each for " + span(state.interval_ms);
  document.body.dataset.remembered = String(state.remembered);
  document.body.dataset.suppressed = String(state.suppressed);
  document.body.dataset.faults = String(state.faults.length);
  document.body.dataset.blocked = String(state.blocked);
  document.body.dataset.queue = state.queue;
  document.body.dataset.requests = String(state.requests.length);
  byId("clock-next").disabled = !state.window.length;
  const sameAs = (name) => before && before.queue === state.queue && JSON.stringify(before[name]) === JSON.stringify(state[name]);
  if (!sameAs("suppression")) showSuppressed();
  if (!sameAs("faults")) showFaults();
  if (!sameAs("requests")) showRequests();
  showBlocked();
  layLanes(state);
  tick();
}

function showSuppressed() {
  const box = byId("suppressed"), only = byId("lost-only").checked;
  const shown = state.suppression.filter((s) => !only || s.lost).reverse();
  const lostCount = state.suppression.filter((s) => s.lost).length;
  byId("suppressed-title").textContent = "Suppressed · " + count(state.suppressed) + (lostCount ? ", LOST " + count(lostCount) : "");
  document.body.dataset.lost = String(lostCount);
  box.replaceChildren(...shown.map(article));
  if (!shown.length) box.append(make("p", "none muted", only ? "Nothing was lost." : "Nothing was suppressed. A send with an ID that is remembered appears here, beside the message that it duplicates."));
}

function article(s) {
  const kind = s.lost ? lost : duplicate;
  const out = make("article", "");
  out.append(make("div", "head", markOf(kind), make("span", "", s.lost ? "LOST: other " + s.lost.join(" and ") : "duplicate suppressed"), make("span", "number", clockTime(s.at, true))));
  out.append(make("div", "", foreign(s.group), make("span", "muted", " · a duplicate of "), foreign(s.original.message, "code"),
    make("span", "muted", ", " + span(s.at - s.original.accepted) + " before")));
  if (s.forgotten) {
    out.append(make("div", "muted", "The original was deleted and its text is forgotten; serve -keep keeps it."));
    out.append(differenceOf(s.body, "", ""));
  } else {
    out.append(differenceOf(s.body, "this", "original"));
    if (s.group !== s.original.group) out.append(make("div", "", make("span", "muted", "group "), foreign(s.group, "code"), " instead of ", foreign(s.original.group, "code")));
    if (s.attributes) out.append(make("ul", "", ...s.attributes.map((text) => make("li", "", foreign(text, "code")))));
  }
  out.append(make("div", "muted", (s.content_based ? "by the SHA-256 of the body, " : "by its deduplication ID, "), foreign(s.id, "code"),
    "; accepted again at " + clockTime(s.until)));
  out.dataset.kind = kinds[kind].name;
  return out;
}

function showFaults() {
  byId("faults").replaceChildren(...state.faults.map((f) => {
    const off = make("button", "", "Switch off");
    off.type = "button";
    off.setAttribute("aria-label", "Switch off " + f.fault);
    off.addEventListener("click", () => call("DELETE", "faults?queue=" + encodeURIComponent(f.queue) + "&id=" + encodeURIComponent(f.id)));
    const when = f.rate ? (f.rate === 1 ? "each send" : Math.round(f.rate * 100) + " % of the sends") : f.calls === 1 ? "next send" : "next " + count(f.calls) + " sends";
    return make("span", "fault", visible(f.fault.replaceAll("_", " ")) + ", " + when, off);
  }));
}

function showRequests() {
  byId("log-none").hidden = state.requests.length > 0;
  byId("log-rows").replaceChildren(...state.requests.slice().reverse().map((r) => {
    const row = make("tr", "", make("td", "number", clockTime(r.at, true)), make("td", "", foreign(r.operation)), make("td", "", foreign(r.queue)),
      make("td", "number", r.status ? String(r.status) : "no answer"), make("td", "number", count(r.bytes)), make("td", "number", span(r.took_us / 1000)));
    if (r.status !== 200) row.className = "k-refused";
    return row;
  }));
}

// showBlocked shows the groups whose first messages were received and not deleted. Many
// receives of one message are those of a message that fails.
function showBlocked() {
  const rows = state.blockage, at = now();
  byId("blocked").textContent = count(state.blocked) + (state.blocked > rows.length ? ", the longest blocked " + count(rows.length) + " shown" : "");
  byId("held-none").hidden = rows.length > 0;
  byId("held-rows").replaceChildren(...rows.map((g) => {
    const row = make("tr", "", make("td", "", foreign(g.group)), make("td", "code", foreign(g.message)),
      make("td", "", g.until ? "in flight for " + span(Math.max(g.until - at, 0)) : "waiting"), make("td", "number", count(g.receives)),
      make("td", "number", count(g.messages)), make("td", "number", clockTime(g.since) + ", " + span(Math.max(at - g.since, 0))));
    if (g.receives > 2) row.className = "k-refused";
    return row;
  }));
}

function tick() {
  const at = now();
  if (state && byId("held").open) showBlocked();
  byId("clock").textContent = date(at) + " " + clockTime(at) + (state && state.ahead_ms ? ", " + span(state.ahead_ms) + " ahead" : "");
  if (state) document.body.dataset.drawn = String(drawLanes(at, state.interval_ms));
}

byId("queue").addEventListener("change", (e) => { wantedQueue = e.target.value; connect(); });
byId("theme").addEventListener("click", toggleTheme);
byId("lost-only").addEventListener("change", showSuppressed);
byId("clock-minute").addEventListener("click", () => call("POST", "clock", { advance_seconds: 60 }));
byId("clock-five").addEventListener("click", () => call("POST", "clock", { advance_seconds: 300 }));
byId("clock-next").addEventListener("click", () => {
  // The IDs are sorted by when they are forgotten, and times are cut to milliseconds.
  const next = state.window.find((entry) => entry.until > now());
  if (next) call("POST", "clock", { advance_seconds: (next.until - now() + 1) / 1000 });
});
byId("fault-on").addEventListener("click", () => {
  const fault = { queue: state.queue, fault: byId("fault").value };
  const calls = byId("fault-calls").value;
  if (calls === "next") fault.calls = 1; else fault.rate = calls === "each" ? 1 : 0.2;
  if (calls === "some") fault.seed = 1;
  if (fault.fault === "delay_answer") fault.delay_seconds = 5;
  call("POST", "faults", fault);
});
byId("log").addEventListener("toggle", () => call("POST", "requests", { on: byId("log").open }));
scroller.addEventListener("scroll", tick);
addEventListener("resize", tick);
onTheme.push(tick);
setInterval(() => { if (!document.hidden) tick(); }, 250);

for (const [kind, text] of [[delivered, "accepted"], [duplicate, "duplicate suppressed, equal in all"], [lost, "LOST: suppressed and different"]]) {
  byId("legend").append(make("span", "", markOf(kind), " " + text));
}
byId("legend").append(make("span", "", "a bar ends when its ID is forgotten"));
connect();
