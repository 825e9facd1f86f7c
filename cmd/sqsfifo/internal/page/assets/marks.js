// The kinds of what becomes of a message, the worst first.
const kinds = [
  { name: "lost", title: "LOST", says: "answered with success, received by nobody" },
  { name: "bodies", title: "one key, two bodies", says: "one event, delivered as two" },
  { name: "again", title: "delivered again", says: "sent again after its interval" },
  { name: "refused", title: "refused", says: "the sender was told" },
  { name: "duplicate", title: "duplicates suppressed", one: "duplicate suppressed", says: "equal in all; as intended" },
  { name: "delivered", title: "delivered once", one: "delivered", says: "the first with their ID" },
];
const lost = 0, bodies = 1, again = 2, refused = 3, duplicate = 4, delivered = 5, kindCount = 6;

const theme = {};
function readTheme() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ground", "panel", "text", "muted", "line", "edge", "bar", "bar-edge", "pick", "focus", ...kinds.map((k) => k.name)]) {
    theme[name] = style.getPropertyValue("--" + name).trim();
  }
}
onTheme.push(readTheme);
readTheme();

// drawMark draws the mark of a kind around x, y with the radius r. Shapes differ, so that
// colour is not needed to tell them apart.
function drawMark(g, kind, x, y, r) {
  const color = theme[kinds[kind].name];
  g.lineWidth = Math.max(1.4, r * 0.3);
  g.strokeStyle = g.fillStyle = color;
  g.beginPath();
  switch (kind) {
    case lost:
      g.fillRect(x - r, y - r, 2 * r, 2 * r);
      g.strokeStyle = theme.ground;
      g.moveTo(x - r * 0.5, y - r * 0.5); g.lineTo(x + r * 0.5, y + r * 0.5);
      g.moveTo(x + r * 0.5, y - r * 0.5); g.lineTo(x - r * 0.5, y + r * 0.5);
      g.stroke();
      break;
    case bodies:
      for (const dx of [-r * 0.55, r * 0.55]) {
        g.moveTo(x + dx - r * 0.55, y); g.lineTo(x + dx, y - r);
        g.lineTo(x + dx + r * 0.55, y); g.lineTo(x + dx, y + r);
        g.closePath();
      }
      g.fill();
      g.strokeStyle = theme.ground; g.lineWidth = 1;
      g.stroke();
      break;
    case again:
      g.fillStyle = theme.ground;
      g.arc(x, y, r, 0, 7); g.fill(); g.stroke();
      g.fillStyle = color;
      g.beginPath(); g.arc(x, y, r * 0.45, 0, 7); g.fill();
      break;
    case refused:
      g.fillStyle = theme.ground;
      g.arc(x, y, r, 0, 7); g.fill();
      g.moveTo(x - r * 0.7, y - r * 0.7); g.lineTo(x + r * 0.7, y + r * 0.7);
      g.stroke();
      break;
    case duplicate:
      g.fillStyle = theme.ground;
      g.arc(x, y, r * 0.8, 0, 7); g.fill(); g.stroke();
      break;
    default:
      g.arc(x, y, r * 0.75, 0, 7); g.fill();
  }
}

const svgSpace = "http://www.w3.org/2000/svg";
const shapes = [
  [["rect", { x: 1, y: 1, width: 14, height: 14, fill: "currentColor" }], ["path", { d: "M4.5 4.5l7 7m0-7l-7 7", stroke: "var(--ground)", "stroke-width": 2 }]],
  [["path", { d: "M0 8l4-7 4 7-4 7zM8 8l4-7 4 7-4 7z", fill: "currentColor" }]],
  [["circle", { cx: 8, cy: 8, r: 6.5, fill: "none", stroke: "currentColor", "stroke-width": 1.8 }], ["circle", { cx: 8, cy: 8, r: 3, fill: "currentColor" }]],
  [["circle", { cx: 8, cy: 8, r: 6.5, fill: "none", stroke: "currentColor", "stroke-width": 1.8 }], ["path", { d: "M3.5 3.5l9 9", stroke: "currentColor", "stroke-width": 1.8 }]],
  [["circle", { cx: 8, cy: 8, r: 4.5, fill: "none", stroke: "currentColor", "stroke-width": 1.8 }]],
  [["circle", { cx: 8, cy: 8, r: 4.5, fill: "currentColor" }]],
];

// markOf is the same mark for the document.
function markOf(kind) {
  const svg = document.createElementNS(svgSpace, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", "mark k-" + kinds[kind].name);
  svg.setAttribute("aria-hidden", "true");
  for (const [tag, attributes] of shapes[kind]) {
    const shape = document.createElementNS(svgSpace, tag);
    for (const name in attributes) shape.setAttribute(name, attributes[name]);
    svg.append(shape);
  }
  return svg;
}
