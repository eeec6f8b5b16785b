//! Checks that all renderings of a stored report say the same of every function and of every path of the call tree.
//!
//! The reports in `reports` are those of scenarios on the simulated driver, two of them merged and all without most of the
//! functions that were never called, and three of the fixtures. What follows from the JSON report is computed here once more.

mod csv;
mod figure;
mod page;
mod report;
mod table;

use std::collections::BTreeMap;
use std::fmt::Write;

use figure::{Figure, Path, Row, Rows};
use gpu_time_report::{Detail, Snapshot};
use page::Page;
use report::Report;
use table::Table;

/// The part of a row's total from which on a rendering may leave out the column of own times.
const ALL: f64 = 0.999;

const REPORTS: [(&str, &str); 12] = [
    ("empty", include_str!("reports/empty.json")),
    ("events", include_str!("reports/events.json")),
    ("gpus", include_str!("reports/gpus.json")),
    ("helpers", include_str!("reports/helpers.json")),
    ("host", include_str!("reports/host.json")),
    ("keys", include_str!("reports/keys.json")),
    ("launches", include_str!("reports/launches.json")),
    ("merged", include_str!("reports/merged.json")),
    ("phases", include_str!("reports/phases.json")),
    ("recorded", include_str!("reports/recorded.json")),
    ("spans", include_str!("reports/spans.json")),
    ("starved", include_str!("reports/starved.json")),
];

/// All that the renderings of a report say.
struct Said {
    report: Report,
    table: Table,
    brief: Table,
    page: Page,
    csv: Rows,
    /// The lines of CSV of the time beside functions.
    csv_others: Vec<(String, Row)>,
    json: Rows,
    tree: Vec<Path>,
}

fn said(json: &str) -> Said {
    let snapshot = Snapshot::from_json(json.as_bytes()).expect("a report");
    let report = Report::of(&snapshot);
    let (csv, csv_others) = csv::rows(&snapshot, &report);
    Said {
        table: table::functions(&snapshot, &report, Detail::All),
        brief: table::functions(&snapshot, &report, Detail::Brief),
        page: page::read(&snapshot),
        csv,
        csv_others,
        json: report.rows(),
        tree: table::tree(&snapshot),
        report,
    }
}

#[test]
fn renderings_say_the_same() {
    for (name, json) in REPORTS {
        let found = said(json).contradictions();
        assert!(found.is_empty(), "{name}:\n{found}");
    }
}

/// Each figure that any rendering has is compared with that of another one.
#[test]
fn planted_contradictions_are_found() {
    let mut planted = 0;
    for (name, json) in REPORTS {
        let mut said = said(json);
        let count = said.figures().len();
        planted += count;
        for at in 0..count {
            let before = said.figures()[at].clone();
            let value = 1.5 * before.value + 3.0 * before.within + 1.0;
            let other = Figure { value, ..before.clone() };
            let marked =
                Figure { marks: before.marks.as_ref().map(|_| "≥".to_owned()), ..before.clone() };
            let is_other = !before.value.is_nan();
            let is_marked = before.marks.as_ref().is_some_and(|marks| !marks.is_empty());
            for (planted, _) in
                [(other, is_other), (marked, is_marked)].into_iter().filter(|(_, is)| *is)
            {
                *said.figures().remove(at) = planted.clone();
                assert!(
                    !said.contradictions().is_empty(),
                    "{name}, {at}: {planted:?} for {before:?}"
                );
            }
            *said.figures().remove(at) = before;
        }
    }
    assert!(planted > 1000, "{planted}");
}

/// The reports have functions and paths of all kinds.
#[test]
fn reports_differ_in_kind() {
    let said = BTreeMap::from(REPORTS.map(|(name, json)| (name, said(json))));
    let of = |name: &str| &said[name].report;
    let sources = |name: &str| -> Vec<&str> {
        let mut all: Vec<&str> =
            of(name).tree().iter().map(|node| report::text(&node["source"])).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let any = |name: &str, has: fn(&serde_json::Value) -> bool| {
        (0..of(name).sites().len()).any(|at| of(name).series(at).iter().any(has))
    };
    assert!(said["empty"].json.keys().all(|(_, series)| series.is_none()));
    assert_eq!(sources("events"), ["events"]);
    assert_eq!(sources("recorded"), ["opened"]);
    assert_eq!(sources("spans"), ["opened", "windows"]);
    assert!(of("phases").phases() > 100);
    assert!(!any("host", |series| series["clock"] != "host"));
    assert!(any("gpus", |series| series["device"] == "cuda:1"));
    assert!(any("starved", |series| series["upper_bound"] == true));
    assert!(any("keys", |series| !series["key"].is_null()));
    assert!(any("launches", |series| !series["launch"].is_null()));
    assert!(any("merged", |series| !series["runs"].is_null()));
    assert!(of("helpers").tree().iter().any(|node| node["name"] == "<helper threads>"));
    assert!(of("spans").sites().iter().any(|site| site["options"] == "span"));
    let marks = said
        .values()
        .flat_map(|said| said.table.rows.values().chain(said.tree.iter().map(|path| &path.row)));
    let marks: String = marks
        .flat_map(|row| row.figures().map(|(_, figure)| figure.clone()?.marks))
        .flatten()
        .collect();
    assert!("~≤?".chars().all(|mark| marks.contains(mark)), "{marks}");
}

impl Said {
    /// Returns the figures of all renderings but JSON, in any fixed order.
    fn figures(&mut self) -> Vec<&mut Figure> {
        let Said { table, page, csv, tree, .. } = self;
        let rows =
            [&mut table.rows, &mut page.rows, csv].into_iter().flat_map(BTreeMap::values_mut);
        let others =
            [&mut table.others, &mut page.others].into_iter().flatten().map(|(_, row)| row);
        let sums = table.sums.iter_mut().map(|(row, _)| row);
        let paths = tree.iter_mut().chain(&mut page.paths).map(|path| &mut path.row);
        rows.chain(others).chain(sums).chain(paths).flat_map(Row::figures_mut).collect()
    }

    /// Returns a line for each contradiction.
    fn contradictions(&self) -> String {
        let mut found = String::new();
        self.compare_rows(&mut found);
        self.compare_calls(&mut found);
        self.compare_sums(&mut found);
        self.compare_others(&mut found);
        self.compare_brief(&mut found);
        self.compare_trees(&mut found);
        found
    }

    /// Compares the rows of series. A rendering leaves out a column only if it says nothing.
    fn compare_rows(&self, found: &mut String) {
        let Said { table, page, csv, json, .. } = self;
        for (key, of_json) in json.iter().filter(|((_, series), _)| series.is_some()) {
            let rows = [table.rows.get(key), page.rows.get(key), csv.get(key)];
            let [Some(in_table), Some(on_page), Some(in_csv)] = rows else {
                let missing = rows.map(|row| row.is_none());
                _ = writeln!(found, "{key:?} is missing in table, page, CSV: {missing:?}");
                continue;
            };
            let figures = [in_table, on_page, in_csv, of_json].map(Row::figures);
            for (at, (name, _)) in figures[0].iter().enumerate() {
                let [in_table, on_page, in_csv, of_json] =
                    figures.each_ref().map(|of| of[at].1.as_ref());
                let are_shown = [&table.columns, &page.columns]
                    .map(|columns| columns.iter().any(|column| column == name));
                let all = match *name {
                    // Calls are those of the function.
                    "calls" => continue,
                    "self" if are_shown == [false; 2] => {
                        let total = in_csv.and(csv[key].total.as_ref());
                        let is_part =
                            total.zip(in_csv).is_some_and(|(all, own)| own.value < ALL * all.value);
                        let note =
                            format!("{key:?} self is a part of the total, and has no column\n");
                        *found += if is_part { &note } else { "" };
                        vec![in_csv, of_json]
                    }
                    "share" if are_shown == [false; 2] => vec![in_csv, None],
                    // The standard error, which is written only if it is known.
                    "error" => {
                        let known = in_table.filter(|error| !error.value.is_nan());
                        vec![in_table, on_page, in_csv.or(in_table.filter(|_| known.is_none()))]
                    }
                    _ => vec![in_table, on_page, in_csv, of_json],
                };
                // Upper bounds alone have no share.
                let has_shares = csv.values().any(|row| row.share.is_some());
                let all = match *name {
                    "self" | "share" if !has_shares => all[..all.len() - 1].to_vec(),
                    _ => all,
                };
                compare(&format!("{key:?} {name}"), &all, found);
            }
        }
        let rows = [&table.rows, &page.rows, csv].into_iter().flat_map(BTreeMap::keys);
        for key in rows.filter(|key| !json.contains_key(key)) {
            _ = writeln!(found, "{key:?} is not in JSON");
        }
    }

    /// Compares the calls of functions.
    fn compare_calls(&self, found: &mut String) {
        let calls = |rows: &Rows| {
            let mut of_sites = BTreeMap::<usize, Vec<Figure>>::new();
            for ((at, _), row) in rows {
                of_sites.entry(*at).or_default().extend(row.calls.clone());
            }
            of_sites
        };
        let Said { table, page, csv, json, .. } = self;
        let mut of_table = calls(&table.rows);
        for (row, keys) in &table.sums {
            of_table.entry(keys[0].0).or_default().extend(row.calls.clone());
        }
        let [of_page, of_csv] = [&page.rows, csv].map(calls);
        for (at, calls) in calls(json) {
            let has_rows = self.report.sites()[at]["series"] != serde_json::json!([]);
            if calls[0].value == 0.0 && !has_rows {
                continue;
            }
            for (name, of) in [("table", &of_table), ("page", &of_page), ("CSV", &of_csv)] {
                let is_said = match of.get(&at).map(Vec::as_slice) {
                    Some([only]) => only.agrees(&calls[0]),
                    _ => false,
                };
                if !is_said {
                    _ = writeln!(
                        found,
                        "calls of {at}: {calls:?} in JSON, {:?} in {name}",
                        of.get(&at)
                    );
                }
            }
        }
    }

    /// Compares the sums over keys with the rows below.
    fn compare_sums(&self, found: &mut String) {
        for (sum, keys) in &self.table.sums {
            let rows: Vec<&Row> = keys.iter().map(|key| &self.table.rows[key]).collect();
            for (at, (name, of_sum)) in sum.figures().into_iter().enumerate() {
                let figures = rows.iter().filter_map(|row| row.figures()[at].1.clone());
                let all = match name {
                    "samples" | "self" | "total" | "share" => {
                        figures.reduce(|sum, figure| Figure {
                            value: sum.value + figure.value,
                            within: sum.within + figure.within,
                            marks: None,
                        })
                    }
                    // The errors are those of independent estimates.
                    "error" => sum.total.as_ref().and_then(|total| {
                        let mut ns = rows
                            .iter()
                            .map(|row| Some(row.error.as_ref()?.value * row.total.as_ref()?.value));
                        let ns = ns.try_fold(0.0, |sum, ns| Some(f64::hypot(sum, ns?)))?;
                        let within = rows.len() as f64
                            * figures.map(|figure| figure.within).fold(0.0, f64::max);
                        Some(Figure { within, ..Figure::exact(ns / total.value) })
                    }),
                    _ => continue,
                };
                compare(
                    &format!("sum over {keys:?} {name}"),
                    &[of_sum.as_ref(), all.as_ref()],
                    found,
                );
            }
        }
    }

    /// Compares the time beside that of functions.
    fn compare_others(&self, found: &mut String) {
        let of_json = self.report.others();
        let has_rows = !self.table.rows.is_empty();
        let has_shares = self.table.columns.iter().any(|column| column == "share");
        let all = [&self.table.others, &self.page.others, &self.csv_others, &of_json];
        if all.iter().any(|others| others.len() != of_json.len()) && has_rows {
            _ = writeln!(found, "beside functions: {all:?}");
            return;
        }
        for (at, (name, _)) in of_json.iter().enumerate() {
            let rows = all.map(|others| &others[at]);
            if rows.iter().any(|(other, _)| other != name) {
                _ = writeln!(found, "beside functions: {rows:?}");
            }
            let figures = rows.map(|(_, row)| row.figures());
            for (at, (of, _)) in figures[0].iter().enumerate() {
                let [in_table, on_page, in_csv, of_json] =
                    figures.each_ref().map(|of| of[at].1.as_ref());
                let [in_csv, of_json] = [in_csv, of_json].map(|figure| {
                    figure.filter(|_| match *of {
                        "self" => in_table.is_some(),
                        "share" => has_shares,
                        _ => true,
                    })
                });
                let all = [in_table, on_page, in_csv, of_json];
                let all = if *of == "error" { &all[..2] } else { &all };
                compare(&format!("{name} {of}"), all, found);
            }
        }
    }

    /// Compares the brief table with the rows of functions in the other one.
    fn compare_brief(&self, found: &mut String) {
        let Said { table, brief, .. } = self;
        let sums = brief
            .sums
            .iter()
            .zip(&table.sums)
            .map(|((brief, _), (all, _))| ("a sum".to_owned(), brief, Some(all)));
        let rows =
            brief.rows.iter().map(|(key, row)| (format!("{key:?}"), row, table.rows.get(key)));
        for (place, brief, all) in rows.chain(sums) {
            let Some(all) = all else {
                _ = writeln!(found, "{place} is only in the brief table");
                continue;
            };
            let figures = brief.figures().into_iter().zip(all.figures());
            for ((name, brief), (_, all)) in figures.filter(|((name, _), _)| *name != "error") {
                compare(&format!("{place} {name}, brief"), &[brief.as_ref(), all.as_ref()], found);
            }
        }
    }

    /// Compares the call trees.
    fn compare_trees(&self, found: &mut String) {
        let of_json = self.report.paths();
        let has_time =
            of_json.iter().any(|path| path.row.own.as_ref().is_some_and(|own| own.value > 0.0));
        // The page has no tree without time.
        let on_page = if has_time { of_json.len() } else { 0 };
        if self.tree.len() != of_json.len() || self.page.paths.len() != on_page {
            let counts = [&self.tree, &self.page.paths, &of_json].map(Vec::len);
            _ = writeln!(found, "paths of the call tree: {counts:?}");
            return;
        }
        let has_shares = self.tree.iter().any(|path| path.row.share.is_some());
        for (at, path) in of_json.iter().enumerate().filter(|_| has_time) {
            let (text, page) = (&self.tree[at], &self.page.paths[at]);
            let is_same = |other: &Path| (&other.name, other.depth) == (&path.name, path.depth);
            if !is_same(text) || !is_same(page) {
                _ = writeln!(found, "path {at}: {path:?}, {text:?}, {page:?}");
            }
            let figures = [text, page, path].map(|path| path.row.figures());
            for (at, (name, _)) in figures[0].iter().enumerate() {
                let all = figures.each_ref().map(|of| of[at].1.as_ref());
                let all = if *name == "share" && !has_shares { &all[..2] } else { &all[..] };
                compare(&format!("path {} {name}", path.name), all, found);
            }
        }
    }
}

/// Reports figures that differ, or that only some renderings have.
fn compare(what: &str, all: &[Option<&Figure>], found: &mut String) {
    let agree = |one: Option<&Figure>, other: Option<&Figure>| match (one, other) {
        (Some(one), Some(other)) => one.agrees(other),
        (one, other) => one.is_none() && other.is_none(),
    };
    let mut pairs = all
        .iter()
        .enumerate()
        .flat_map(|(at, one)| all[..at].iter().map(move |other| (*one, *other)));
    if !pairs.all(|(one, other)| agree(one, other)) {
        _ = writeln!(found, "{what}: {all:?}");
    }
}
