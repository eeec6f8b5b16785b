// ---- The details of an opened row.

const bars = (entries) => {
  const most = Math.max(...entries.map((entry) => entry.value));
  return el("div", { class: "bars" }, entries.map(({ name, value, text, kind }) => {
    const bar = styled(el("i", { class: kind }), { width: `${(100 * value) / (most || 1)}%` });
    return [el("span", {}, name), el("div", {}, bar), el("span", { class: "n" }, text)];
  }));
};

// Compares the cache states of the same work on one axis: a box from p5 to p95, with a line at the median.
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

const samples = (site, series) => {
  const isHeld = site.gpu_keys.includes("sleep");
  const remedy = isHeld ? ", although `sleep` held the stream in other calls" : "; `sleep` holds the stream until all is enqueued";
  const lost = Object.entries(series.lost).filter(([, n]) => n > 0);
  const isGpuTime = series.clock === "events" || series.clock === "kernels";
  const parts = [
    isGpuTime
      ? ["fed", "fed", series.fed, "the GPU cannot have waited for the CPU"]
      : ["host", "host", series.fed, "wall time on the host, not GPU time"],
    ["opened", "recorded", series.opened, "CUPTI recorded the call instead of events"],
    ["starved", "starved", series.starved, `the GPU may have waited for the CPU: an upper bound${remedy}`],
    ["at_floor", "at the floor", series.at_floor, "nothing ran between the events"],
    ["in_flight", "in flight", series.in_flight, "not finished when the report was made"],
    ...lost.map(([reason, n]) => ["lost", "lost", n, `because ${read().lost[reason] ?? reason}`]),
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
        el("td", { class: "soft" }, prose(meaning))))),
    marks.map(([mark, meaning]) => el("p", { class: "soft" }, `${count(series[mark])} ${mark}: ${meaning}`)));
};

// Returns the pane about calls whose work CUPTI recorded.
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
    counted(count(series.opened), "call"),
    series.kernels_per_call !== undefined && `${counted(decimal(series.kernels_per_call), "kernel")} per call`,
    series.streams > 1 && `${series.streams} streams`,
    idle && `idle ${idle}`,
    series.zero_times > 0 && `${counted(count(series.zero_times), "record")} without times`,
  ].filter(Boolean);
  const head = ["", "median", "p5 – p95"].map((name, i) => el("th", { class: i ? "n" : undefined }, name));
  return pane("Recorded calls", note.join(" · "), el("table", {}, el("tr", {}, head, el("td")), rows.map(([name, stats, meaning]) =>
    el("tr", {}, el("th", {}, name), el("td", { class: "n" }, time(stats.median)),
      el("td", { class: "n range" }, range(stats)), el("td", { class: "soft" }, meaning)))));
};
const decimal = (n) => (Number.isInteger(n) ? count(n) : figure(n).replace(/\.0+$/, ""));
const shape = ([x, y, z]) => [x, ...(y > 1 || z > 1 ? [y] : []), ...(z > 1 ? [z] : [])].join("×");
const range = ({ p5, p95 }) => `${time(p5)} – ${time(p95)}`;

// Returns the short name of the kernel with an index, which shows the whole name under the pointer.
const kernelName = (at) => {
  const { names, short_names: short } = read().kernels;
  return el("code", { title: short[at] && printable(names[at]) }, short[at] ?? names[at]);
};

const kernels = ({ shown, more: [left, portion] }) => {
  const names = ["kernel", "grid", "block", "registers", "shared", "per call", "median", "p5 – p95", "total", "share"];
  const numeric = (text) => el("td", { class: "n" }, text);
  const rows = shown.map(([at, grid, block, registers, shared, perCall, times, total, share]) => {
    const launched = grid.length > 0;
    const several = !launched && !/^[[<]/.test(read().kernels.names[at]) && "several";
    const [median, p5, p95] = times ?? [];
    const bar = styled(el("i"), { width: `calc(${share} * (100% - 3.6rem))` });
    return el("tr", {}, el("th", {}, kernelName(at)),
      numeric(launched ? shape(grid) : several), numeric(launched && shape(block)),
      numeric(launched && registers), numeric(launched && `${count(shared)} B`),
      numeric(decimal(perCall)), numeric(times && time(median)),
      numeric(times && range({ p5, p95 })), numeric(time(total)),
      el("td", { class: "portion" }, bar, percent(share, 1)));
  });
  const others = left > 0 && el("tr", {},
    el("th", { colspan: names.length - 1 }, `and ${count(left)} more, in the JSON report`),
    el("td", { class: "portion" }, percent(portion, 1)));
  const head = el("tr", {}, names.map((name, i) => el("th", { class: i ? "n" : undefined }, name)));
  const section = pane("Kernels", `${count(shown.length + left)} · share of their time`,
    el("div", { class: "kernels" }, el("table", {}, head, rows, others)));
  section.classList.add("whole");
  return section;
};

const elsewhere = (works) => {
  const reasons = { "other-stream": "on another stream than the timed one", "after-stop": "outside of the launches that events bracket" };
  return pane("Work elsewhere", "not in the times by events", el("table", {}, works.map(([at, launches, total, why]) =>
    el("tr", {}, el("th", {}, kernelName(at)), el("td", { class: "n" }, `${count(launches)} ×`),
      el("td", { class: "n" }, time(total)), el("td", { class: "soft" }, reasons[why])))));
};

const figures = (series) => {
  const { raw_ns: raw, net_ns: less, ci95_ns: ci } = series;
  const names = { min: "min", p5: "p5", median: "median", mean: "mean", p95: "p95", p99: "p99", max: "max", stddev: "std. dev.", sum: "sum" };
  const sources = less && bias(series) > 0 ? [["net", less], ["raw", raw]] : [["", less ?? raw]];
  const rows = Object.entries(names).map(([key, name]) =>
    el("tr", {}, el("th", {}, name), sources.map(([, stats]) => el("td", { class: "n" }, time(stats[key])))));
  const head = sources.length > 1 ? el("tr", {}, el("td"), sources.map(([name]) => el("th", { class: "n" }, name))) : undefined;
  const known = ci && shown(series).median > 0 ? (50 * (ci[1] - ci[0])) / shown(series).median : 0;
  const interval = known >= 0.005 ? `median ±${known.toFixed(2)}% (95%)` : "";
  return pane("Figures", interval, el("table", {}, head, rows));
};

const about = (site, series) => {
  const entries = [
    ["on", series.device !== "cuda:?" && series.device],
    ["declared", el("code", {}, `${site.file}:${site.line}`)],
    ["launch", series.launch && launchName(series.launch)],
    ["key", series.key && el("code", {}, series.key)],
    ["options", site.options && el("code", {}, site.options)],
    ["measures", series.clock === "kernels" ? "time during which kernels of the call ran" : { sum: "sum of a call's launches", span: "whole call, from first to last operation", launch: "one launch" }[series.measure]],
    ["clock", { events: "CUDA events", sync: "wall time between two stream barriers", host: "wall time on the CPU", kernels: "CUPTI's records" }[series.clock]],
    ["in graphs", series.graph ? "yes: samples are replays, and not every replay is sampled" : undefined],
    ["calls", `${count(site.calls)}: ${count(site.timed)} timed, ${count(site.warmup)} warm-up, ${count(site.skipped)} skipped`],
    ["bias", series.bias_ns ? `${time(series.bias_ns)} per bracket` : undefined],
    ["bytes", series.bytes?.per_call && `${count(series.bytes.per_call)} per call`],
    ["operations", series.flops?.per_call && `${count(series.flops.per_call)} per call`],
  ];
  const facts = entries.filter(([, value]) => value);
  const section = pane("About", "",
    el("dl", { class: "facts" }, facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    site.warnings?.map((warning) => el("p", { class: "warn" }, prose(warning))));
  section.classList.add("whole");
  return section;
};

const details = (row) => {
  const { report, bins, timelines } = read();
  const site = report.sites[row.dataset.site];
  const series = site.series[row.dataset.series];
  const stats = series && shown(series);
  const panes = [];
  const chartBins = series && bins[row.dataset.site][row.dataset.series];
  if (stats && chartBins) panes.push(distribution(series, chartBins));
  const timeline = series && timelines[row.dataset.site][row.dataset.series];
  if (stats && timeline) panes.push(overTime(series, timeline));
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
    const work = kernelsOf(row);
    if (work?.shown.length > 0) panes.push(kernels(work));
    if (work?.elsewhere.length > 0) panes.push(elsewhere(work.elsewhere));
  }
  if (series) panes.push(samples(site, series), about(site, series));
  return panes.filter(Boolean);
};
