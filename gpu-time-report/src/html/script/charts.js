// ---- Charts, redrawn whenever their width changes.

const chart = (height, label, draw) => {
  const node = svg("svg", { role: "img", "aria-label": label, height });
  let last = 0;
  new ResizeObserver(([entry]) => {
    const width = Math.floor(entry.contentRect.width);
    if (width === last || width < 40) return;
    last = width;
    node.setAttribute("viewBox", `0 0 ${width} ${height}`);
    node.replaceChildren(...draw(width, height).flat(Infinity));
  }).observe(node);
  return node;
};
const line = (x1, y1, x2, y2, name) => svg("line", { x1, y1, x2, y2, class: name });
const xAxis = (low, high, x, y, width, from = 0) => {
  const values = ticks(low, high, Math.min(6, width / 90));
  const labels = tickLabels(values);
  return [
    line(from, y, width, y, "axis"),
    values.map((value, i) => {
      const at = x(value);
      const anchor = at < from + 12 ? "start" : at > width - 30 ? "end" : "middle";
      return [
        line(at, y, at, y + 3, "axis"),
        svg("text", { x: at, y: y + 15, "text-anchor": anchor }, labels[i]),
      ];
    }),
  ];
};
// Shows a description of what is under the pointer instead of the pane's note.
const follow = (section, node, describe) => {
  const note = section.querySelector("header span");
  const before = note.textContent;
  node.addEventListener("pointermove", (event) => {
    const box = node.getBoundingClientRect();
    note.textContent = describe(event.clientX - box.left, box.width) ?? before;
  });
  node.addEventListener("pointerleave", () => (note.textContent = before));
};

const distribution = (series, { low_ns: low, width_ns: wide, counts, above }) => {
  const stats = shown(series);
  const less = net(series);
  const bars = [...counts, ...(above > 0 ? [0, above] : [])];
  const most = Math.max(...bars);
  const scale = (width) => (i) => (i * width) / bars.length;
  const x = (ns, width) => scale(width)((ns - low) / wide);
  const span = (i) => [less(low + i * wide), less(low + (i + 1) * wide)];
  const label = `Histogram: median ${time(stats.median)}, from ${time(stats.min)} to ${time(stats.max)}`;
  const node = chart(150, label, (width, height) => {
    const base = height - 20;
    const top = 16;
    const at = scale(width);
    const gap = width / bars.length > 4 ? 1 : 0;
    const less0 = bias(series);
    const mark = (ns, text) => {
      const to = Math.min(width, Math.max(0, x(ns + less0, width)));
      const anchor = to < 30 ? "start" : to > width - 30 ? "end" : "middle";
      return [line(to, top - 3, to, base, "mark"), svg("text", { x: to, y: 9, "text-anchor": anchor }, text)];
    };
    const end = low + counts.length * wide;
    return [
      bars.map((n, i) =>
        n === 0 ? [] : svg("rect", {
          class: i >= counts.length ? "bar over" : "bar",
          x: at(i), width: Math.max(1, at(1) - gap), rx: gap,
          y: base - Math.max(1.5, ((base - top) * n) / most), height: Math.max(1.5, ((base - top) * n) / most),
        })),
      mark(stats.median, "median"),
      xAxis(less(low), less(end), (ns) => x(ns + less0, width), base, at(counts.length)),
      above > 0 ? [
        line(at(counts.length + 1), base, width, base, "axis"),
        svg("text", { x: width, y: base + 15, "text-anchor": "end" }, "longer"),
      ] : [],
    ];
  });
  const section = pane("Distribution", `${count(counts.reduce((a, b) => a + b, above))} samples`, node);
  section.classList.add("half");
  follow(section, node, (at, width) => {
    const i = Math.floor((at / width) * bars.length);
    if (i > counts.length) return `${count(above)} above ${time(span(counts.length)[0])}`;
    return i < counts.length && i >= 0 ? `${span(i).map(time).join(" – ")}: ${count(counts[i])}` : undefined;
  });
  return section;
};

const GUTTER = 48;
// The minimum length of a gap, as a multiple of the usual distance between slots.
const GAP = 2.5;
const sums = (steps) => {
  let sum = 0;
  return steps.map((step) => (sum += step));
};
// Returns the slots of a timeline as `[index, count, min, mean, max]`.
const slotsOf = ({ unit_ns: unit, below, above, ...steps }) => {
  const [indices = [], counts, means] = [steps.indices, steps.counts, steps.means].map((all) => all && sums(all));
  return counts.map((count, i) =>
    [indices[i] ?? i, count, (means[i] - below[i]) * unit, means[i] * unit, (means[i] + above[i]) * unit]);
};
const overTime = (series, timeline) => {
  const { origin_ns: origin, width_ns: wide } = timeline;
  const slots = slotsOf(timeline);
  const less = net(series);
  const first = origin + slots[0][0] * wide;
  const last = origin + (slots.at(-1)[0] + 1) * wide;
  const high = Math.max(...slots.map((slot) => less(slot[4])));
  // Clip the axis, so that outliers do not flatten the rest.
  const tops = slots.map((slot) => less(slot[3])).sort((a, b) => a - b);
  const bottom = Math.min(...slots.map((slot) => less(slot[2])));
  const usual = tops[Math.floor(0.97 * (tops.length - 1))];
  const top = Math.min(high, usual + 1.5 * Math.max(usual - bottom, usual * 0.02));
  const margin = Math.max(0.12 * (top - bottom), 0.005 * top, 1);
  const low = top - bottom > 0.6 * top ? 0 : Math.max(0, bottom - margin);
  const ceiling = top + margin;
  const x = (ns, width) => GUTTER + ((ns - first) / (last - first)) * (width - GUTTER);
  const label = `Timeline: means from ${time(tops[0])} to ${time(tops.at(-1))}`;
  const node = chart(150, label, (width, height) => {
    const base = height - 20;
    const y = (ns) => base - (base - 8) * Math.min(1, (ns - low) / (ceiling - low));
    const values = ticks(low, ceiling, 5);
    const labels = tickLabels(values);
    const middle = (slot) => x(origin + (slot[0] + 0.5) * wide, width);
    // Interrupt the line where there are no samples for longer than usual.
    const steps = slots.slice(1).map((slot, i) => slot[0] - slots[i][0]);
    const step = [...steps].sort((a, b) => a - b)[steps.length >> 1];
    const runs = [[slots[0]]];
    slots.slice(1).forEach((slot, i) => {
      if (steps[i] > GAP * step) runs.push([]);
      runs.at(-1).push(slot);
    });
    const point = (slot) => `${middle(slot).toFixed(1)},${y(less(slot[3])).toFixed(1)}`;
    const isCut = (slot) => less(slot[4]) > ceiling;
    const half = Math.max(1, (x(first + wide, width) - GUTTER) / 2 - 0.25);
    return [
      values.map((value, i) => [
        line(GUTTER, y(value), width, y(value), "grid"),
        svg("text", { x: GUTTER - 6, y: y(value) + 4, "text-anchor": "end" }, labels[i]),
      ]),
      slots.map((slot) => svg("rect", {
        class: "band", x: middle(slot) - half, width: 2 * half, y: y(less(slot[4])),
        height: Math.max(1, y(less(slot[2])) - y(less(slot[4]))),
      })),
      runs.map((run) => svg("polyline", { class: "mean", points: run.map(point).join(" ") })),
      runs.filter((run) => run.length === 1 || slots.length < 40).flat().map((slot) =>
        svg("circle", { class: "dot", cx: middle(slot), cy: y(less(slot[3])), r: 2.2 })),
      slots.filter(isCut).map((slot) => {
        const at = middle(slot);
        return svg("path", { class: "cut", d: `M${at - 3.5} 6L${at} 0L${at + 3.5} 6Z` });
      }),
      xAxis(first, last, (ns) => x(ns, width), base, width, GUTTER),
    ];
  });
  const cut = slots.filter((slot) => less(slot[4]) > ceiling).length;
  const note = cut > 0 ? `mean, min to max · ▲ up to ${time(high)}` : "mean, min to max";
  const section = pane("Over the run", note, node);
  section.classList.add("half");
  follow(section, node, (at, width) => {
    const when = first + ((at - GUTTER) / (width - GUTTER)) * (last - first);
    if (when < first) return undefined;
    const slot = slots.find(([i]) => origin + i * wide <= when && when < origin + (i + 1) * wide);
    if (!slot) return `after ${time(when)}: no samples`;
    const [least, mean, most] = slot.slice(2).map(less);
    return `after ${time(when)}: ${time(mean)} (${time(least)} – ${time(most)}), ${count(slot[1])} samples`;
  });
  return section;
};
