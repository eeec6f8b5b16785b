//! Reads the CSV report.

use csv::Reader;
use gpu_time_report::{Snapshot, printable};

use super::figure::{Figure, Row, Rows};
use super::report::{Report, text};

/// The columns with figures, by their names in the table.
const FIGURES: [(&str, &str); 7] = [
    ("calls", "calls"),
    ("samples", "samples"),
    ("median", "median_ns"),
    ("self", "self_ns"),
    ("total", "total_ns"),
    ("±", "total_error"),
    ("share", "share"),
];

/// Returns the rows of all lines of functions, and those of the time beside functions with their names.
///
/// # Panics
///
/// Panics if a line belongs to no series or function of the report.
pub fn rows(snapshot: &Snapshot, report: &Report) -> (Rows, Vec<(String, Row)>) {
    let csv = snapshot.to_csv();
    let mut reader = Reader::from_reader(csv.as_bytes());
    let header = reader.headers().expect("a header").clone();
    let (mut rows, mut others) = (Rows::new(), Vec::new());
    for line in reader.records() {
        let line = line.expect("a line");
        let cell = |name: &str| &line[header.iter().position(|column| column == name).expect(name)];
        let is_it = |site: &serde_json::Value| {
            let names = ["name", "file"].map(|name| printable(text(&site[name])));
            names == ["function", "file"].map(cell)
                && site["line"].as_u64() == cell("line").parse().ok()
        };
        let mut row = Row::default();
        for (column, name) in FIGURES {
            row.set(column, || cell(name).parse().ok().map(Figure::exact));
        }
        if let Some(median) = &mut row.median {
            let is_bound = cell("upper_bound") == "true";
            median.marks = Some(if is_bound { "≤" } else { "" }.to_owned());
        }
        if cell("file").is_empty() {
            others.push((cell("function").to_owned(), row));
            continue;
        }
        let at = report.sites().iter().position(is_it).expect("a function");
        let of = ["launch", "key", "device", "clock", "cache"].map(cell);
        let series = (!cell("device").is_empty()).then(|| report.line(at, of, &rows));
        rows.insert((at, series), row);
    }
    (rows, others)
}
