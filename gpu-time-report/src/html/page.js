"use strict";
(() => {
  // Parsed on first use, so that the table is shown at once.
  let data;
  const read = () => (data ??= JSON.parse(document.getElementById("report").textContent));
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const table = document.querySelector(".rows");

  // ---- Elements. Texts become text nodes only, so names cannot become markup.

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
  const pane = (title, note, ...content) =>
    el("section", { class: "pane" }, el("header", {}, el("h3", {}, title), el("span", {}, note)), ...content);

  // ---- Numbers.

  const UNITS = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];
  const unitOf = (ns) => UNITS.find(([, size]) => ns >= 0.9995 * size) ?? UNITS[3];
  const figure = (value) =>
    value.toFixed(value < 9.9995 ? 3 : value < 99.995 ? 2 : value < 999.95 ? 1 : 0);
  const inUnit = (ns, [name, size]) => (name === "ns" ? ns.toFixed(0) : figure(ns / size));
  const time = (ns) => {
    const unit = unitOf(ns);
    return `${inUnit(ns, unit)} ${unit[0]}`;
  };
  const count = (n) => n.toLocaleString("en").replaceAll(",", "\u202f");
  const percent = (part, whole) => (whole > 0 ? `${((100 * part) / whole).toFixed(1)} %` : "");
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
      const text = (value / unit[1]).toFixed(decimals);
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
  // Replaces the note of a pane by a description of what is under the pointer.
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
  const overTime = (series) => {
    const { origin_ns: origin, width_ns: wide, slots } = series.timeline;
    const less = net(series);
    const first = origin + slots[0][0] * wide;
    const last = origin + (slots.at(-1)[0] + 1) * wide;
    const high = Math.max(...slots.map((slot) => less(slot[4])));
    // Keeps outliers from flattening the rest.
    const tops = slots.map((slot) => less(slot[3])).sort((a, b) => a - b);
    const bottom = Math.min(...slots.map((slot) => less(slot[2])));
    const usual = tops.at(-1);
    const top = Math.min(high, usual + 1.5 * Math.max(usual - bottom, usual * 0.02));
    const margin = Math.max(0.12 * (top - bottom), 0.005 * top, 1);
    const low = top - bottom > 0.6 * top ? 0 : Math.max(0, bottom - margin);
    const ceiling = top + margin;
    const x = (ns, width) => GUTTER + ((ns - first) / (last - first)) * (width - GUTTER);
    const label = `Timeline: means from ${time(tops[0])} to ${time(usual)}`;
    const node = chart(150, label, (width, height) => {
      const base = height - 20;
      const y = (ns) => base - (base - 6) * Math.min(1.04, (ns - low) / (ceiling - low));
      const values = ticks(low, ceiling, 5);
      const labels = tickLabels(values);
      const middle = (slot) => x(origin + (slot[0] + 0.5) * wide, width);
      const points = slots.map((slot) => `${middle(slot).toFixed(1)},${y(less(slot[3])).toFixed(1)}`);
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
        svg("polyline", { class: "mean", points: points.join(" ") }),
        slots.length < 40 ? slots.map((slot) =>
          svg("circle", { class: "dot", cx: middle(slot), cy: y(less(slot[3])), r: 2.2 })) : [],
        xAxis(first, last, (ns) => x(ns, width), base, width, GUTTER),
      ];
    });
    const section = pane("Over the run", "mean, min to max", node);
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

  const bars = (entries) => {
    const most = Math.max(...entries.map((entry) => entry.value));
    return el("div", { class: "bars" }, entries.map(({ name, value, text, kind }) => {
      const bar = styled(el("i", { class: kind }), { width: `${(100 * value) / (most || 1)}%` });
      return [el("span", {}, name), el("div", {}, bar), el("span", { class: "n" }, text)];
    }));
  };

  // Cache states of the same work: a box from p5 to p95 with a line at the median, on one axis.
  const caches = (series, others) => {
    const high = Math.max(...others.map((other) => shown(other).p95)) * 1.04;
    const lowest = Math.min(...others.map((other) => shown(other).p5));
    const low = lowest > 0.5 * high ? lowest - 0.3 * (high - lowest) : 0;
    const node = chart(24 + 34 * others.length, "Cache states, p5 to p95", (width, height) => {
      const base = height - 20;
      const x = (ns) => ((ns - low) / (high - low)) * width;
      return [
        xAxis(low, high, x, base, width),
        others.map((other, i) => {
          const { p5, median, p95 } = shown(other);
          const name = other.cache.startsWith("as") ? "" : "cold";
          const y = 34 * i + 16;
          return [
            svg("text", { x: 0, y: y - 5 }, `${other.cache}: ${time(median)}`),
            svg("rect", { class: `band ${name}`, x: x(p5), width: Math.max(2, x(p95) - x(p5)), y, height: 11, rx: 3 }),
            svg("rect", { class: `dot ${name}`, x: x(median) - 1, width: 2.5, y: y - 1, height: 13 }),
          ];
        }),
      ];
    });
    const hot = others.find((other) => other.cache === "as-found");
    const cold = others.find((other) => other.cache.startsWith("cold"));
    const ratio = hot && cold ? `${cold.cache} takes ${(shown(cold).median / shown(hot).median).toFixed(2)} × as-found` : "p5 to p95, median";
    return pane("Cache states", ratio, node);
  };

  const launches = (site, series) => {
    const isCold = series.cache !== "as-found";
    const own = site.series.filter((other) =>
      other.launch && isSameWork(series, other) && shown(other) &&
      (other.cache === series.cache || (isCold && other.cache === "after-cold")));
    if (own.length < 2) return undefined;
    const total = own.reduce((sum, other) => sum + shown(other).sum, 0);
    const entries = own.map((other) => ({
      name: launchName(other.launch),
      value: shown(other).sum,
      text: `${time(shown(other).median)} · ${percent(shown(other).sum, total)}`,
    }));
    return pane("Launches", "median · share of the launches' time", bars(entries));
  };

  const samples = (series) => {
    const lost = Object.entries(series.lost).filter(([, n]) => n > 0);
    const isGpuTime = series.clock === "events" || series.clock === "kernels";
    const parts = [
      isGpuTime
        ? ["fed", "fed", series.fed, "the GPU cannot have waited for the CPU"]
        : ["host", "host", series.fed, "wall time on the host, not GPU time"],
      ["opened", "opened", series.opened, "CUPTI recorded the call instead of events"],
      ["starved", "starved", series.starved, "the GPU may have waited for the CPU: an upper bound"],
      ["at_floor", "at the floor", series.at_floor, "nothing ran between the events"],
      ["in_flight", "in flight", series.in_flight, "not finished when the report was made"],
      ...lost.map(([reason, n]) => ["lost", `lost: ${reason}`, n, read().lost[reason] ?? ""]),
    ].filter(([, , n]) => n > 0);
    const marks = Object.entries({
      queued: "work was queued behind the bracket",
      nested: "contains another timed bracket",
      tracked: "contains waits and records of cudarc's event tracking",
    }).filter(([mark]) => series[mark] > 0);
    return pane("Samples", `${count(series.measured + series.opened)} of ${count(series.timed)} timed`,
      el("div", { class: "stack" }, parts.map(([kind, , n]) => styled(el("i", { class: kind }), { flex: `${n} 0 0` }))),
      el("table", { class: "key" }, parts.map(([kind, name, n, meaning]) =>
        el("tr", {}, el("th", {}, el("i", { class: kind }), name), el("td", { class: "n" }, count(n)),
          el("td", { class: "soft" }, meaning)))),
      marks.map(([mark, meaning]) => el("p", { class: "soft" }, `${count(series[mark])} ${mark}: ${meaning}`)));
  };

  // Calls whose work CUPTI recorded.
  const opened = (series) => {
    const rows = [
      ["busy", series.busy_ns, "at least one of its kernels, copies and memsets ran"],
      ["self busy", series.self_busy_ns, "the part that no inner function accounts for"],
      ["span", series.span_ns, "from the first start to the last end"],
      ["gaps", series.gaps_ns, "nothing of the call ran"],
      ["host", series.host_ns, "the call on the CPU"],
    ].filter(([, stats]) => stats);
    const idle = series.gaps_ns && series.span_ns && percent(series.gaps_ns.median, series.span_ns.median);
    const note = [
      `${count(series.opened)} calls`,
      series.kernels_per_call !== null && `${decimal(series.kernels_per_call)} kernels per call`,
      series.streams > 1 && `${series.streams} streams`,
      idle && `idle ${idle}`,
      series.zero_times > 0 && `${count(series.zero_times)} records without times`,
    ].filter(Boolean);
    const head = ["", "median", "p5 – p95"].map((name, i) => el("th", { class: i === 1 ? "n" : undefined }, name));
    return pane("Opened calls", note.join(" · "), el("table", {}, el("tr", {}, head, el("td")), rows.map(([name, stats, meaning]) =>
      el("tr", {}, el("th", {}, name), el("td", { class: "n" }, time(stats.median)),
        el("td", {}, range(stats)), el("td", { class: "soft" }, meaning)))));
  };
  const decimal = (n) => (Number.isInteger(n) ? count(n) : figure(n));
  const shape = ([x, y, z]) => [x, ...(y > 1 || z > 1 ? [y] : []), ...(z > 1 ? [z] : [])].join("×");
  const range = ({ p5, p95 }) => `${time(p5)} – ${time(p95)}`;

  const kernels = (series) => {
    const names = ["kernel", "grid", "block", "registers", "shared", "per call", "median", "p5 – p95", "total", "share"];
    const numeric = (text) => el("td", { class: "n" }, text);
    const rows = series.kernels.map((kernel) => {
      const launched = kernel.grid.some((n) => n > 0);
      const bar = styled(el("i"), { width: `calc(${kernel.share} * (100% - 3.6rem))` });
      return el("tr", {}, el("th", {}, el("code", {}, kernel.name)),
        numeric(launched && shape(kernel.grid)), numeric(launched && shape(kernel.block)),
        numeric(launched && kernel.registers), numeric(launched && `${count(kernel.shared_bytes)} B`),
        numeric(decimal(kernel.per_call)), numeric(kernel.time_ns && time(kernel.time_ns.median)),
        numeric(kernel.time_ns && range(kernel.time_ns)), numeric(time(kernel.total_ns)),
        el("td", { class: "portion" }, bar, percent(kernel.share, 1)));
    });
    const head = el("tr", {}, names.map((name, i) => el("th", { class: i ? "n" : undefined }, name)));
    const section = pane("Kernels", `${count(rows.length)} · share of their time`,
      el("div", { class: "kernels" }, el("table", {}, head, rows)));
    section.classList.add("whole");
    return section;
  };

  const elsewhere = (series) => {
    const reasons = { "other-stream": "on another stream than the timed one", "after-stop": "after the stop event" };
    return pane("Work elsewhere", "not in the times by events", el("table", {}, series.elsewhere.map((work) =>
      el("tr", {}, el("th", {}, el("code", {}, work.name)), el("td", { class: "n" }, `${count(work.count)} ×`),
        el("td", { class: "n" }, time(work.total_ns)), el("td", { class: "soft" }, reasons[work.why])))));
  };

  const figures = (series) => {
    const { raw_ns: raw, net_ns: less, ci95_ns: ci } = series;
    const names = { min: "min", p5: "p5", median: "median", mean: "mean", p95: "p95", p99: "p99", max: "max", stddev: "std. dev.", sum: "sum" };
    const sources = less && bias(series) > 0 ? [["net", less], ["raw", raw]] : [["", less ?? raw]];
    const rows = Object.entries(names).map(([key, name]) =>
      el("tr", {}, el("th", {}, name), sources.map(([, stats]) => el("td", { class: "n" }, time(stats[key])))));
    const head = sources.length > 1 ? el("tr", {}, el("td"), sources.map(([name]) => el("th", { class: "n" }, name))) : undefined;
    const known = ci && shown(series).median > 0 ? (50 * (ci[1] - ci[0])) / shown(series).median : 0;
    const interval = known >= 0.005 ? `median ±${known.toFixed(2)} % (95 %)` : "";
    return pane("Figures", interval, el("table", {}, head, rows));
  };

  const about = (site, series) => {
    const entries = [
      ["on", series.device],
      ["declared", el("code", {}, `${site.file}:${site.line}`)],
      ["launch", series.launch && launchName(series.launch)],
      ["key", series.key && el("code", {}, series.key)],
      ["options", site.options && el("code", {}, site.options)],
      ["measures", series.clock === "kernels" ? "time during which kernels of the call ran" : { sum: "sum of a call's launches", span: "whole call, from first to last operation", launch: "one launch" }[series.measure]],
      ["clock", { events: "CUDA events", sync: "wall time between two stream barriers", host: "wall time on the CPU", kernels: "CUPTI's records of opened calls" }[series.clock]],
      ["in graphs", series.graph ? "yes: samples are replays, and not every replay is sampled" : undefined],
      ["calls", `${count(site.calls)}: ${count(site.timed)} timed, ${count(site.warmup)} warm-up, ${count(site.skipped)} skipped`],
      ["bias", series.bias_ns ? `${time(series.bias_ns)} per bracket` : undefined],
      ["bytes", series.bytes?.per_call && `${count(series.bytes.per_call)} per call`],
      ["operations", series.flops?.per_call && `${count(series.flops.per_call)} per call`],
    ];
    const facts = entries.filter(([, value]) => value);
    const section = pane("About", "",
      el("dl", { class: "facts" }, facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
      site.warnings.map((warning) => el("p", { class: "warn" }, warning)));
    section.classList.add("whole");
    return section;
  };

  const details = (row) => {
    const { report, bins } = read();
    const site = report.sites[row.dataset.site];
    const series = site.series[row.dataset.series];
    const stats = series && shown(series);
    const panes = [];
    const chartBins = series && bins[row.dataset.site][row.dataset.series];
    if (stats && chartBins) panes.push(distribution(series, chartBins));
    if (stats && series.timeline?.slots?.length > 0) panes.push(overTime(series));
    if (stats && !series.launch) panes.push(launches(site, series));
    if (stats) {
      const index = series.launch?.index;
      const others = site.series.filter((other) =>
        isSameWork(series, other) && other.launch?.index === index && other.measure === series.measure && shown(other));
      if (others.length > 1) panes.push(caches(series, others));
      panes.push(figures(series));
    }
    if (series?.opened > 0) {
      panes.push(opened(series));
      if (series.kernels.length > 0) panes.push(kernels(series));
      if (series.elsewhere.length > 0) panes.push(elsewhere(series));
    }
    if (series) panes.push(samples(series), about(site, series));
    return panes.filter(Boolean);
  };

  // ---- The table: rows that open, sorting and filtering.

  const toggle = (row) => {
    const button = row.querySelector("button");
    const opens = button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", opens);
    if (!opens) return row.nextElementSibling.remove();
    const cell = el("td", { colspan: row.cells.length }, el("div", { class: "panes" }, details(row)));
    row.after(el("tr", { class: row.classList.contains("launch") ? "detail of-launch" : "detail" }, cell));
  };
  for (const row of all(".row", table)) {
    const name = row.querySelector(".name");
    const button = el("button", { type: "button", "aria-expanded": "false" });
    button.append(...name.childNodes);
    name.append(button);
    row.addEventListener("click", () => {
      if (getSelection().isCollapsed) toggle(row);
    });
  }

  const groups = all("tbody", table);
  const heads = all("thead th", table);
  const isNumeric = (column) => heads[column].classList.contains("n");
  // A function without a value of its own is sorted by that of its first launch.
  const value = (group, column) => {
    const cells = all(".row", group).map((row) => row.cells[column]);
    const found = cells.map((cell) => (isNumeric(column) ? cell.dataset.value : cell.textContent));
    return found.find(Boolean);
  };
  const sort = (column, direction) => {
    const numeric = isNumeric(column);
    const compare = (a, b) => {
      if (a.value === undefined || b.value === undefined) return (a.value === undefined) - (b.value === undefined);
      const order = numeric ? a.value - b.value : a.value.localeCompare(b.value, "en", { numeric: true });
      return direction === "ascending" ? order : -order;
    };
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[column].setAttribute("aria-sort", direction);
    const keyed = groups.map((group) => ({ group, value: value(group, column) }));
    table.append(...keyed.sort(compare).map(({ group }) => group));
  };
  const natural = (column) => (isNumeric(column) ? "descending" : "ascending");
  const choice = document.querySelector(".sort select");
  heads.forEach((head, column) => {
    if (head.dataset.sortable === undefined) return;
    const button = el("button", { type: "button" });
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      const reverse = natural(column) === "ascending" ? "descending" : "ascending";
      sort(column, now === natural(column) ? reverse : natural(column));
    });
    const option = el("option", { value: column }, head.textContent);
    if (head.hasAttribute("aria-sort")) option.selected = true;
    choice.append(option);
  });
  choice.addEventListener("change", () => sort(Number(choice.value), natural(Number(choice.value))));

  const search = document.querySelector(".tools [type=search]");
  const found = document.querySelector(".tools output");
  const text = (row) => {
    const { name, file, line, series } = read().report.sites[row.dataset.site];
    const { device, cache, key, launch, kernels = [] } = series[row.dataset.series] ?? {};
    const names = kernels.map((kernel) => kernel.name);
    return [`${name} (${file}:${line})`, device, cache, key, launch?.name, ...names].join("\n").toLowerCase();
  };
  let texts;
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let visible = 0;
    if (words.length > 0) texts ??= groups.map((group) => all(".row", group).map(text).join("\n"));
    groups.forEach((group, i) => {
      group.hidden = !words.every((word) => texts[i].includes(word));
      visible += !group.hidden;
    });
    found.textContent = `${visible} of ${groups.length}`;
  };
  search.addEventListener("input", filter);
  filter();
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== search) {
      event.preventDefault();
      search.focus();
    }
  });

  const withLaunches = document.querySelector(".tools [type=checkbox]");
  withLaunches?.addEventListener("change", () =>
    document.body.classList.toggle("without-launches", !withLaunches.checked));

  // ---- Light and dark theme.

  const theme = document.querySelector(".theme");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const root = document.documentElement;
    const now = root.dataset.theme ?? (prefersDark.matches ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
  });

  document.body.classList.add("scripted");
})();
