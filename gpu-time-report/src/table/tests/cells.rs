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

#[test]
fn digits_are_grouped_in_every_column() {
    let keys = [("a", 4_002_207_000), ("b", 5_000), ("c", 5_000)];
    let rows = keys.map(|(key, ns)| row("cuda:0", Measure::Span, [ns; 1_500]).key(key));
    let site = site("f", 1, ScopeKind::Body, [0, 27_500, 4_500], rows.into());
    let snapshot = Snapshot::new(process(None), vec![gpu()], vec![site]);
    let table = snapshot.to_table(Terminal::default(), Detail::All);
    let digits = |text: &str| text.split(|c: char| !c.is_ascii_digit()).map(str::len).max();
    let rows = table.split("\n\n").nth(1).unwrap();
    assert!(rows.contains("32\u{202f}000"), "{table}");
    assert!(rows.lines().all(|line| digits(line) <= Some(3)), "{table}");
}

#[test]
fn row_without_a_key_says_so() {
    let with_key = row("cuda:0", Measure::Span, [5_000; 3]).key("8x8");
    let rows = vec![with_key, row("cuda:0", Measure::Span, [4_000; 3])];
    let site = site("f", 1, ScopeKind::Body, [0, 0, 6], rows);
    let snapshot = Snapshot::new(process(None), vec![gpu()], vec![site]);
    let table = snapshot.to_table(Terminal::default(), Detail::All);
    assert_eq!(lines(&table, "  [8x8] ").len(), 1, "{table}");
    assert_eq!(lines(&table, "  (no key) ").len(), 1, "{table}");
}
