//! Tests for CSV output from the fixture snapshots.

use crate::fixtures::{everything, off};

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
    assert_eq!(names[7], "a,\"b\"\\n\\u{1b}<i>");
}
