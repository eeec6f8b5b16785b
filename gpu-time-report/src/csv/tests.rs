//! Tests for CSV output from the fixture snapshots.

use crate::fixtures::{coverage, everything, gpu, kernels, off, process};
use crate::tree::fixtures::node;
use crate::{Device, Snapshot};

#[test]
fn csv_of_everything() {
    insta::assert_snapshot!(everything().to_csv());
}

#[test]
fn function_without_samples_has_its_calls() {
    let csv = off().to_csv();
    let lines: Vec<&str> = csv.lines().skip(1).collect();
    let [line] = lines[..] else { panic!("{csv}") };
    assert!(line.starts_with("app::saxpy,src/main.rs,70,,,,,,145,,"), "{csv}");
}

/// Work that is not annotated has no location.
#[test]
fn time_beside_functions_has_lines() {
    let gpu = Device { coverage: Some(coverage()), ..gpu() };
    let decode = vec![node("decode", None, 1e8, 1e8)];
    let csv = Snapshot::new(process(None), vec![gpu], vec![]).with_tree(decode).to_csv();
    let of = |name: &str| {
        let line = csv.lines().find(|line| line.starts_with(name)).unwrap();
        line.split(',').map(str::to_owned).collect::<Vec<_>>()
    };
    let header = of("function,");
    let line = of("<not annotated>,");
    let cell = |name: &str| &*line[header.iter().position(|column| column == name).unwrap()];
    assert_eq!(["file", "device", "calls", "upper_bound"].map(cell), [""; 4]);
    assert!(cell("total_ns").parse::<f64>().unwrap() > 0.0, "{csv}");
    assert_eq!(cell("self_ns"), cell("total_ns"));
}

#[test]
fn csv_escapes_control_characters() {
    let csv = everything().to_csv();
    let mut reader = ::csv::Reader::from_reader(csv.as_bytes());
    let names: Vec<String> = reader.records().map(|record| record.unwrap()[0].to_owned()).collect();
    assert_eq!(names.len(), 12);
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
