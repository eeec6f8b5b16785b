//! Tests for CSV output from the fixture snapshots.

use crate::fixtures::{GEMMS, everything, kernels, off};

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
fn csv_says_which_functions_are_launch_bound() {
    let mut snapshot = kernels();
    (snapshot.sites[0].launch_bound, snapshot.sites[1].launch_bound) = (Some(true), Some(false));
    let csv = snapshot.to_csv();
    let mut reader = ::csv::Reader::from_reader(csv.as_bytes());
    let header = reader.headers().unwrap().clone();
    let at = |name: &str| header.iter().position(|column| column == name).unwrap();
    let records = reader.records().map(Result::unwrap);
    let seen: Vec<_> = records
        .filter(|record| &record[at("measure")] != "kernel")
        .map(|record| record[at("launch_bound")].to_owned())
        .collect();
    assert_eq!(seen, ["true", "false", "", ""]);
}

#[test]
fn csv_escapes_control_characters() {
    let csv = everything().to_csv();
    let mut reader = ::csv::Reader::from_reader(csv.as_bytes());
    let names: Vec<String> = reader.records().map(|record| record.unwrap()[0].to_owned()).collect();
    assert_eq!(names.len(), 10);
    assert_eq!(names[7], "a,\"b\"\\n\\u{1b}<i>");
}

#[test]
fn each_kernel_has_a_line_below_its_series() {
    let csv = kernels().to_csv();
    let mut reader = ::csv::Reader::from_reader(csv.as_bytes());
    let header = reader.headers().unwrap().clone();
    let at = |name: &str| header.iter().position(|column| column == name).unwrap();
    let lines: Vec<::csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let of = |site: &str| lines.iter().filter(|line| &line[at("site")] == site).collect::<Vec<_>>();
    let cells = |line: &::csv::StringRecord, names: &[&str]| {
        names.iter().map(|name| line[at(name)].to_owned()).collect::<Vec<_>>()
    };
    let decode = of("model::decode");
    let opened = ["measure", "clock", "timed", "opened", "streams", "zero_times", "kernel"];
    assert_eq!(cells(decode[0], &opened), ["span", "kernels", "10", "8", "3", "2", ""]);
    // Every kernel of the report, in the same order.
    let snapshot = kernels();
    let times = snapshot.sites[0].series[0].kernel_times.as_ref().unwrap();
    let names: Vec<&str> = decode[1..].iter().map(|line| &line[at("kernel")]).collect();
    assert_eq!(names, times.kernels.iter().map(|kernel| &kernel.name).collect::<Vec<_>>());
    assert_eq!(names[..2], GEMMS);
    let kernel = ["measure", "device", "clock", "grid", "block", "per_call", "count", "timed"];
    let expected = ["kernel", "cuda:0", "kernels", "128x2x1", "256x1x1", "30", "240", ""];
    assert_eq!(cells(decode[1], &kernel), expected);
    // Work that events did not bracket: 14 launches and 1.
    assert_eq!(cells(of("app::forked")[0], &["elsewhere_ns"]), ["300000"]);
    assert_eq!(cells(of("app::saxpy")[0], &["elsewhere_ns"]), ["0"]);
}

#[test]
fn sums_over_csv_lines_do_not_count_kernels() {
    let csv = kernels().to_csv();
    let mut reader = ::csv::Reader::from_reader(csv.as_bytes());
    let header = reader.headers().unwrap().clone();
    let measure = header.iter().position(|column| column == "measure").unwrap();
    for line in reader.records().map(Result::unwrap).filter(|line| &line[measure] == "kernel") {
        for (name, cell) in header.iter().zip(&line) {
            let is_of_series = name.starts_with("raw_") || name.starts_with("net_");
            assert!(!is_of_series || cell.is_empty(), "{name}: {cell}");
        }
    }
}
