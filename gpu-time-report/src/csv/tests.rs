//! Tests for CSV output from the fixture snapshots.

use crate::fixtures::{everything, kernels, off};

#[test]
fn csv_of_everything() {
    insta::assert_snapshot!(everything().to_csv());
}

#[test]
fn csv_without_series_has_the_header() {
    let (all, none) = (everything().to_csv(), off().to_csv());
    assert_eq!(none.lines().collect::<Vec<_>>(), [all.lines().next().unwrap()]);
}

#[test]
fn csv_escapes_control_characters() {
    let csv = everything().to_csv();
    let mut reader = ::csv::Reader::from_reader(csv.as_bytes());
    let names: Vec<String> = reader.records().map(|record| record.unwrap()[0].to_owned()).collect();
    assert_eq!(names.len(), 10);
    assert!(names.iter().any(|name| name == "a,\"b\"\\n\\u{1b}<i>"), "{names:?}");
}

/// The figures are those of the table, in nanoseconds.
#[test]
fn csv_has_the_figures_of_the_table() {
    let snapshot = kernels();
    let csv = snapshot.to_csv();
    let mut reader = ::csv::Reader::from_reader(csv.as_bytes());
    let header = reader.headers().unwrap().clone();
    let lines: Vec<::csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let decode = lines.iter().find(|line| &line[0] == "model::decode").unwrap();
    let cell = |name: &str| &decode[header.iter().position(|column| column == name).unwrap()];
    assert_eq!(
        ["clock", "calls", "samples", "upper_bound"].map(cell),
        ["kernels", "11", "8", "false"]
    );
    let series = &snapshot.sites[0].series[0];
    let number = |name: &str| cell(name).parse::<f64>().unwrap();
    assert_eq!(number("median_ns"), series.shown().unwrap().median);
    assert_eq!(
        [number("self_ns"), number("total_ns")],
        [series.own_total(), series.total()].map(Option::unwrap)
    );
    assert!((number("share") - 0.186).abs() < 0.001, "{csv}");
}
