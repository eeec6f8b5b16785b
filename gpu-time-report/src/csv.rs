//! The report as CSV: a header, then one line per series, each followed by a line for each kernel of
//! its recorded calls. Names are escaped as in the table, so the file can safely be printed to a
//! terminal.

use crate::units::printable;
use crate::{Kernel, KernelTimes, Lost, Process, Series, Site, Snapshot, Stats};

/// A column's name, and the function that renders its cell for a series.
type CsvColumn = (String, Box<dyn Fn(&Site, &Series) -> String>);

/// A column's name, and the function that renders its cell for a kernel.
type KernelColumn = (&'static str, fn(&Kernel) -> String);

/// A statistic's name and accessor.
type Figure = (&'static str, fn(&Stats) -> f64);

/// Returns statistics of a series.
type StatsOf = fn(&Series) -> Option<&Stats>;

/// The columns of a series that the lines of its kernels repeat.
const REPEATED: [&str; 9] =
    ["site", "file", "line", "scope", "device", "key", "cache", "clock", "graph"];

impl Snapshot {
    /// Returns the CSV report: a header, then one line per series. Each kernel of a series' opened
    /// calls follows on a line of its own, whose `measure` is `kernel`.
    ///
    /// Control characters in names are escaped as in the table; everything else is unchanged.
    /// Spreadsheets interpret a name that begins with `=`, `+`, `-` or `@`, such as the key `-1`,
    /// as a formula unless its column is imported as text.
    pub fn to_csv(&self) -> String {
        render(self)
    }
}

fn render(snapshot: &Snapshot) -> String {
    let (columns, of_kernels) = (columns(), kernel_columns());
    let run = run(&snapshot.process);
    let of_run = || run.iter().map(|(_, cell)| cell.clone());
    let mut text = String::new();
    let names = columns.iter().map(|(name, _)| name.clone());
    let names = names.chain(of_kernels.map(|(name, _)| name.to_owned()));
    write_line(&mut text, names.chain(run.iter().map(|(name, _)| (*name).to_owned())));
    for site in &snapshot.sites {
        for series in &site.series {
            let cells = columns.iter().map(|(_, value)| value(site, series));
            write_line(&mut text, cells.chain(of_kernels.map(|_| String::new())).chain(of_run()));
            let times = series.kernel_times.as_ref();
            for kernel in times.map_or(&[][..], |times| &times.kernels) {
                let cells = columns.iter().map(|(name, value)| match &**name {
                    "measure" => "kernel".to_owned(),
                    name if REPEATED.contains(&name) => value(site, series),
                    _ => String::new(),
                });
                let cells = cells.chain(of_kernels.map(|(_, value)| value(kernel)));
                write_line(&mut text, cells.chain(of_run()));
            }
        }
    }
    text
}

/// Returns the columns that are the same in every line, so that lines of several reports can be told
/// apart in one file.
fn run(process: &Process) -> [(&'static str, String); 3] {
    let Process { label, program_version, host, .. } = process;
    [("label", label), ("program_version", program_version), ("host", host)]
        .map(|(name, value)| (name, optional(value.as_deref().map(printable))))
}

/// Appends one line. Cells are quoted where RFC 4180 requires it.
fn write_line(text: &mut String, cells: impl Iterator<Item = String>) {
    for (index, cell) in cells.enumerate() {
        if index > 0 {
            text.push(',');
        }
        if cell.contains([',', '"', '\n', '\r']) {
            text.extend(["\"", &cell.replace('"', "\"\""), "\""]);
        } else {
            text.push_str(&cell);
        }
    }
    text.push('\n');
}

fn columns() -> Vec<CsvColumn> {
    let mut columns: Vec<CsvColumn> = Vec::new();
    let mut add = |name: &str, value: fn(&Site, &Series) -> String| {
        columns.push((name.to_owned(), Box::new(value)));
    };
    add("site", |site, _| printable(&site.name));
    add("file", |site, _| printable(&site.file));
    add("line", |site, _| site.line.to_string());
    add("scope", |site, _| site.scope.name().to_owned());
    add("options", |site, _| printable(&site.options));
    add("remarks", |site, _| {
        site.remarks.iter().map(|remark| remark.code()).collect::<Vec<_>>().join(" ")
    });
    add("calls", |site, _| site.calls.to_string());
    add("warmup", |site, _| site.warmup.to_string());
    add("skipped", |site, _| site.skipped.to_string());
    add("unsampled", |site, _| site.unsampled.to_string());
    add("sample_rate", |site, _| site.sample_rate.to_string());
    add("device", |_, series| printable(&series.device));
    add("launch_index", |_, series| optional(series.launch.as_ref().map(|launch| launch.index)));
    add("launch_name", |_, series| {
        optional(series.launch.as_ref().map(|launch| printable(&launch.name)))
    });
    add("launch_line", |_, series| optional(series.launch.as_ref().map(|launch| launch.line)));
    add("measure", |_, series| series.measure.name().to_owned());
    add("key", |_, series| optional(series.key.as_deref().map(printable)));
    add("cache", |_, series| series.cache.name().to_owned());
    add("clock", |_, series| series.clock.name().to_owned());
    add("graph", |_, series| series.graph.to_string());
    add("timed", |_, series| series.timed.to_string());
    add("in_flight", |_, series| series.in_flight.to_string());
    add("measured", |_, series| series.measured.to_string());
    add("fed", |_, series| series.fed.to_string());
    add("starved", |_, series| series.starved.to_string());
    add("at_floor", |_, series| series.at_floor.to_string());
    add("queued", |_, series| series.queued.to_string());
    add("nested", |_, series| series.nested.to_string());
    add("tracked", |_, series| series.tracked.to_string());
    add("upper_bound", |_, series| series.upper_bound.to_string());
    for reason in Lost::ALL {
        let name = format!("lost_{}", reason.name());
        columns.push((name, Box::new(move |_, series| series.lost.of(reason).to_string())));
    }
    add_stats(&mut columns, "raw", &FIGURES, |series| series.raw_ns.as_ref());
    add_stats(&mut columns, "net", &FIGURES, |series| series.net_ns.as_ref());
    for (end, name) in ["ci95_low_ns", "ci95_high_ns"].into_iter().enumerate() {
        let value = move |series: &Series| series.ci95_ns?.get(end).copied();
        columns.push((name.to_owned(), Box::new(move |_, series| optional(value(series)))));
    }
    let mut add = |name: &str, value: fn(&Series) -> Option<f64>| {
        columns.push((name.to_owned(), Box::new(move |_, series| optional(value(series)))));
    };
    add("estimated_total_ns", |series| series.estimated_total_ns);
    add("estimated_total_error_ns", |series| series.estimated_total_error_ns);
    add("bytes_per_call", |series| series.bytes?.per_call);
    add("bytes_total", |series| Some(series.bytes?.total));
    add("gb_per_s", |series| series.bytes?.gb_per_s);
    add("peak_share", |series| series.bytes?.peak_share);
    add("flops_per_call", |series| series.flops?.per_call);
    add("flops_total", |series| Some(series.flops?.total));
    add("tflop_per_s", |series| series.flops?.tflop_per_s);
    add_opened(&mut columns);
    columns
}

/// Adds the columns about the recorded calls of a series.
fn add_opened(columns: &mut Vec<CsvColumn>) {
    columns.push(("opened".to_owned(), Box::new(|_, series| series.opened().to_string())));
    columns.push(("launch_bound".to_owned(), Box::new(|site, _| optional(site.launch_bound))));
    let stats: [(&str, StatsOf); 5] = [
        ("busy", |series| series.kernel_times.as_ref()?.busy_ns.as_ref()),
        ("self_busy", |series| series.kernel_times.as_ref()?.self_busy_ns.as_ref()),
        ("span", |series| series.kernel_times.as_ref()?.span_ns.as_ref()),
        ("gaps", |series| series.kernel_times.as_ref()?.gaps_ns.as_ref()),
        ("host", |series| series.host_ns.as_ref()),
    ];
    for (kind, stats) in stats {
        add_stats(columns, kind, &SPREAD, stats);
    }
    let mut add = |name: &str, value: fn(&KernelTimes) -> Option<f64>| {
        let value = move |series: &Series| series.kernel_times.as_ref().and_then(value);
        columns.push((name.to_owned(), Box::new(move |_, series| optional(value(series)))));
    };
    add("kernels_per_call", |kernel_times| kernel_times.kernels_per_call);
    add("streams", |times| times.streams.map(f64::from));
    add("zero_times", |times| Some(times.zero_times as f64));
    add("elsewhere_ns", |times| {
        Some(times.elsewhere.iter().fold(0.0, |sum, work| sum + work.total_ns))
    });
}

/// Returns the columns about a kernel. They come last.
fn kernel_columns() -> [KernelColumn; 13] {
    [
        ("kernel", |kernel| printable(&kernel.name)),
        ("grid", |kernel| dimensions(kernel.grid)),
        ("block", |kernel| dimensions(kernel.block)),
        ("registers", |kernel| kernel.registers.to_string()),
        ("shared_bytes", |kernel| kernel.shared_bytes.to_string()),
        ("per_call", |kernel| kernel.per_call.to_string()),
        ("count", |kernel| kernel.count.to_string()),
        ("kernel_p5_ns", |kernel| optional(kernel.time_ns.map(|stats| stats.p5))),
        ("kernel_median_ns", |kernel| optional(kernel.time_ns.map(|stats| stats.median))),
        ("kernel_p95_ns", |kernel| optional(kernel.time_ns.map(|stats| stats.p95))),
        ("kernel_stddev_ns", |kernel| optional(kernel.time_ns.map(|stats| stats.stddev))),
        ("kernel_total_ns", |kernel| kernel.total_ns.to_string()),
        ("kernel_share", |kernel| kernel.share.to_string()),
    ]
}

const FIGURES: [Figure; 9] = [
    ("min", |stats| stats.min),
    ("p5", |stats| stats.p5),
    ("median", |stats| stats.median),
    ("mean", |stats| stats.mean),
    ("p95", |stats| stats.p95),
    ("p99", |stats| stats.p99),
    ("max", |stats| stats.max),
    ("stddev", |stats| stats.stddev),
    ("sum", |stats| stats.sum),
];

const SPREAD: [Figure; 4] = [
    ("p5", |stats| stats.p5),
    ("median", |stats| stats.median),
    ("p95", |stats| stats.p95),
    ("sum", |stats| stats.sum),
];

fn add_stats(columns: &mut Vec<CsvColumn>, kind: &str, figures: &[Figure], stats: StatsOf) {
    for &(name, figure) in figures {
        let value = move |_: &Site, series: &Series| optional(stats(series).map(figure));
        columns.push((format!("{kind}_{name}_ns"), Box::new(value)));
    }
}

fn dimensions([x, y, z]: [u32; 3]) -> String {
    format!("{x}x{y}x{z}")
}

fn optional(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
