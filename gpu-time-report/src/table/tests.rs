//! The table of made-up snapshots.

use crate::made::{everything, gpu, off, process, rated, row, site};
use crate::*;

#[test]
fn the_table_shows_everything() {
    insta::assert_snapshot!(everything());
}

#[test]
fn the_table_says_why_nothing_was_timed() {
    insta::assert_snapshot!(off());
}

#[test]
fn the_table_of_a_program_without_sites_says_so() {
    let snapshot = Snapshot::new(process(None), vec![], vec![]);
    assert!(
        snapshot
            .to_string()
            .ends_with("\nno function with `#[gpu_timed]` is part of this program\n")
    );
}

#[test]
fn the_table_is_narrow_where_names_are_short() {
    let table = everything().to_string();
    let rows = table
        .lines()
        .skip_while(|line| !line.starts_with("function"))
        .take_while(|line| !line.is_empty());
    for line in rows {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

/// Several hundred functions, most of them never called.
fn crowded() -> Snapshot {
    let name = |what: &str, i| {
        format!("model::decoder::{what}_{i}::attention::with::a::long::path::forward")
    };
    let called = (0..300u32).map(|i| {
        let rows = vec![row("cuda:0", Measure::Span, [20_000 + 100 * i; 3])];
        site(&name("layer", i), i, ScopeKind::Body, [0, 2, 3], rows)
    });
    let never = (0..200).map(|i| site(&name("other", i), i, ScopeKind::Body, [0; 3], vec![]));
    Snapshot::new(process(None), vec![gpu()], called.chain(never).collect())
}

/// The first column of the table.
fn names(table: &str) -> Vec<&str> {
    let rows = table.lines().skip_while(|line| !line.starts_with("function"));
    let rows = rows.skip(1).take_while(|line| !line.is_empty());
    rows.map(|line| line.split("  ").next().unwrap()).collect()
}

#[test]
fn hundreds_of_functions_stay_readable() {
    let snapshot = crowded();
    let table = snapshot.to_string();
    assert!(table.lines().count() < 340, "{table}");
    assert!(table.contains(" 190 more\n"), "{table}");
    assert!(table.contains("\n290 more functions had calls that were not timed: see"), "{table}");
    let mut names = names(&table);
    // By their totals.
    assert!(names[0].contains("layer_299") && names[299].contains("layer_0"), "{table}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 300);
}

#[test]
fn names_are_shortened_until_the_terminal_is_wide_enough() {
    let snapshot = crowded();
    for columns in [110, 120, 140] {
        let table = snapshot.to_table(Terminal { colours: false, columns: Some(columns) });
        let mut names = names(&table);
        let rows = table.lines().skip_while(|line| !line.starts_with("function"));
        for line in rows.take_while(|line| !line.is_empty()) {
            assert!(line.chars().count() <= columns, "{line}");
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 300);
    }
    let wide = Terminal { colours: false, columns: Some(1000) };
    assert!(!snapshot.to_table(wide).contains('…'));
}

#[test]
fn colours_are_all_that_they_add() {
    let coloured = Terminal { colours: true, columns: None };
    for snapshot in [everything(), rated(), off(), crowded()] {
        let (plain, mut text) = (snapshot.to_string(), snapshot.to_table(coloured));
        assert_eq!(snapshot.to_table(Terminal::default()), plain);
        assert!(!plain.contains('\u{1b}'));
        while let Some(from) = text.find('\u{1b}') {
            let length = text[from..].find('m').unwrap();
            text.replace_range(from..=from + length, "");
        }
        assert_eq!(text, plain);
    }
    insta::assert_snapshot!(
        everything().to_table(coloured).escape_default().to_string().replace("\\n", "\n")
    );
}

#[test]
fn a_device_line_is_no_longer_than_what_is_known() {
    let table = Snapshot::new(process(None), vec![Device::host()], vec![]).to_string();
    assert!(table.contains("\nhost: host clock\n"), "{table}");
}

#[test]
fn the_table_has_rates_where_any_row_does() {
    insta::assert_snapshot!(rated().to_string());
    let table = everything().to_string();
    assert!(!table.contains("GB/s") && !table.contains("TFLOP/s"), "{table}");
}
