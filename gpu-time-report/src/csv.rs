//! The report as CSV: a header, then one line per series. Names are escaped as in the table, so the
//! file can safely be printed to a terminal.

use crate::units::printable;
use crate::{Lost, Series, Site, Snapshot, Stats};

/// A column's name, and the function that renders its cell for a series.
type CsvColumn = (String, Box<dyn Fn(&Site, &Series) -> String>);

/// A statistic's name and accessor.
type Figure = (&'static str, fn(&Stats) -> f64);

impl Snapshot {
    /// Returns the CSV report: a header, then one line per series. Control characters in names are
    /// escaped as in the table; everything else is unchanged. Spreadsheets interpret a name that
    /// begins with `=`, `+`, `-` or `@`, such as the key `-1`, as a formula unless its column is
    /// imported as text.
    pub fn to_csv(&self) -> String {
        render(self)
    }
}

fn render(snapshot: &Snapshot) -> String {
    let columns = columns();
    let mut text = String::new();
    write_line(&mut text, columns.iter().map(|(name, _)| name.clone()));
    for site in &snapshot.sites {
        for series in &site.series {
            write_line(&mut text, columns.iter().map(|(_, value)| value(site, series)));
        }
    }
    text
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
    add("scope", |site, _| site.scope().to_owned());
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
    add("launch_index", |_, series| optional(series.launch().map(|launch| launch.index)));
    add("launch_name", |_, series| {
        optional(series.launch().map(|launch| printable(launch.name())))
    });
    add("launch_line", |_, series| optional(series.launch().map(|launch| launch.line)));
    add("measure", |_, series| series.measure().to_owned());
    add("key", |_, series| optional(series.key().map(printable)));
    add("cache", |_, series| series.cache().to_owned());
    add("clock", |_, series| series.clock().to_owned());
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
    add_stats(&mut columns, "raw", |series| series.raw_ns.as_ref());
    add_stats(&mut columns, "net", |series| series.net_ns.as_ref());
    for (end, name) in ["ci95_low_ns", "ci95_high_ns"].into_iter().enumerate() {
        let value = move |series: &Series| series.ci95_ns?.get(end).copied();
        columns.push((name.to_owned(), Box::new(move |_, series| optional(value(series)))));
    }
    let mut add = |name: &str, value: fn(&Series) -> Option<f64>| {
        columns.push((name.to_owned(), Box::new(move |_, series| optional(value(series)))));
    };
    add("estimated_total_ns", |series| series.estimated_total_ns);
    add("estimated_total_error_ns", |series| series.estimated_total_error_ns);
    add("bytes_per_call", |series| series.bytes()?.per_call);
    add("bytes_total", |series| Some(series.bytes()?.total));
    add("gb_per_s", |series| series.bytes()?.gb_per_s);
    add("peak_share", |series| series.bytes()?.peak_share);
    add("flops_per_call", |series| series.flops()?.per_call);
    add("flops_total", |series| Some(series.flops()?.total));
    add("tflop_per_s", |series| series.flops()?.tflop_per_s);
    columns
}

fn add_stats(columns: &mut Vec<CsvColumn>, kind: &str, stats: fn(&Series) -> Option<&Stats>) {
    const FIGURES: [Figure; 9] = [
        ("min", Stats::min),
        ("p5", Stats::p5),
        ("median", Stats::median),
        ("mean", Stats::mean),
        ("p95", Stats::p95),
        ("p99", Stats::p99),
        ("max", Stats::max),
        ("stddev", Stats::stddev),
        ("sum", Stats::sum),
    ];
    for (name, figure) in FIGURES {
        let value = move |_: &Site, series: &Series| optional(stats(series).map(figure));
        columns.push((format!("{kind}_{name}_ns"), Box::new(value)));
    }
}

fn optional(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
