//! The CSV of made-up snapshots.

use crate::made::{everything, off};

#[test]
fn the_csv_has_everything() {
    insta::assert_snapshot!(everything().to_csv());
}

#[test]
fn the_csv_always_has_its_header() {
    let (all, none) = (everything().to_csv(), off().to_csv());
    assert_eq!(none.lines().collect::<Vec<_>>(), [all.lines().next().unwrap()]);
}

#[test]
fn the_csv_reads_back_what_was_hostile() {
    let csv = everything().to_csv();
    let mut reader = ::csv::Reader::from_reader(csv.as_bytes());
    let names: Vec<String> = reader.records().map(|record| record.unwrap()[0].to_owned()).collect();
    assert_eq!(names.len(), 10);
    assert_eq!(names[7], "a,\"b\"\\n\\u{1b}<i>");
}
