//! `merge`; what it computes is tested beside it.

use std::process::Command;

use gpu_time_report::Snapshot;

use crate::made::{gpu, report, series, site};
use crate::{Folder, TOOL, first, run, tool};

fn two(folder: &Folder) -> [std::path::PathBuf; 2] {
    let part = |pid: u32, ns: f64| {
        let series = series("cuda:0", &[ns; 7], &[], 0.0);
        report(pid, vec![gpu("cuda:0", "H200")], vec![site("f", 1, vec![series])])
    };
    [folder.report("1.json", &part(1, 1000.0)), folder.report("2.json", &part(2, 3000.0))]
}

#[test]
fn the_merged_report_is_a_report() {
    let folder = Folder::new();
    let [one, two] = two(&folder);
    let output = folder.path("merged.json");
    let arguments = ["merge".into(), one.clone(), two.clone(), "-o".into(), output.clone()];
    assert_eq!(tool(&arguments).fine(), "");
    let merged = Snapshot::from_json(&std::fs::read(&output).unwrap()).unwrap();
    assert_eq!(tool(&["merge".into(), one, two]).fine(), merged.to_json() + "\n");
    let raw = merged.sites()[0].series()[0].raw_ns().unwrap();
    assert_eq!((raw.min(), raw.mean(), raw.max(), raw.sum()), (1000.0, 2000.0, 3000.0, 28_000.0));
    assert!(tool(&["show".into(), output]).fine().contains("2 reports of app merged"));
}

#[test]
fn no_report_counts_twice() {
    let folder = Folder::new();
    let [one, two] = two(&folder);
    let all = folder.path("all.json");
    tool(&["merge".into(), one.clone(), two.clone(), "-o".into(), all.clone()]).fine();
    for (first, second, pid) in [(&one, &one, 1), (&one, &all, 1), (&two, &all, 2), (&all, &all, 1)]
    {
        let line = tool(&["merge".into(), first.clone(), second.clone()]).refused();
        let [first, second] = [first, second].map(|path| path.display());
        let started = format!("2026-11-20T10:30:0{pid}Z");
        assert_eq!(
            line,
            format!(
                "`{first}` and `{second}` both hold the report of app (pid {pid}) from {started}, which would \
                 count twice: leave one of them out"
            )
        );
    }
}

#[test]
fn what_cannot_be_merged_or_written_is_named() {
    let folder = Folder::new();
    let [one, _] = two(&folder);
    let line = tool(&["merge".into(), one.clone(), first()]).refused();
    assert!(line.contains("first.json` cannot be merged: it has no histograms"), "{line}");
    let output = folder.path("missing").join("merged.json");
    let line = tool(&["merge".into(), one, "--output".into(), output]).refused();
    assert!(line.contains("merged.json` cannot be written: "), "{line}");
}

/// No file may grow, as on a full disk.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_what_was_there() {
    let folder = Folder::new();
    let [one, _] = two(&folder);
    let output = folder.write("old", "old");
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh", TOOL, "merge"]);
    let line = run(shell.arg(one).arg("-o").arg(&output)).refused();
    assert!(line.contains("old` cannot be written: "), "{line}");
    assert_eq!(std::fs::read_to_string(output).unwrap(), "old");
    assert_eq!(std::fs::read_dir(folder.path("")).unwrap().count(), 3);
}
