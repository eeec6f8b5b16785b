//! Tests of `show`, `html`, help, completions and manual pages.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gpu_time_report::{Detail, Node, Snapshot, Source, Terminal, value};

use crate::fixtures::{gpu, report, series, site};
use crate::opened_calls::opened;
use crate::{Folder, TOOL, run, stored, terminal, tool};

#[test]
fn show_prints_table_of_program() {
    let table = tool(&["show".into(), stored()]).success();
    let report = Snapshot::from_json(&std::fs::read(stored()).unwrap()).unwrap();
    assert_eq!(table, report.to_string());
    assert!(table.contains("app::train"), "{table}");
    // A function name with an escape character and a line break.
    assert!(table.contains("a,\"b\"\\n\\u{1b}<i>"), "{table}");
}

#[test]
fn functions_with_equal_names_show_location() {
    let folder = Folder::new();
    let sites = || [7, 9].map(|line| site("app::f", line, vec![])).into();
    let files =
        [1, 2].map(|pid| folder.write(&pid.to_string(), report(pid, vec![], sites()).to_json()));
    let [one, both] = [&files[..1], &files].map(|files| {
        let arguments = ["show".into()].into_iter().chain(files.iter().cloned());
        tool(&arguments.collect::<Vec<_>>()).success()
    });
    for table in [one, both] {
        for line in [7, 9] {
            let row = format!("\napp::f (src/main.rs:{line})  ");
            assert!(table.contains(&row), "{table}");
        }
    }
}

/// Runs `show` on a terminal of the given width and returns its output.
fn on_terminal(columns: u16, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(TOOL);
    command.args(["show".into(), stored()]).env_clear().envs(variables.iter().copied());
    terminal::output(columns, command, Command::stdout)
}

#[test]
fn terminal_colours_follow_environment() {
    let report = Snapshot::from_json(&std::fs::read(stored()).unwrap()).unwrap();
    let terminal = |colours| Terminal { colours, columns: Some(200), ..Terminal::default() };
    let xterm = ("TERM", "xterm-256color");
    assert_eq!(on_terminal(200, &[xterm]), report.to_table(terminal(true), Detail::Brief));
    assert!(on_terminal(200, &[xterm]).contains('\u{1b}'));
    let plain = report.to_table(terminal(false), Detail::Brief);
    for variables in [
        &[("TERM", "dumb")][..],
        &[xterm, ("NO_COLOR", "1")],
        &[xterm, ("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")],
        &[xterm, ("CLICOLOR", "0")],
        &[],
    ] {
        assert_eq!(on_terminal(200, variables), plain, "{variables:?}");
    }
    let narrow = Terminal { columns: Some(100), ..Terminal::default() };
    assert_eq!(on_terminal(100, &[("TERM", "dumb")]), report.to_table(narrow, Detail::Brief));
}

#[test]
fn show_csv_json_and_several_tables() {
    let csv = tool(&["show".into(), stored(), "--format".into(), "csv".into()]).success();
    assert!(csv.starts_with("function,file,line,"), "{csv}");
    let json = tool(&["show".into(), stored(), "--format=json".into()]).success();
    let report = Snapshot::from_json(&std::fs::read(stored()).unwrap()).unwrap();
    assert_eq!((csv, json), (report.to_csv(), report.to_json() + "\n"));
    let table = tool(&["show".into(), stored(), stored()]).success();
    assert_eq!(table, report.to_string().repeat(2));
}

#[test]
fn dash_reads_stdin() {
    let folder = Folder::new();
    let sites = vec![site("f", 1, vec![series("cuda:0", &[5e3; 9], &[], 0.0)])];
    let file = folder.report("report", &report(1, vec![gpu("cuda:0", "H200")], sites));
    let on_stdin = |arguments: &[&str]| {
        let file = File::open(&file).expect("open the report");
        run(Command::new(TOOL).args(arguments).stdin(file))
    };
    let file = file.to_str().expect("the path is UTF-8");
    for command in [&["show"][..], &["html"], &["merge"], &["compare", file]] {
        let named = tool(&[command, &[file]].concat()).success();
        assert_eq!(on_stdin(&[command, &["-"]].concat()).success(), named, "{command:?}");
    }
    let twice = on_stdin(&["merge", "-", "-"]).refusal();
    assert!(twice.ends_with("name `-` once"), "{twice}");
    let line = run(Command::new(TOOL).args(["show", "-"]).stdin(Stdio::null())).refusal();
    assert!(line.starts_with("stdin: the JSON "), "{line}");
}

/// Several files become one CSV table, or JSON Lines.
#[test]
fn several_files_become_one_csv_or_json_lines() {
    let folder = Folder::new();
    let second = folder.write("a,\"b\".json", std::fs::read(stored()).unwrap());
    let show =
        |format: &str| tool(&["show".into(), stored(), second.clone(), format.into()]).success();
    let report = Snapshot::from_json(&std::fs::read(stored()).unwrap()).unwrap();
    let json = show("--format=json");
    assert_eq!(json.lines().count(), 2);
    for line in json.lines() {
        assert_eq!(Snapshot::from_json(line.as_bytes()).unwrap(), report);
    }
    let csv = show("--format=csv");
    let mut lines = csv.lines();
    let alone = report.to_csv();
    let (header, rows) = alone.split_once('\n').unwrap();
    assert_eq!(lines.next(), Some(&*format!("report,{header}")));
    for file in [stored(), second] {
        let name = file.display().to_string().replace('"', "\"\"");
        for row in rows.lines() {
            assert_eq!(lines.next(), Some(&*format!("\"{name}\",{row}")));
        }
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn html_page_contains_report() {
    let folder = Folder::new();
    let page = folder.path("page.html");
    assert_eq!(tool(&["html".into(), stored(), "-o".into(), page.clone()]).success(), "");
    let page = std::fs::read_to_string(page).unwrap();
    assert_eq!(tool(&["html".into(), stored()]).success(), page);
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("app::train"), "{page}");
    // The markup in a function's name is escaped.
    assert!(!page.contains("<i>"), "{page}");
}

#[test]
fn help_and_completions() {
    assert!(tool(&["--help"]).success().contains("GPU_TIME_REPORT=json:PATH"));
    assert!(tool(&["completions", "bash"]).success().contains("complete -F"));
    assert_eq!(tool(&["nonsense"]).code, Some(2));
}

/// The page of the tool lists exactly the commands that have a page.
#[test]
fn every_command_has_a_manual_page() {
    let page = tool(&["man"]).success();
    assert!(page.starts_with(".ie") && page.contains(".SH DESCRIPTION"), "{page}");
    let pages = page.lines().filter_map(|line| line.strip_prefix("gpu\\-time\\-"));
    let commands: Vec<&str> = pages.filter_map(|page| page.strip_suffix("(1)")).collect();
    let known = [
        "show",
        "html",
        "demo",
        "merge",
        "compare",
        "ab",
        "doctor",
        "calibrate",
        "completions",
        "man",
    ];
    assert_eq!(commands, known);
    for command in known {
        let page = tool(&["man", command]).success();
        assert!(page.contains(&format!("\ngpu\\-time\\-{command} \\- ")), "{page}");
    }
    assert!(tool(&["man", "compare"]).success().contains("\\-\\-threshold\\fR"));
    let line = tool(&["man", "help"]).refusal();
    assert!(line.starts_with("unknown command `help`"), "{line}");
}

/// Returns the table with all notes.
fn show_all(file: &Path) -> String {
    let mut command = Command::new(TOOL);
    run(command.arg("show").arg(file).env("GPU_TIME_NOTES", "all")).success()
}

#[test]
fn variable_selects_all_notes() {
    let report = Snapshot::from_json(&std::fs::read(stored()).unwrap()).unwrap();
    let all = show_all(&stored());
    assert_eq!(all, report.to_table(Terminal::default(), Detail::All));
    assert_ne!(all, report.to_string());
    let mut command = Command::new(TOOL);
    command.args(["show".into(), stored()]).env("GPU_TIME_NOTES", "most");
    let expected = "invalid value `most` for `GPU_TIME_NOTES`: expected `brief` or `all`";
    assert_eq!(run(&mut command).refusal(), expected);
}

#[test]
fn formats_ignore_variables_of_others() {
    let folder = Folder::new();
    let file = with_tree(&folder);
    let show = |format: &str, variable: &str| {
        let mut command = Command::new(TOOL);
        command.args(["show", "--format", format]).arg(&file).env(variable, "bogus");
        run(&mut command)
    };
    for format in ["json", "csv", "folded"] {
        for variable in ["GPU_TIME_NOTES", "GPU_TIME_VIEW"] {
            show(format, variable).success();
        }
    }
    show("tree", "GPU_TIME_VIEW").success();
    show("tree", "GPU_TIME_NOTES").refusal();
}

/// Writes a report with a call tree of two functions.
fn with_tree(folder: &Folder) -> PathBuf {
    let node = |name: &str, parent, self_ns| {
        value!(Node { name: name.to_owned(), parent, self_ns, ..Node::of(Source::Opened) })
    };
    let sites = vec![site("pass", 1, vec![]), site("norm", 2, vec![])];
    let report = report(1, vec![gpu("cuda:0", "H200")], sites);
    let report = report.with_tree(vec![node("pass", None, 2e3), node("norm", Some(0), 1e3)]);
    folder.report("tree", &report)
}

#[test]
fn tree_of_a_saved_report_is_shown() {
    let folder = Folder::new();
    let file = with_tree(&folder);
    let [table, tree] = ["--format=table", "--format=tree"]
        .map(|format| tool(&["show".into(), file.clone(), format.into()]).success());
    let title = "\nshare      self     total  calls  GPU/call  host/call  function\n";
    assert!(tree.contains(title) && !table.contains(title), "{table}{tree}");
    assert!(tree.contains("  pass\n") && tree.contains("    norm\n"), "{tree}");
    let show = |view: &str| {
        let mut command = Command::new(TOOL);
        run(command.arg("show").arg(&file).env("GPU_TIME_VIEW", view))
    };
    assert_eq!(show("tree").success(), tree);
    assert_eq!(show("functions").success(), table);
    let expected = "invalid value `trees` for `GPU_TIME_VIEW`: expected `functions` or `tree`";
    assert_eq!(show("trees").refusal(), expected);
}

#[test]
fn folded_stacks_of_a_saved_report_are_shown() {
    let folder = Folder::new();
    let folded = tool(&["show".into(), with_tree(&folder), "--format=folded".into()]).success();
    assert_eq!(folded, "pass 2000\npass;norm 1000\n");
    let line = tool(&["show".into(), stored(), "--format=folded".into()]).refusal();
    assert!(line.ends_with(" no call tree"), "{line}");
}

#[test]
fn kernels_of_single_and_merged_reports_are_shown() {
    let folder = Folder::new();
    let files = [1, 2].map(|pid| {
        let kernel_times = Some(opened(4, &[("gemm", 2, 9_000.0), ("add", 1, 500.0)]));
        let series = series("cuda:0", &[5000.0; 9], &[], 0.0);
        let series = value!(Series { timed: 13, kernel_times, ..series });
        let report = report(pid, vec![gpu("cuda:0", "H200")], vec![site("f", 1, vec![series])]);
        folder.report(&pid.to_string(), &report)
    });
    let words = |file: &PathBuf| {
        let table = show_all(file);
        let row = table.lines().find(|line| line.starts_with("    gemm")).unwrap();
        row.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(words(&files[0]), ["gemm", "×2", "8", "5.000", "5.000–5.000", "94.7%"]);
    let merged = folder.path("merged");
    let merge = ["merge".into(), files[0].clone(), files[1].clone(), "-o".into(), merged.clone()];
    assert_eq!(tool(&merge).success(), "");
    assert_eq!(words(&merged), ["gemm", "×2", "16", "94.7%"]);
    let csv = tool(&["show".into(), merged.clone(), "--format=csv".into()]).success();
    assert_eq!(csv.lines().count(), 2, "{csv}");
    let table = show_all(&merged);
    assert!(table.contains("\n  merged: medians of "), "{table}");
}

#[test]
fn demo_shows_a_stored_report_and_says_so() {
    let folder = Folder::new();
    let page = folder.path("demo.html");
    let run = tool(&["demo".into(), "-o".into(), page.clone()]);
    let stored = Snapshot::from_json(include_bytes!("../src/demo.json")).unwrap();
    assert_eq!((run.code, run.stdout), (Some(0), stored.to_string()));
    assert_eq!(std::fs::read_to_string(&page).unwrap(), stored.to_html());
    let gpu = stored.devices.iter().find(|device| device.id != "host").unwrap();
    let day = stored.process.started.split('T').next().unwrap();
    for words in ["nothing was measured here", &*gpu.name, day, page.to_str().unwrap()] {
        assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
    }
    assert_eq!(run.stderr.lines().count(), 1);
    // With the page on stdout, there is nothing else.
    let run = tool(&["demo", "-o", "-"]);
    assert_eq!((run.code, run.stdout), (Some(0), stored.to_html()));
}

#[test]
fn trackers_get_medians_with_intervals() {
    let folder = Folder::new();
    let times: Vec<f64> = (0..101).map(|at| 5_000.0 + f64::from(at)).collect();
    let starved = series("cuda:0", &[], &[9_000.0; 30], 0.0);
    let sites = vec![
        site("f", 1, vec![series("cuda:0", &times, &[], 1_000.0)]),
        site("g", 2, vec![starved]),
    ];
    let file = folder.report("r.json", &report(1, vec![gpu("cuda:0", "H200")], sites));
    let of = |format: &str| {
        let text =
            tool(&["show".into(), format!("--format={format}").into(), file.clone()]).success();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()
    };
    let bmf = of("bmf");
    let latency = &bmf["f on cuda:0"]["latency"];
    let [low, value, high] =
        ["lower_value", "value", "upper_value"].map(|key| latency[key].as_f64().unwrap());
    assert!(low < value && value < high && (value - 4_050.0).abs() < 32.0, "{bmf}");
    // An upper bound is no median.
    assert_eq!(bmf.as_object().unwrap().len(), 1, "{bmf}");
    let list = of("github-action-benchmark");
    let entry = &list[0];
    assert_eq!((&entry["name"], &entry["unit"]), (&"f on cuda:0".into(), &"ns".into()));
    assert_eq!(entry["value"].as_f64(), Some(value));
    assert_eq!(entry["range"], format!("{low:.0} to {high:.0}"));
    let both = ["show".into(), "--format=bmf".into(), file.clone(), file];
    assert!(tool(&both).refusal().contains("`gpu-time merge`"));
}

#[test]
fn missing_report_may_be_that_of_a_build_without_the_feature() {
    let folder = Folder::new();
    assert!(
        tool(&["show".into(), folder.path("r.json")]).refusal().contains("the feature `enabled`")
    );
    assert!(!tool(&["show".into(), folder.path("r")]).refusal().contains("the feature"));
}
