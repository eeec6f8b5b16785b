//! Tests of the text in single cells.

use super::*;

/// Returns the lines of a table that begin with a label.
fn lines<'a>(table: &'a str, label: &str) -> Vec<&'a str> {
    table.lines().filter(|line| line.starts_with(label)).collect()
}

#[test]
fn unknown_device_is_a_dash() {
    let rows = ["cuda:0", "cuda:?"].map(|device| row(device, Measure::Span, [5_000; 3]));
    let site = site("parse", 1, ScopeKind::Body, [0, 0, 6], rows.into());
    let snapshot = Snapshot::new(process(None), vec![gpu()], vec![site]);
    let table = snapshot.to_string();
    let devices = lines(&table, "parse").into_iter().map(|line| line.split_whitespace().nth(1));
    assert_eq!(devices.collect::<Vec<_>>(), [Some("cuda:0"), Some("–")], "{table}");
    #[cfg(feature = "html")]
    assert!(snapshot.to_html().contains(">–</td>"));
}
