//! The report as CSV: a header, then one line per series, each followed by a line for each kernel of
//! its recorded calls. Names are escaped as in the table, so the file can safely be printed to a
//! terminal.

use serde_json::{Value, json};

use crate::units::printable;
use crate::{Lost, Process, Snapshot};

// The columns, each by its place in the JSON report. A name before `=` takes the place of the one there.

const OF_SITE: &str =
    "site=name file line scope options remarks calls warmup skipped unsampled sample_rate";
const OF_SERIES: &str = "device launch_index=launch/index launch_name=launch/name launch_line=launch/line measure \
                         key cache clock graph timed in_flight measured fed starved at_floor queued nested tracked \
                         upper_bound";
const OF_TOTALS: &str = "ci95_low_ns=ci95_ns/0 ci95_high_ns=ci95_ns/1 estimated_total_ns estimated_total_error_ns \
                         bytes_per_call=bytes/per_call bytes_total=bytes/total gb_per_s=bytes/gb_per_s \
                         peak_share=bytes/peak_share flops_per_call=flops/per_call flops_total=flops/total \
                         tflop_per_s=flops/tflop_per_s opened launch_bound";
const OF_OPENED: &str = "kernels_per_call streams zero_times elsewhere_ns";
const OF_KERNEL: &str = "kernel=name grid block registers shared_bytes per_call count kernel_p5_ns=time_ns/p5 \
                         kernel_median_ns=time_ns/median kernel_p95_ns=time_ns/p95 kernel_stddev_ns=time_ns/stddev \
                         kernel_total_ns=total_ns kernel_share=share";
/// The same in every line, so that lines of several reports can be told apart in one file.
const OF_RUN: &str = "label program_version host";

const FIGURES: [&str; 9] = ["min", "p5", "median", "mean", "p95", "p99", "max", "stddev", "sum"];
const SPREAD: [&str; 4] = ["p5", "median", "p95", "sum"];

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
    let (columns, mut text) = (columns(), String::new());
    write_line(&mut text, columns.iter().map(|(name, _)| name.clone()));
    let mut write = |of_site: &Value, of_series: Value, kernel: Option<&Value>| {
        let Process { label, program_version, host, .. } = &snapshot.process;
        let run = json!({ "label": label, "program_version": program_version, "host": host });
        let line = json!({ "site": of_site, "series": of_series, "kernel": kernel, "run": run });
        let cells =
            columns.iter().map(|(_, place)| line.pointer(place).map_or_else(String::new, cell));
        write_line(&mut text, cells);
    };
    for site in &snapshot.sites {
        let mut of_site = json!(site);
        let Value::Array(all) = of_site["series"].take() else { continue };
        for (series, mut of_series) in site.series.iter().zip(all) {
            let kernels = of_series["kernels"].take();
            of_series["launch_bound"] = json!(site.launch_bound);
            match &series.kernel_times {
                Some(times) => {
                    let elsewhere = times.elsewhere.iter();
                    of_series["elsewhere_ns"] =
                        json!(elsewhere.fold(0.0, |sum, work| sum + work.total_ns));
                }
                None => of_series["zero_times"] = Value::Null,
            }
            let of_kernels = json!({
                "measure": "kernel",
                "device": of_series["device"],
                "key": of_series["key"],
                "cache": of_series["cache"],
                "clock": of_series["clock"],
                "graph": of_series["graph"],
            });
            write(&of_site, of_series, None);
            let [name, file, line, scope] =
                ["name", "file", "line", "scope"].map(|member| &of_site[member]);
            let site = json!({ "name": name, "file": file, "line": line, "scope": scope });
            for kernel in kernels.as_array().into_iter().flatten() {
                write(&site, of_kernels.clone(), Some(kernel));
            }
        }
    }
    text
}

/// Returns the columns: the name of each, and the JSON pointer to its value.
fn columns() -> Vec<(String, String)> {
    let listed = |root: &str, columns: &str| -> Vec<(String, String)> {
        let split = |column: &str| {
            let (name, place) = column.split_once('=').unwrap_or((column, column));
            (name.to_owned(), format!("/{root}/{place}"))
        };
        columns.split_whitespace().map(split).collect()
    };
    let stats = |kind: &str, figures: &[&str]| {
        let place = |figure: &&str| format!("{kind}_{figure}_ns={kind}_ns/{figure}");
        listed("series", &figures.iter().map(place).collect::<Vec<_>>().join(" "))
    };
    let lost = Lost::ALL.map(|reason| format!("lost_{0}=lost/{0}", reason.name()));
    let mut columns = [
        listed("site", OF_SITE),
        listed("series", OF_SERIES),
        listed("series", &lost.join(" ")),
        stats("raw", &FIGURES),
        stats("net", &FIGURES),
        listed("series", OF_TOTALS),
    ]
    .concat();
    columns.extend(
        ["busy", "self_busy", "span", "gaps", "host"].iter().flat_map(|kind| stats(kind, &SPREAD)),
    );
    columns.extend(listed("series", OF_OPENED));
    columns.extend(listed("kernel", OF_KERNEL));
    columns.extend(listed("run", OF_RUN));
    columns
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null | Value::Object(_) => String::new(),
        Value::String(text) => printable(text),
        // Whole numbers have no decimals.
        Value::Number(number) if number.is_f64() => number.as_f64().unwrap_or_default().to_string(),
        // Dimensions, or words.
        Value::Array(all) => {
            let separator = if all.iter().all(Value::is_number) { "x" } else { " " };
            all.iter().map(cell).collect::<Vec<_>>().join(separator)
        }
        other => other.to_string(),
    }
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

#[cfg(test)]
mod tests;
