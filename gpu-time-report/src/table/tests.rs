//! Tests for tables rendered from the fixture snapshots.

use std::collections::BTreeSet;

use crate::fixtures::{
    SeriesFixture, everything, gpu, kernels, off, on_host, process, rated, row, site,
};
use crate::marks::Mark;
use crate::terminal::View;
use crate::tree::fixtures::node;
use crate::*;

mod cells;

/// Returns the table with all notes.
fn in_full(snapshot: &Snapshot) -> String {
    snapshot.to_table(Terminal::default(), Detail::All)
}

#[test]
fn table_of_everything() {
    insta::assert_snapshot!(everything());
}

#[test]
fn table_of_everything_with_all_notes() {
    insta::assert_snapshot!(in_full(&everything()));
}

#[test]
fn table_of_opened_calls_with_all_notes() {
    insta::assert_snapshot!(in_full(&kernels()));
}

/// Returns a report like that of a model with 15 functions on a GPU. Some have keys, launches and
/// kernels, and every kind of problem occurs.
fn model() -> Snapshot {
    let opened = kernels().sites[0].series[0].kernel_times.clone();
    let function = |i: u32| {
        let times = (0..20).map(|j| 400_000 / (i + 1) + 2_207 + 32 * j);
        let mut rows = match i {
            0 | 3 => (0..6)
                .map(|key| row("cuda:0", Measure::Span, times.clone()).key(&format!("{key}x4096")))
                .collect(),
            _ => vec![row("cuda:0", Measure::Span, times)],
        };
        let timed = 20 * rows.len() as u64;
        if i == 5 {
            rows.extend([row("cuda:0", Measure::Launch, [9_000; 7]).in_graphs()]);
        }
        let name =
            format!("llama::model::decoder::{}::forward", ["attention", "mlp"][i as usize % 2]);
        let mut site = site(&format!("{name}_{i}"), i, ScopeKind::Body, [2, 0, timed], rows);
        for series in site.series.iter_mut().filter(|series| !series.graph) {
            (series.tracked, series.at_floor) = (3, u64::from(i));
            if i % 2 == 1 {
                (0..9).for_each(|_| series.lost.add(Lost::Capture));
            }
            if i % 4 == 2 {
                series.kernel_times = opened.clone();
            }
            series.measured += series.at_floor;
            series.timed = series.measured + series.opened() + series.lost.total();
        }
        site.warnings =
            vec!["`cold` had no memory for its buffer, so 4 calls ran as found".to_owned()];
        site
    };
    Snapshot::new(process(None), vec![gpu()], (0..15).map(function).collect())
}

/// A laptop's terminal has about 100 columns and 40 rows, of which the prompt takes one.
#[test]
fn fifteen_functions_fit_a_laptop() {
    let snapshot = model();
    let laptop = Terminal { columns: Some(100), ..Terminal::default() };
    let table = snapshot.to_table(laptop, Detail::Brief);
    assert!(table.lines().count() < 40, "{} lines\n{table}", table.lines().count());
    for line in table.lines() {
        assert!(line.chars().count() <= 100, "{line}\n{table}");
    }
    for site in &snapshot.sites {
        let end = site.name.rsplit('_').next().unwrap();
        let name = |line: &str| {
            let word = line.split_whitespace().next().unwrap_or_default();
            word.starts_with("llama") && word.ends_with(&format!("forward_{end}"))
        };
        assert_eq!(table.lines().filter(|line| name(line)).count(), 1, "{}\n{table}", &site.name);
    }
    assert!(in_full(&snapshot).lines().count() > 90);
    insta::assert_snapshot!(table);
}

/// Brief tables leave out rows with marks, and a column that says the same in every row.
#[test]
fn legend_explains_the_printed_marks_and_no_others() {
    let mut on_one_device = kernels();
    on_one_device.sites.retain(|site| site.series.iter().all(|s| s.clock == Clock::Kernels));
    let nodes = vec![node("model::decode", None, 9e8, 9e8)];
    let snapshots = [everything(), kernels(), rated(), model(), on_one_device.with_tree(nodes)];
    let views = [View::Functions, View::Tree].map(|view| Terminal { view, ..Terminal::default() });
    let tables =
        snapshots.iter().flat_map(|snapshot| views.map(|to| snapshot.to_table(to, Detail::Brief)));
    // The rows of captured launches are details.
    let marks = ["≤", "≥", "~", "raw", "host", "sync", "kernels", "×", "share", "?"];
    let mut explained = BTreeSet::new();
    for table in tables {
        let parts: Vec<&str> = table.split("\n\n").collect();
        let (rows, notes) = (parts[1..parts.len() - 1].join("\n"), parts[parts.len() - 1]);
        let is_sentence =
            |line: &&str| ["recorded: ", "per call: "].iter().any(|words| line.contains(words));
        let rows: Vec<&str> = rows.lines().filter(|line| !is_sentence(line)).collect();
        for mark in marks {
            let mut entries = notes.lines().flat_map(|line| line.split(" · "));
            let is_explained = entries.any(|entry| entry.starts_with(&format!("{mark}: ")));
            // The header has no mark but this word.
            let header = usize::from(mark != "share");
            let is_printed = rows.iter().skip(header).any(|row| row.contains(mark));
            assert_eq!(is_explained, is_printed, "{mark}\n{table}");
            explained.extend(is_explained.then_some(mark));
        }
    }
    assert_eq!(explained.len(), marks.len(), "{explained:?}");
}

/// A launch's row shows the launch's number if another launch is on the same line.
#[test]
fn launches_have_names() {
    let mut snapshot = everything();
    let of_train = |snapshot: &mut Snapshot| {
        let table = in_full(snapshot);
        let rows = table.lines().skip_while(|line| !line.starts_with("app::train"));
        let rows =
            rows.skip(1).take(2).map(|row| row.trim().split("  ").next().unwrap().to_owned());
        rows.collect::<Vec<_>>()
    };
    assert_eq!(of_train(&mut snapshot), ["launch, line 40", "gemm, line 44"]);
    let train = snapshot.sites.iter_mut().position(|site| site.name == "app::train").unwrap();
    let series = &mut snapshot.sites[train].series;
    for launch in series.iter_mut().filter_map(|series| series.launch.as_mut()) {
        (launch.name, launch.line) = ("gemm".to_owned(), 44);
    }
    assert_eq!(of_train(&mut snapshot), ["gemm 0, line 44", "gemm 1, line 44"]);
}

#[test]
fn at_most_five_notes_are_shown() {
    for snapshot in [model(), everything(), kernels(), on_host(), rated(), off()] {
        let table = snapshot.to_string();
        let (_, notes) = table.rsplit_once("\n\n").unwrap();
        let marks = ["cuda:", "≤: ", "×: ", "share: ", "host: "];
        let is_mark = |line: &str| marks.iter().any(|mark| line.starts_with(mark));
        let is_note = |line: &&str| line.contains(": ") && !line.contains(" · ") && !is_mark(line);
        assert!(notes.lines().filter(is_note).count() <= 5, "{table}");
    }
    let mut snapshot = model();
    snapshot.sites.truncate(1);
    snapshot.sites[0].warnings.clear();
    let notes = |snapshot: &Snapshot| snapshot.to_string().matches("event tracking").count();
    assert_eq!(notes(&snapshot), 1);
    snapshot.process.warnings = (0..9).map(|i| format!("warning {i}")).collect();
    assert_eq!(notes(&snapshot), 0);
    let table = snapshot.to_string();
    assert!(table.contains("warning 4") && !table.contains("warning 5"), "{table}");
    assert!(in_full(&snapshot).contains("warning 8"));
}

#[test]
fn notes_about_the_function_to_look_at_first_come_first() {
    let mut snapshot = model();
    // The last function of the report has the most time.
    snapshot.sites.reverse();
    let first = snapshot.sites.last().unwrap().name.clone();
    let notes = |snapshot: &Snapshot, detail| {
        let table = snapshot.to_table(Terminal::default(), detail);
        assert!(table.contains(&format!("Look at {first} first: ")), "{table}");
        let (_, notes) = table.rsplit_once("\n\n").unwrap();
        let notes = notes.lines().map(|line| line.trim_start_matches("warning: "));
        notes.map(str::to_owned).collect::<Vec<_>>()
    };
    let brief = notes(&snapshot, Detail::Brief);
    assert!(brief[0].starts_with(&format!("{first}, 14 more functions: `cold`")), "{brief:?}");
    let tracked = format!("{first}, 14 more functions (75 samples): cudarc");
    assert!(brief[2].starts_with(&tracked), "{brief:?}");
    let of_report = Analysis::of(&snapshot);
    let before = crate::notes::of(&of_report);
    let before = before.iter().filter(|note| note.severity < crate::notes::Severity::Fact).count();
    let all = notes(&snapshot, Detail::All).split_off(before);
    let ours = all.iter().take_while(|line| line.starts_with(&first)).count();
    assert!(ours >= 7, "{all:?}");
    // Those of others are still there.
    assert!(all[ours].starts_with("llama::") && all[ours].contains(" calls, 2 warm-up"), "{all:?}");
}

#[test]
fn remarks_have_a_note() {
    let mut wrong = site("wrong", 1, ScopeKind::Launches, [0, 0, 0], vec![]);
    wrong.remarks = vec![Remark::OtherStream];
    let table = Snapshot::new(process(None), vec![], vec![wrong]).to_string();
    let remark = "\nwrong: a launch on another stream than the timed one is not measured: ";
    assert!(table.contains(remark), "{table}");
}

/// Checks the rows as well as the notes.
#[test]
fn shared_names_have_places() {
    let namesakes = [("f", 7), ("g", 8), ("f", 9)].map(|(name, line)| {
        let rows = vec![row("host", Measure::Span, [1_000 * line; 3])];
        site(name, line, ScopeKind::Body, [2, 0, 3], rows)
    });
    let [file, other] = [0, 2].map(|at| namesakes[at].file.clone());
    let snapshot = Snapshot::new(process(None), vec![], namesakes.into());
    let (table, json) = (in_full(&snapshot), snapshot.to_json());
    assert_eq!(names(&table), [format!("f ({other}:9)"), "g".to_owned(), format!("f ({file}:7)")]);
    for label in [format!("f ({file}:7)"), "g".to_owned(), format!("f ({other}:9)")] {
        let note = format!("\n{label}: of 5 calls, 2 warm-up\n");
        assert!(table.contains(&note), "{table}");
    }
    // The JSON and CSV reports have separate fields for the location.
    assert_eq!(json.matches("\"name\": \"f\"").count(), 2, "{json}");
    assert_eq!(snapshot.to_csv().matches(&format!("f ({file}")).count(), 0);
}

#[test]
fn table_of_a_run_with_timing_off() {
    insta::assert_snapshot!(off());
}

#[test]
fn host_rows_say_host() {
    let table = on_host().to_string();
    let row = table.lines().find(|line| line.starts_with("app::hot")).unwrap();
    assert_eq!(row.split_whitespace().nth(1), Some("host"), "{table}");
    let host = Mark::Host.text();
    assert!(table.contains(&format!(" · {host}: ")), "{table}");
    assert!(in_full(&on_host()).contains(&format!("\n  {host}: ")));
}

#[test]
fn options_without_effect_on_the_host_have_a_note() {
    let table = on_host().to_string();
    for note in [
        "app::cold: `cold` had no effect: the host clock timed every call, because none had a stream on \
         a GPU",
        "app::hot, app::cold: `sleep` had no effect: the host clock timed every call, because none had \
         a stream on a GPU",
    ] {
        assert!(table.contains(&format!("\n{note}\n")), "{table}");
    }
    assert!(!table.contains("`graph`"), "{table}");
}

/// The records of an inner call follow whatever the outer one left in the cache.
#[test]
fn cold_has_no_effect_inside_of_recorded_calls() {
    let mut snapshot = on_host();
    for series in snapshot.sites.iter_mut().flat_map(|site| &mut site.series) {
        (series.clock, series.cache) = (Clock::Events, CacheState::AsFound);
        (series.fed, series.starved) = (0, 0);
        series.kernel_times = Some(KernelTimes { opened: 5, ..KernelTimes::default() });
    }
    let table = snapshot.to_string();
    let note = "app::cold: `cold` had no effect: every call was recorded inside of another one.";
    assert!(table.contains(note) && !table.contains("`sleep` had"), "{table}");
}

#[test]
fn options_on_a_gpu_have_no_such_note() {
    let table = everything().to_string();
    assert!(!table.contains("had no effect"), "{table}");
}

#[test]
fn a_report_without_calls_says_so() {
    let never = |name, line| site(name, line, ScopeKind::Body, [0, 0, 0], vec![]);
    let sites = vec![never("app::f", 1), never("app::g", 2)];
    let snapshot = Snapshot::new(process(None), vec![], sites);
    let table = snapshot.to_string();
    assert!(table.contains("\n\nnone of the 2 "), "{table}");
    assert!(in_full(&snapshot).contains(": app::f, app::g\n"));
}

#[test]
fn report_without_sites_says_so() {
    let snapshot = Snapshot::new(process(None), vec![], vec![]);
    let table = snapshot.to_string();
    let note = "\n\nno call of a function with `#[gpu_timed]` was timed: check that what was measured calls one\n";
    assert!(table.contains(note), "{table}");
}

#[test]
fn table_with_short_names_is_narrow() {
    let table = everything().to_string();
    let rows = table
        .lines()
        .skip_while(|line| !line.starts_with("function"))
        .take_while(|line| !line.is_empty());
    for line in rows {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

/// A column has one unit. A cell in a different unit must name it, or readers would misread it.
#[test]
fn cell_in_another_unit_names_it() {
    let short = (0..20).map(|i| {
        let rows = vec![row("host", Measure::Span, [40, 50, 60])];
        site(&format!("short_{i}"), i, ScopeKind::Body, [0, 0, 3], rows)
    });
    let rows = vec![row("host", Measure::Span, [75_000, 3_895_000, 4_366_000])];
    let long = site("long", 20, ScopeKind::Body, [0, 0, 3], rows);
    let table = Snapshot::new(process(None), vec![], short.chain([long]).collect()).to_string();
    let words = |name: &str| {
        let line = table.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(words("function").contains("median ns p5–p95 ns"), "{table}");
    assert!(words("long").contains(" 3.895 ms 0.075–4.366 ms "), "{table}");
    assert!(words("short_7").contains(" 50 40–60 "), "{table}");
}

/// Returns a report with several hundred functions, most of them never called.
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

/// Returns the first column of the table.
fn names(table: &str) -> Vec<&str> {
    let rows = table.lines().skip_while(|line| !line.starts_with("function"));
    let rows = rows.skip(1).take_while(|line| !line.is_empty());
    rows.map(|line| line.split("  ").next().unwrap()).collect()
}

#[test]
fn hundreds_of_functions_are_readable() {
    let snapshot = crowded();
    let table = snapshot.to_string();
    assert!(table.lines().count() < 340, "{table}");
    let full = in_full(&snapshot);
    assert!(full.contains(" 190 more\n"), "{full}");
    assert!(full.contains("\n290 more functions "), "{full}");
    let mut names = names(&table);
    // Sorted by total.
    assert!(names[0].contains("layer_299") && names[299].contains("layer_0"), "{table}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 300);
}

#[test]
fn brief_table_of_a_program_is_bounded() {
    let snapshot = crowded();
    let by_itself =
        Terminal { most_functions: Some(Terminal::MOST_FUNCTIONS), ..Terminal::default() };
    let table = snapshot.to_table(by_itself, Detail::Brief);
    let rows = names(&table);
    assert_eq!((rows.len(), rows[30]), (31, "and 270 more functions"), "{table}");
    assert!(rows[0].contains("layer_299") && rows[29].contains("layer_270"), "{table}");
    let more = "270 more functions with `GPU_TIME_REPORT=table:PATH`, `json:PATH` or `html:PATH`";
    assert!(table.lines().last().unwrap().starts_with(more), "{table}");
    let share = |row: &str| -> Option<f64> {
        row.split_whitespace().last()?.strip_suffix('%')?.parse().ok()
    };
    let sum: f64 = table.lines().filter_map(share).sum();
    assert!((sum - 100.0).abs() < 1.0, "{sum}: {table}");
    assert_eq!(names(&snapshot.to_table(by_itself, Detail::All)).len(), 300);
}

/// A report from elsewhere may name the work outside of functions as it likes.
#[test]
fn name_of_work_outside_of_functions_is_fixed() {
    let forged = Node { source: Source::Windows, ..node("\u{202e}\u{1b}[31m", None, 1e8, 1e8) };
    let mut snapshot = kernels().with_tree(vec![node("model::decode", None, 9e8, 9e8)]);
    snapshot.tree.push(forged);
    let table = snapshot.to_string();
    assert!(table.contains("\n<not annotated> ") && !table.contains('\u{202e}'), "{table}");
}

#[test]
fn largest_function_is_named_above_the_table() {
    let nodes = vec![node("model::decode", None, 9e8, 9e8), node("app::saxpy", None, 1e8, 1e8)];
    let mut snapshot = kernels();
    let coverage = snapshot.devices[0].coverage.as_mut().unwrap();
    coverage.attributed = coverage.busy;
    let mut snapshot = snapshot.with_tree(nodes.clone());
    let table = snapshot.to_string();
    let first = "\nLook at model::decode first: 90.0% of GPU time is its own.\n\nfunction ";
    assert!(table.contains(first), "{table}");
    snapshot.devices[0].coverage = None;
    let table = snapshot.with_tree(nodes).to_string();
    let account = "\n  Timed functions account for 81.0% of the run; the rest is idle or not annotated, which \
                   `GPU_TIME_RECORD=2ms/20ms` tells apart\n\
                   Look at model::decode first: 90.0% of GPU time is its own.\n";
    assert!(table.contains(account), "{table}");
}

#[test]
fn nothing_is_left_beside_functions_that_fill_the_run() {
    let line = |share: f64, streams_overlap: bool| {
        let mut snapshot = kernels();
        snapshot.devices[0].coverage = None;
        let run_ns = snapshot.process.wall_ns as f64;
        let ns = if streams_overlap { 1.5 } else { share } * run_ns;
        let table = snapshot.with_tree(vec![node("model::decode", None, ns, ns)]).to_string();
        let line = table.lines().find(|line| line.starts_with("  Timed functions ")).unwrap();
        line.trim_start().to_owned()
    };
    assert!(line(1.0, false).ends_with(" 100.0% of the run"));
    let overlapping = "Timed functions may account for all of the run: it is unknown how much of their work ran at once; \
                       `GPU_TIME_RECORD=2ms/20ms` shows how busy the GPU was";
    assert_eq!(line(1.0, true), overlapping);
    assert!(line(0.9, false).contains(" 90.0% of the run; "));
}

#[test]
fn long_kernel_name_is_shortened_above_the_table() {
    let mut snapshot = kernels();
    let long = format!("void gemm<{}>(float*)", ["cute::tuple<cute::C<128> >"; 50].join(", "));
    snapshot.devices[0].coverage.as_mut().unwrap().kernels[0].name = long;
    for table in [snapshot.to_string(), in_full(&snapshot)] {
        let line = table.lines().find(|line| line.contains("gemm<cute")).unwrap();
        assert!(line.contains("…") && line.chars().count() < 120, "{line}");
    }
}

#[test]
fn launch_bound_function_has_both_sides() {
    let mut snapshot = kernels();
    snapshot.sites[0].launch_bound = Some(true);
    let line = "\n    per call: waits for the CPU (the GPU works 0.258 of 1.055 ms; the host spends 1.071 ms on 133 kernels, 1 copy), \
                self 129.1 µs, 3 streams\n";
    assert!(in_full(&snapshot).contains(line), "{}", in_full(&snapshot));
    assert!(in_full(&snapshot).contains("\n  waits for the CPU: "));
}

#[test]
fn upper_bound_is_explained_by_the_time_on_the_host() {
    let mut snapshot = everything();
    let hostile = snapshot.sites.iter_mut().find(|site| site.series[0].upper_bound).unwrap();
    let series = &mut hostile.series[0];
    series.host_ns = series.raw_ns;
    let advice = "upper bound (≤): the host takes 7.000 µs per call; `GPU_TIME_RECORD=on` shows how long the GPU idled, \
                  and `sleep` times the kernels alone\n";
    assert!(snapshot.to_string().contains(advice), "{snapshot}");
}

#[test]
fn names_are_shortened_to_the_terminal_width() {
    let snapshot = crowded();
    for columns in [110, 120, 140] {
        let table = snapshot
            .to_table(Terminal { columns: Some(columns), ..Terminal::default() }, Detail::Brief);
        let mut names = names(&table);
        let rows = table.lines().skip_while(|line| !line.starts_with("function"));
        for line in rows.take_while(|line| !line.is_empty()) {
            assert!(line.chars().count() <= columns, "{line}");
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 300);
    }
    let wide = Terminal { columns: Some(1000), ..Terminal::default() };
    assert!(!snapshot.to_table(wide, Detail::Brief).contains('…'));
}

#[test]
fn colours_change_nothing_else() {
    let coloured = Terminal { colours: true, ..Terminal::default() };
    for snapshot in [everything(), kernels(), rated(), off(), crowded()] {
        let (plain, mut text) = (snapshot.to_string(), snapshot.to_table(coloured, Detail::Brief));
        assert_eq!(snapshot.to_table(Terminal::default(), Detail::Brief), plain);
        assert!(!plain.contains('\u{1b}'));
        while let Some(from) = text.find('\u{1b}') {
            let length = text[from..].find('m').unwrap();
            text.replace_range(from..=from + length, "");
        }
        assert_eq!(text, plain);
    }
    insta::assert_snapshot!(
        everything()
            .to_table(coloured, Detail::Brief)
            .escape_default()
            .to_string()
            .replace("\\n", "\n")
    );
}

#[test]
fn device_line_omits_unknown_values() {
    let table = Snapshot::new(process(None), vec![Device::host()], vec![]).to_string();
    assert!(table.contains("\nhost: host clock\n"), "{table}");
}

#[test]
fn table_with_rates() {
    insta::assert_snapshot!(rated().to_string());
    let table = everything().to_string();
    assert!(!table.contains("GB/s") && !table.contains("TFLOP/s"), "{table}");
}

/// Returns a report with a function that has `count` keys on two devices. Later keys have longer
/// times.
fn keyed(count: u32, of: impl Fn(&'static str, u32) -> SeriesFixture) -> Snapshot {
    let rows = (0..count).flat_map(|i| {
        let key = format!("{i}x{i}");
        ["cuda:0", "cuda:1"].map(|device| of(device, i).key(&key))
    });
    let calls = u64::from(2 * count);
    let sites = vec![
        site("app::keyed", 10, ScopeKind::Body, [0, 0, calls], rows.collect()),
        site(
            "app::plain",
            20,
            ScopeKind::Body,
            [0, 0, 1],
            vec![row("cuda:0", Measure::Span, [3_207])],
        ),
    ];
    Snapshot::new(process(None), vec![gpu()], sites)
}

/// Returns the keys in the table.
fn keys(table: &str) -> Vec<&str> {
    let keys = table.lines().filter_map(|line| line.split_once('[')?.1.split_once(']'));
    keys.map(|(key, _)| key).collect()
}

#[test]
fn keys_are_details() {
    let span = |device, i| row(device, Measure::Span, [100_000 * (i + 1) + 2_207]);
    let snapshot = keyed(64, span);
    // One row for each device.
    let brief = snapshot.to_string();
    assert_eq!(brief.matches("\napp::keyed (64 keys) ").count(), 2, "{brief}");
    assert!(keys(&brief).is_empty() && brief.contains("\n128 more rows "), "{brief}");
    let table = in_full(&snapshot);
    // With the longest first, on each device.
    let all: Vec<String> = (0..128).map(|at| 63 - at % 64).map(|i| format!("{i}x{i}")).collect();
    assert_eq!(keys(&table), all, "{table}");
    let only = keyed(1, span).to_string();
    assert_eq!(keys(&only), ["0x0", "0x0"], "{only}");
}

/// They have no function row.
#[test]
fn keys_of_captured_launches_are_shown() {
    let node = |device, i| row(device, Measure::Launch, [100_000 * (i + 1)]).in_graphs();
    let snapshot = keyed(2, node);
    let table = in_full(&snapshot);
    assert_eq!(keys(&table).len(), 4, "{table}");
    let brief = snapshot.to_string();
    assert!(brief.contains("\napp::keyed (4 captured) ") && keys(&brief).is_empty(), "{brief}");
    assert_eq!(table.matches("app::keyed").count(), 1, "{table}");
}

#[test]
fn table_of_opened_calls() {
    insta::assert_snapshot!(kernels());
}

/// Returns the kernel rows of `model::decode`.
fn kernel_rows(table: &str) -> Vec<&str> {
    let rows = table.lines().skip_while(|line| !line.starts_with("model::decode"));
    let rows = rows.take_while(|line| !line.starts_with("app::"));
    rows.filter(|line| line.starts_with("    ") && !line.starts_with("     ")).collect()
}

#[test]
fn opened_calls_fit_the_terminal() {
    for columns in [108, 120, 160] {
        let table = kernels()
            .to_table(Terminal { columns: Some(columns), ..Terminal::default() }, Detail::All);
        let rows = table.lines().skip_while(|line| !line.starts_with("function"));
        for line in rows.take_while(|line| !line.is_empty()) {
            assert!(line.chars().count() <= columns, "{line}");
        }
        // Both kernels are called `device_kernel`.
        let names: Vec<_> =
            table.lines().filter_map(|line| line.trim().strip_prefix("device_kernel<")).collect();
        let [one, other] = [0, 1].map(|at| names[at].split("  ").next().unwrap());
        assert_ne!(one, other, "{table}");
    }
}

#[test]
fn five_largest_kernels_of_a_function_are_shown() {
    let with = |count: usize| {
        let mut snapshot = kernels();
        let times = snapshot.sites[0].series[0].kernel_times.as_mut().unwrap();
        times.kernels.truncate(count);
        in_full(&snapshot)
    };
    for (count, rows, last) in [(5, 5, "rope_14 "), (6, 6, "rope_13 "), (7, 6, "and 2 more ")] {
        let table = with(count);
        let rows_shown = kernel_rows(&table).into_iter().filter(|row| !row.contains(", host "));
        let rows_shown: Vec<_> = rows_shown.collect();
        assert_eq!(rows_shown.len(), rows, "{table}");
        assert!(rows_shown[rows - 1].trim_start().starts_with(last), "{table}");
    }
}

#[test]
fn missing_cupti_has_a_note() {
    let why = "`libcupti.so` was not found: set `GPU_TIME_CUPTI`";
    let mut snapshot = everything();
    snapshot.process.kernels = Some(why.to_owned());
    let table = snapshot.to_string();
    assert!(table.contains(&format!(": {why}\n")), "{table}");
    assert!(!everything().to_string().contains("kernels were recorded"));
}

/// Returns how often the table compares CUPTI's time with that of events, and how often it warns about it.
fn cross_checks(change: impl Fn(&mut Device, &mut Series)) -> (usize, usize) {
    let mut snapshot = kernels();
    let (sites, devices) = (&mut snapshot.sites, &mut snapshot.devices);
    let biased = sites.iter_mut().find(|site| site.name == "app::biased").unwrap();
    change(&mut devices[0], &mut biased.series[0]);
    let table = in_full(&snapshot);
    let shown = table.matches("21.10 µs by CUPTI, 24.00 µs by events").count();
    (shown, table.matches("\nwarning: app::biased on cuda:0: the kernel takes 21.10").count())
}

#[test]
fn kernel_that_contradicts_the_bias_has_a_warning() {
    assert_eq!(cross_checks(|_, _| {}), (1, 1));
    let steady = |series: &mut Series| {
        let kernel = &mut series.kernel_times.as_mut().unwrap().kernels[0];
        let times = kernel.time_ns.as_mut().unwrap();
        (times.p5, times.p95) = (times.median, times.median);
    };
    // The difference is 2,904.5 ns, and the step 32 ns.
    let error = |ns| {
        move |gpu: &mut Device, series: &mut Series| {
            steady(series);
            gpu.event_bias_error_ns = ns;
        }
    };
    assert_eq!(cross_checks(error(Some(2_872.0))), (1, 1));
    assert_eq!(cross_checks(error(Some(2_873.0))), (1, 0));
    // A bias that the user has set has no stated error.
    assert_eq!(cross_checks(error(None)), (1, 0));
}

/// Twice the standard error of the median of six kernels is 1,969 ns.
#[test]
fn kernel_whose_times_vary_has_no_warning_by_chance() {
    let error = |ns| move |gpu: &mut Device, _: &mut Series| gpu.event_bias_error_ns = Some(ns);
    assert_eq!(cross_checks(error(850.0)), (1, 1));
    assert_eq!(cross_checks(error(950.0)), (1, 0));
}

#[test]
fn times_that_do_not_claim_to_equal_cupti_are_not_compared() {
    type Change = fn(&mut Series, &mut KernelTimes);
    let changes: [(Change, (usize, usize)); 6] = [
        (|_, times| times.opened = 4, (0, 0)),
        (|_, times| (times.opened, times.kernels[0].count) = (4, 4), (1, 0)),
        (|_, times| times.kernels[0].name = "[memset]".to_owned(), (0, 0)),
        (|_, times| times.kernels.push(times.kernels[0].clone()), (0, 0)),
        (|series, _| (series.fed, series.starved) = (0, 90), (0, 0)),
        (|series, _| series.launches = Some(Launches { min: 1, mean: 1.5, max: 2 }), (0, 0)),
    ];
    for (at, (change, expected)) in changes.into_iter().enumerate() {
        let found = cross_checks(|_, series| {
            let mut times = series.kernel_times.take().unwrap();
            change(series, &mut times);
            series.kernel_times = Some(times);
        });
        assert_eq!(found, expected, "{at}");
    }
}

/// `outer` calls `inner`, which takes three quarters of its time.
#[test]
fn shares_of_opened_calls_do_not_count_inner_functions_twice() {
    let mut snapshot = kernels();
    snapshot.sites.truncate(1);
    let mut inner = snapshot.sites[0].clone();
    inner.name = "model::inner".to_owned();
    for (site, total, own) in [(&mut snapshot.sites[0], 1.0, 0.25), (&mut inner, 0.75, 1.0)] {
        let series = &mut site.series[0];
        let times = series.kernel_times.as_mut().unwrap();
        (times.busy_ns, times.self_busy_ns) = (series.raw_ns, series.raw_ns);
        times.self_busy_ns.as_mut().unwrap().sum *= own;
        series.estimated_total_ns = series.estimated_total_ns.map(|ns| ns * total);
    }
    snapshot.sites.push(inner);
    let table = snapshot.to_string();
    let share = |name: &str| {
        let row = table.lines().find(|line| line.starts_with(name)).unwrap();
        row.split_whitespace().last().unwrap().to_owned()
    };
    assert_eq!([share("model::decode"), share("model::inner")], ["25.0%", "75.0%"], "{table}");
    assert!(!table.contains("count twice"), "{table}");
}

/// No function is sampled, and only phases give an estimate.
#[test]
fn estimate_of_work_outside_of_functions_is_explained_briefly() {
    let mut snapshot = kernels();
    snapshot.devices[0].coverage.as_mut().unwrap().attributed = 0.1;
    for site in &mut snapshot.sites {
        (site.sample_rate, site.unsampled) = (1.0, 0);
        site.series.iter_mut().for_each(|series| series.estimated_total_ns = None);
    }
    let tree = vec![node("model::decode", None, 1e6, 1e6)];
    let table = snapshot.with_tree(tree).to_table(Terminal::default(), Detail::Brief);
    assert!(table.contains("~: estimate · ") || table.contains("~: estimate\n"), "{table}");
}

#[test]
fn all_notes_include_the_brief_ones() {
    let mut by_floor = kernels();
    by_floor.devices[0].event_bias_source = Some("floor".to_owned());
    for snapshot in [by_floor, everything(), rated(), off()] {
        let all = snapshot.to_table(Terminal::default(), Detail::All);
        for note in crate::notes::of(&Analysis::of(&snapshot)) {
            let line = note.line(crate::notes::NAMED);
            assert!(all.contains(&format!("{}\n", printable(&line))), "{line}: {all}");
        }
    }
}

/// Only the kernels of functions, which are details, have shares then.
#[test]
fn column_of_shares_is_left_out_if_none_are_known() {
    let mut snapshot = kernels();
    for series in snapshot.sites.iter_mut().flat_map(|site| &mut site.series) {
        (series.fed, series.starved, series.upper_bound) = (0, series.measured, true);
    }
    let has_shares = |table: String| {
        let header = table.lines().find(|line| line.starts_with("function")).unwrap().to_owned();
        header.ends_with("share")
    };
    assert!(!has_shares(snapshot.to_string()) && has_shares(in_full(&snapshot)));
}

/// The row and the path of a function may be of other samples.
#[test]
fn own_time_has_the_bound_of_the_path() {
    let own = |is_row_bound: bool, is_path_bound: bool| {
        let function = |name, line, ns: u32| {
            let rows = vec![row("cuda:0", Measure::Span, [ns; 10])];
            site(name, line, ScopeKind::Body, [0, 0, 10], rows)
        };
        let sites = vec![function("outer", 1, 102_207), function("inner", 2, 52_207)];
        let mut nodes = vec![node("outer", None, 1e6, 5e5), node("inner", Some(0), 5e5, 5e5)];
        nodes[0].upper_bound = is_path_bound;
        (nodes[0].site, nodes[1].site) = (Some(0), Some(1));
        let mut snapshot = Snapshot::new(process(None), vec![gpu()], sites).with_tree(nodes);
        snapshot.sites[0].series[0].upper_bound = is_row_bound;
        let table = snapshot.to_string();
        let line = table.lines().find(|line| line.starts_with("outer")).unwrap();
        let cells: Vec<&str> = line.split_whitespace().collect();
        [cells[cells.len() - 3].to_owned(), cells[cells.len() - 2].to_owned()]
    };
    assert_eq!(own(true, false), ["0.500", "≤1.000"]);
    assert_eq!(own(false, true), ["≤0.500", "1.000"]);
}
