//! Tests of `merge` as a command. Unit tests next to the code cover the merged values.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use gpu_time_report::Snapshot;

use crate::fixtures::{gpu, report, series, site};
use crate::{Folder, TOOL, run, tool};

fn two(folder: &Folder) -> [std::path::PathBuf; 2] {
    let part = |pid: u32, ns: f64| {
        let series = series("cuda:0", &[ns; 7], &[], 0.0);
        report(pid, vec![gpu("cuda:0", "H200")], vec![site("f", 1, vec![series])])
    };
    [folder.report("1.json", &part(1, 1000.0)), folder.report("2.json", &part(2, 3000.0))]
}

#[test]
fn merged_report_can_be_read() {
    let folder = Folder::new();
    let [one, two] = two(&folder);
    let output = folder.path("merged.json");
    let arguments = ["merge".into(), one.clone(), two.clone(), "-o".into(), output.clone()];
    assert_eq!(tool(&arguments).success(), "");
    let merged = Snapshot::from_json(&std::fs::read(&output).unwrap()).unwrap();
    assert_eq!(tool(&["merge".into(), one, two]).success(), merged.to_json() + "\n");
    let raw = merged.sites[0].series[0].raw_ns.unwrap();
    assert_eq!((raw.min, raw.mean, raw.max, raw.sum), (1000.0, 2000.0, 3000.0, 28_000.0));
    assert!(tool(&["show".into(), output]).success().contains(": 2 reports of "));
}

#[test]
fn dash_is_stdout() {
    let folder = Folder::new();
    let [one, two] = two(&folder);
    for arguments in [vec![Path::new("merge"), &one, &two], vec![Path::new("html"), &one]] {
        let plain = tool(&arguments).success();
        for dash in [&["-o", "-"][..], &["--output=-"], &["-o-"]] {
            let mut command = Command::new(TOOL);
            command.args(&arguments).args(dash).current_dir(folder.path(""));
            assert_eq!(run(&mut command).success(), plain, "{command:?}");
        }
    }
    assert_eq!(std::fs::read_dir(folder.path("")).unwrap().count(), 2, "no file `-`");
    // `./-` names a file called `-`.
    let mut command = Command::new(TOOL);
    command.arg("merge").arg(&one).args(["-o", "./-"]).current_dir(folder.path(""));
    assert_eq!(run(&mut command).success(), "");
    assert!(folder.path("-").is_file());
}

/// The output file is opened like with the shell's `>>`.
#[test]
fn redirected_file_is_appended_to() {
    let folder = Folder::new();
    let [one, _] = two(&folder);
    let log = folder.write("log", "before\n");
    let mut command = Command::new(TOOL);
    command.arg("merge").arg(&one).args(["-o", "/dev/stdout"]);
    command.stdout(File::options().append(true).open(&log).unwrap());
    assert!(command.status().unwrap().success());
    let text = std::fs::read_to_string(log).unwrap();
    let report = text.strip_prefix("before\n").expect(&text);
    assert!(Snapshot::from_json(report.as_bytes()).is_ok(), "{text}");
}

#[test]
fn merge_rejects_duplicate_report() {
    let folder = Folder::new();
    let [one, two] = two(&folder);
    let all = folder.path("all.json");
    tool(&["merge".into(), one.clone(), two.clone(), "-o".into(), all.clone()]).success();
    for (first, second, pid) in [(&one, &one, 1), (&one, &all, 1), (&two, &all, 2), (&all, &all, 1)]
    {
        let line = tool(&["merge".into(), first.clone(), second.clone()]).refusal();
        let [first, second] = [first, second].map(|path| path.display());
        let started = format!("2026-11-20T10:30:0{pid}Z");
        assert_eq!(
            line,
            format!(
                "`{first}` and `{second}` both contain the report of app (pid {pid}) from {started}, which \
                 would be counted twice: omit one of them"
            )
        );
    }
}

#[test]
fn merge_errors_name_the_file() {
    let folder = Folder::new();
    let [one, _] = two(&folder);
    let without = site("f", 1, vec![series("cuda:0", &[1_000.0], &[], 0.0)]);
    let without = folder.report("without", &report(9, Vec::new(), vec![without]));
    let line = tool(&["merge".into(), one.clone(), without]).refusal();
    assert!(line.starts_with("cannot merge `"), "{line}");
    assert!(line.contains("without`: a series "), "{line}");
    let output = folder.path("missing").join("merged.json");
    let line = tool(&["merge".into(), one, "--output".into(), output]).refusal();
    assert!(line.starts_with("cannot write `"), "{line}");
    assert!(line.contains("merged.json`: "), "{line}");
}

/// A file-size limit of 0 makes every write fail, as a full disk does.
#[cfg(unix)]
#[test]
fn failed_write_keeps_old_file() {
    let folder = Folder::new();
    let [one, _] = two(&folder);
    let output = folder.write("old", "old");
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh", TOOL, "merge"]);
    let line = run(shell.arg(one).arg("-o").arg(&output)).refusal();
    assert!(line.starts_with("cannot write `"), "{line}");
    assert!(line.contains("old`: "), "{line}");
    assert_eq!(std::fs::read_to_string(output).unwrap(), "old");
    assert_eq!(std::fs::read_dir(folder.path("")).unwrap().count(), 3);
}
