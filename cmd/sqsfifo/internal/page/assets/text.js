// What comes from a log is shown as text, with the characters that steer the direction of
// text, or cannot be seen, spelled out: they could make a line say something else.
const invisible = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
function visible(text) {
  return String(text).replace(invisible, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

// make returns an element with a class and children; strings become text.
function make(tag, name, ...children) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  element.append(...children);
  return element;
}

function foreign(text, name) {
  return make("bdi", name ? "foreign " + name : "foreign", visible(text));
}

// widthOfNames returns the width of the column of group names: as wide as the longest
// name and extra pixels, and at most three tenths of the room.
function widthOfNames(names, room, extra) {
  const g = document.createElement("canvas").getContext("2d");
  g.font = "12px system-ui, sans-serif";
  let widest = 60;
  for (const name of names.slice(0, 2000)) widest = Math.max(widest, g.measureText(visible(name)).width);
  return Math.round(Math.min(widest + extra, Math.max(136, room * 0.3)));
}

const byId = (id) => document.getElementById(id);

const thousands = new Intl.NumberFormat("en-US", { useGrouping: true });
function count(n) {
  return thousands.format(n).replaceAll(",", "\u202f");
}

function pad(n, digits) {
  return String(n).padStart(digits, "0");
}

function clockTime(ms, fraction) {
  const t = new Date(ms);
  const text = pad(t.getUTCHours(), 2) + ":" + pad(t.getUTCMinutes(), 2) + ":" + pad(t.getUTCSeconds(), 2);
  return fraction ? text + "." + pad(t.getUTCMilliseconds(), 3) : text;
}

function date(ms) {
  const t = new Date(ms);
  return t.getUTCFullYear() + "-" + pad(t.getUTCMonth() + 1, 2) + "-" + pad(t.getUTCDate(), 2);
}

function span(ms) {
  const seconds = ms / 1000;
  if (seconds < 60) return (seconds < 10 ? Math.round(seconds * 1000) / 1000 : Math.round(seconds * 10) / 10) + " s";
  const minutes = Math.floor(seconds / 60), rest = Math.round(seconds % 60);
  if (minutes < 60) return minutes + " min" + (rest ? " " + rest + " s" : "");
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return hours + " h" + (minutes % 60 ? " " + (minutes % 60) + " min" : "");
  return Math.floor(hours / 24) + " days";
}

// differenceOf shows two texts that differ, the first character that does marked.
function differenceOf(d, ownName, otherName) {
  const line = (name, rest) => {
    const first = String.fromCodePoint(...(rest ? [rest.codePointAt(0)] : []));
    const end = rest === "";
    return make("div", "difference",
      make("span", "muted", name + " "),
      foreign(d.common, "code"),
      make("bdi", "foreign code differs", end ? "(ends)" : visible(first)),
      foreign(end ? "" : rest.slice(first.length), "code"));
  };
  if (d.byte < 0) {
    return make("div", "difference", make("span", "muted", "body "), foreign(d.common, "code"));
  }
  return make("div", "",
    line(ownName, d.own || ""), line(otherName, d.other || ""),
    make("div", "muted", "the first byte that differs is at offset " + count(d.byte)));
}

// Light or dark: as the system has it until somebody chooses.
const darkSystem = matchMedia("(prefers-color-scheme: dark)");
let chosenTheme = "";
const onTheme = [];
function applyTheme() {
  document.documentElement.dataset.theme = chosenTheme || (darkSystem.matches ? "dark" : "light");
  for (const told of onTheme) told();
}
function toggleTheme() {
  chosenTheme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  applyTheme();
}
darkSystem.addEventListener("change", applyTheme);
applyTheme();
