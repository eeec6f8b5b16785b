// The data is parsed on first use, so that the table is shown at once.
let data;
const read = () => (data ??= JSON.parse(document.getElementById("report").textContent));
const kernelsOf = ({ dataset: { site, series } }) => read().kernels.rows[site]?.[series];
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// ---- Elements. Strings become text nodes, so names cannot become markup.

const HIDDEN = /[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu;
const SHORT = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };
const printable = (text) =>
  String(text).replace(HIDDEN, (c) => SHORT[c] ?? `\\u{${c.codePointAt(0).toString(16)}}`);
const fill = (node, attributes, children) => {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== undefined) node.setAttribute(name, value);
  }
  for (const child of children.flat(Infinity)) {
    if (child instanceof Node) node.append(child);
    else if (child !== undefined && child !== null && child !== false) node.append(printable(child));
  }
  return node;
};
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const styled = (node, style) => {
  Object.assign(node.style, style);
  return node;
};
// Returns the parts of a sentence. Text between backticks becomes code.
const prose = (sentence) => {
  const parts = sentence.split("`");
  // If the number of backticks is odd, the last one stands for itself.
  const rest = parts.length % 2 === 0 ? ["`", parts.pop()] : [];
  return [...parts.map((part, i) => (i % 2 ? el("code", {}, part) : part)), ...rest];
};
const pane = (title, note, ...content) =>
  el("section", { class: "pane" }, el("header", {}, el("h3", {}, title), el("span", {}, note)), ...content);

// ---- Numbers.

const UNITS = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];
const unitOf = (ns) => UNITS.find(([, size]) => ns >= 0.9995 * size) ?? UNITS[3];
// Formats a number with its digits in groups of three, as in the table.
const fixed = (value, decimals) => {
  const [whole, ...rest] = value.toFixed(decimals).split(".");
  return [whole.replace(/\B(?=(\d{3})+$)/g, "\u202f"), ...rest].join(".");
};
const figure = (value) => fixed(value, value < 9.9995 ? 3 : value < 99.995 ? 2 : value < 999.95 ? 1 : 0);
const inUnit = (ns, [name, size]) => (name === "ns" ? fixed(ns, 0) : figure(ns / size));
const time = (ns) => {
  const unit = unitOf(ns);
  return `${inUnit(ns, unit)} ${unit[0]}`;
};
const count = (n) => n.toLocaleString("en").replaceAll(",", "\u202f");
const counted = (number, one) => `${number} ${one}${number === "1" ? "" : "s"}`;
const percent = (part, whole) => (whole > 0 ? `${((100 * part) / whole).toFixed(1)}%` : "");
// Returns about `about` round values from low to high.
const ticks = (low, high, about) => {
  const rough = (high - low) / Math.max(1, about);
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((nice) => nice * power >= rough);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) found.push(k * step);
  return found;
};
const tickLabels = (values) => {
  const unit = unitOf(Math.max(...values.map(Math.abs)));
  const step = values.length > 1 ? (values[1] - values[0]) / unit[1] : 1;
  const decimals = Math.max(0, Math.min(6, Math.ceil(-Math.log10(step) - 1e-9)));
  return values.map((value, i) => {
    const text = fixed(value / unit[1], decimals);
    return i === values.length - 1 || values.length === 1 ? `${text} ${unit[0]}` : text;
  });
};

// ---- Values of a series.

const shown = (series) => series.net_ns ?? series.raw_ns;
// The bias that is removed from the shown times. Charts of raw times are shifted by it.
const bias = (series) =>
  series.net_ns && series.raw_ns ? series.raw_ns.max - series.net_ns.max : 0;
const net = (series) => {
  const less = bias(series);
  return (ns) => Math.max(0, ns - less);
};
const isSameWork = (a, b) =>
  a.device === b.device && a.graph === b.graph && a.key === b.key && a.clock === b.clock;
const launchName = (launch) => `${launch.name} ${launch.index}, line ${launch.line}`;
