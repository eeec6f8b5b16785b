//! Tests of `ab` on small programs that write prepared reports, regardless of the real time.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use gpu_time_report::Series;
use gpu_time_sim_driver::SimDriver;
use gpu_time_sim_nvml::{Script, SimNvml};
use rustix::process::{Pid, Signal, kill_process};

use crate::fixtures::{gpu, report, series, site};
use crate::{Folder, Run, TOOL, run, terminal};

/// The shell commands that log the program's name and write the next prepared report as the run's
/// own.
const REPORT: &str = "echo ${0##*/} >> ../order\n\
                      n=$(cat count); echo $((n + 1)) > count\n\
                      target=$(echo \"${GPU_TIME_REPORT#json:}\" | sed \"s/%p.json/$$.json/; s/%%/%/g; s/,,/,/g\")\n\
                      cp \"$n.json\" \"$target\"\n";

/// The number of reports prepared for a program.
const REPORTS: usize = 60;

/// Builds a series with times within 1 % of `ns`.
fn around(ns: f64) -> Series {
    let times: Vec<f64> = (0..101).map(|i| ns * (0.99 + 0.0002 * f64::from(i))).collect();
    series("cuda:0", &times, &[], 0.0)
}

/// Writes a program that runs `body` in a folder of its own.
fn script(folder: &Folder, name: &str, body: &str) -> PathBuf {
    let own = folder.path(&format!("{name}.d"));
    fs::create_dir_all(&own).expect("create the folder of a program");
    let path = folder.write(name, format!("#!/bin/sh\ncd '{}'\n{body}", own.display()));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("make it executable");
    path
}

/// Writes a program whose runs report, for each function, random times within 1 % of the given one.
fn program(folder: &Folder, name: &str, seed: u64, functions: &[(&str, f64)]) -> PathBuf {
    let path = script(folder, name, REPORT);
    let own = folder.path(&format!("{name}.d"));
    let mut random = Rng::with_seed(seed);
    for n in 0..REPORTS {
        let mut one = |&(function, ns): &(&str, f64)| {
            let factor = 0.99 + 0.02 * random.f64();
            site(function, 1, vec![around(ns * factor)])
        };
        let sites = functions.iter().map(&mut one).collect();
        let report = report(n as u32, vec![gpu("cuda:0", "H200")], sites);
        fs::write(own.join(format!("{n}.json")), report.to_json()).expect("write a report");
    }
    fs::write(own.join("count"), "0").expect("write the counter");
    path
}

/// Returns the number of runs of a program.
fn runs(program: &Path) -> u32 {
    let count = fs::read_to_string(program.with_extension("d").join("count"));
    count.expect("read the counter").trim().parse().expect("a number")
}

fn ab(old: &Path, new: &Path, more: &[&str]) -> Run {
    run(Command::new(TOOL).arg("ab").arg(old).arg(new).args(more).env_remove("GPU_TIME"))
}

/// Returns the row of a function, with its columns separated by single spaces.
#[track_caller]
fn row(run: &Run, name: &str) -> String {
    let name = format!("{name} on ");
    let line = run.stdout.lines().find(|line| line.starts_with(&name));
    let line = line.unwrap_or_else(|| panic!("{name}: {}{}", run.stdout, run.stderr));
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn stops_when_every_series_has_a_verdict() {
    let folder = Folder::new();
    let old = program(&folder, "old", 1, &[("f", 20e3), ("g", 20e3)]);
    let new = program(&folder, "new", 2, &[("f", 24e3), ("g", 20e3)]);
    let run = ab(&old, &new, &["--max-runs=100", "--", "--size", "7"]);
    assert_eq!(run.code, Some(1), "{}{}", run.stdout, run.stderr);
    assert!(row(&run, "f").ends_with(" slower") && row(&run, "g").ends_with(" same"));
    assert!(run.stdout.contains(": every series "));
    // There is one unmeasured run of each program, and at least four blocks.
    assert_eq!(runs(&old), runs(&new));
    assert!((9..40).contains(&runs(&old)), "{}", runs(&old));
}

#[test]
fn unusable_temporary_folder_is_named() {
    let folder = Folder::new();
    let program = program(&folder, "app", 1, &[("f", 20e3)]);
    let temporary = folder.path("").join(OsStr::from_bytes(b"\xff"));
    fs::create_dir(&temporary).expect("create the temporary folder");
    let mut command = Command::new(TOOL);
    let run = run(command.arg("ab").args([&program, &program]).env("TMPDIR", temporary));
    assert_eq!((run.code, &*run.stdout), (Some(2), ""), "{}", run.stderr);
    let last = run.stderr.lines().last().unwrap_or_default();
    assert!(last.contains("\u{fffd}") && last.contains("`: set TMPDIR to "), "{last}");
    assert_eq!(runs(&program), 0);
}

#[test]
fn temporary_folder_may_look_like_placeholders() {
    let folder = Folder::new();
    let program = program(&folder, "app", 1, &[("f", 20e3)]);
    let temporary = folder.path("100%per,cent");
    fs::create_dir(&temporary).expect("create the temporary folder");
    let mut command = Command::new(TOOL);
    command.arg("ab").args([&program, &program]).arg("--max-runs=16").env("TMPDIR", temporary);
    assert_eq!(run(&mut command).code, Some(0));
}

#[test]
fn last_look_finds_what_early_ones_do_not() {
    let folder = Folder::new();
    let runs_of = |max_runs: &str| {
        let old = program(&folder, "old", 1, &[("f", 20_000.0)]);
        let new = program(&folder, "new", 2, &[("f", 20_400.0)]);
        let run = ab(&old, &new, &[max_runs, "--threshold=1%"]);
        (row(&run, "f").ends_with(" slower"), runs(&old))
    };
    // One run of each program is unmeasured.
    assert_eq!(runs_of("--max-runs=16"), (true, 9));
    let (is_found, runs) = runs_of("--max-runs=100");
    assert!(is_found && runs > 9, "{runs}");
}

#[test]
fn programs_run_in_random_order_and_then_in_reverse() {
    let folder = Folder::new();
    let old = program(&folder, "old", 1, &[("f", 20e3)]);
    let new = program(&folder, "new", 2, &[("f", 20e3)]);
    ab(&old, &new, &["--max-runs=100", "--threshold=0.01%"]);
    let order = fs::read_to_string(folder.path("order")).expect("read the order");
    let order: Vec<&str> = order.lines().collect();
    let (unmeasured, measured) = order.split_at(2);
    assert_eq!((unmeasured, measured.len()), (&["old", "new"][..], 100));
    let mut blocks: Vec<&[&str]> = measured.chunks(4).collect();
    blocks.sort();
    blocks.dedup();
    // All 25 blocks have the same order by chance once in 16 million runs of this test.
    assert_eq!(blocks, [["new", "old", "old", "new"], ["old", "new", "new", "old"]]);
}

#[test]
fn max_runs_and_max_time_stop_between_blocks() {
    let folder = Folder::new();
    let old = program(&folder, "old", 1, &[("f", 20e3)]);
    let new = program(&folder, "new", 2, &[("f", 20e3)]);
    let run = ab(&old, &new, &["--max-runs=14", "--threshold=0.1%"]);
    assert!(row(&run, "f").contains(" too few blocks"), "{}", run.stdout);
    assert_eq!((run.code, runs(&old), runs(&new)), (Some(0), 7, 7));
    let run = ab(&old, &new, &["--max-runs=1", "--fail-on=unknown"]);
    assert_eq!((run.code, runs(&old)), (Some(1), 10), "{}", run.stderr);
    assert!(run.stdout.contains("4 runs in 1 block, 0 s: "));
}

/// The first program never ends by itself.
#[test]
fn max_time_ends_a_run() {
    let folder = Folder::new();
    let hangs = script(&folder, "hangs", "sleep 1000\n");
    let run = ab(&hangs, &hangs, &["--max-time=300ms"]);
    let line = "the first block of runs was not complete within 0.3 s: see --max-time";
    assert_eq!((failure(&run), &*run.stdout), (line, ""));
    // A hang in the third block ends the experiment, but the figures of the first two are printed.
    let old = program(&folder, "old", 1, &[("f", 20e3)]);
    let hang = format!("[ $(cat count) = 5 ] && sleep 1000\n{REPORT}");
    program(&folder, "new", 2, &[("f", 20e3)]);
    let new = script(&folder, "new", &hang);
    let run = ab(&old, &new, &["--max-time=8s", "--threshold=0.1%"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("8 runs in 2 blocks, 8 s: "));
}

/// A process outlives its run and writes a report during the next run, which is of the other
/// program.
#[test]
fn late_report_is_of_no_run() {
    let folder = Folder::new();
    let old = program(&folder, "old", 1, &[("f", 20e3)]);
    let new = program(&folder, "new", 2, &[("f", 20e3)]);
    let late = report(99, vec![gpu("cuda:0", "H200")], vec![site("late", 1, vec![around(2e4)])]);
    folder.report("late.json", &late);
    for in_group in ["", "setsid "] {
        let leaves = "target=${GPU_TIME_REPORT#json:}; target=${target%/*}/late.json; \
                      sleep 0.2; echo >> ../written; cp ../late.json \"$target\"";
        let leaves = format!("{in_group}sh -c '{leaves}' &\n{REPORT}");
        let old = script(&folder, old.file_name().unwrap().to_str().unwrap(), &leaves);
        let new = script(
            &folder,
            new.file_name().unwrap().to_str().unwrap(),
            &format!("sleep 0.4\n{REPORT}"),
        );
        let run = ab(&old, &new, &["--max-runs=4"]);
        assert_eq!((run.code, run.stdout.contains("late")), (Some(0), false), "{}", run.stdout);
        // Processes that stayed in the group were ended with the program.
        assert_eq!(folder.path("written").exists(), !in_group.is_empty());
    }
}

#[test]
fn control_compares_old_program_with_itself() {
    let folder = Folder::new();
    let old = program(&folder, "old", 1, &[("f", 20e3)]);
    let new = program(&folder, "new", 2, &[("f", 24e3)]);
    let run = ab(&old, &new, &["--control", "--max-runs=48"]);
    let (_, control) = run.stdout.split_once("control: the old program against itself\n").unwrap();
    assert!(control.contains(" same\n"), "{control}");
    assert!(row(&run, "f").ends_with(" slower"), "{}", run.stdout);
    assert!(!run.stderr.contains("differs from itself"), "{}", run.stderr);
}

/// Returns the last line of stderr. Warnings about the machine may precede it.
#[track_caller]
fn failure(run: &Run) -> &str {
    assert_eq!(run.code, Some(2), "{}{}", run.stdout, run.stderr);
    let line = run.stderr.lines().last().expect("a message");
    line.strip_prefix("gpu-time: ").expect("the message names the tool")
}

#[test]
fn programs_that_fail_give_one_line() {
    let folder = Folder::new();
    let good = program(&folder, "good", 1, &[("f", 20e3)]);
    let fails = script(&folder, "fails", "echo noise >&2\necho 'error: no device' >&2\nexit 3\n");
    let killed = script(&folder, "killed", "kill -9 $$\n");
    let silent = script(&folder, "silent", "exit 0\n");
    let broken = script(&folder, "broken", "echo '{' > \"${GPU_TIME_REPORT#json:}\"\n");
    let hangs = script(&folder, "hangs", "sleep 1000 &\necho $! > pid\nwait\n");
    let other = program(&folder, "other", 2, &[("g", 20e3)]);
    let missing = folder.path("missing");
    for (program, expected) in [
        (&fails, "` failed with exit status: 3: error: no device"),
        (&killed, "` failed with signal: 9 (SIGKILL)"),
        (&silent, "` wrote no report: it must be built with the feature `enabled` of gpu-time"),
        (&broken, "` wrote an unusable report: `"),
        (&hangs, "` did not end within 2 s and was ended: see --timeout"),
        (&missing, "` cannot be run: No such file or directory"),
        (&other, "cannot compare: the programs have no series in common"),
    ] {
        // The others end by themselves, however busy the machine is.
        let timeout = if program == &hangs { "--timeout=2s" } else { "--timeout=60s" };
        let run = ab(&good, program, &[timeout, "--max-runs=4"]);
        let line = failure(&run);
        assert!(line.contains(expected), "{line}");
        assert_eq!(run.stdout, "");
    }
    // The process that the program started has ended too.
    let child = fs::read_to_string(hangs.with_extension("d").join("pid")).unwrap();
    assert!(has_ended(child.trim()), "{child}");
}

/// Returns `true` once a process has ended, even if its parent has not waited for it.
fn has_ended(pid: &str) -> bool {
    (0..500).any(|_| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let ended = stat
            .rsplit(')')
            .next()
            .is_none_or(|rest| rest.trim().is_empty() || rest.trim().starts_with('Z'));
        if !ended {
            thread::sleep(Duration::from_millis(10));
        }
        ended
    })
}

#[test]
fn failure_after_a_block_prints_what_is_known() {
    let folder = Folder::new();
    let old = program(&folder, "old", 1, &[("f", 20e3)]);
    let new = program(&folder, "new", 2, &[("f", 20e3)]);
    fs::remove_file(new.with_extension("d").join("9.json")).unwrap();
    let run = ab(&old, &new, &["--threshold=0.1%"]);
    assert!(failure(&run).contains("new` failed ") && failure(&run).contains(": 1: cp: "));
    assert!(run.stdout.contains("f on cuda:0") && run.stdout.contains(": a run failed; "));
}

#[test]
fn interrupt_ends_programs_and_prints_what_is_known() {
    let folder = Folder::new();
    let old = program(&folder, "old", 1, &[("f", 20e3)]);
    let new = program(&folder, "new", 2, &[("f", 20e3)]);
    // The program hangs after two blocks.
    let hang = format!("[ $(cat count) = 5 ] && {{ echo $$ > pid; sleep 1000; }}\n{REPORT}");
    let new = script(&folder, new.file_name().unwrap().to_str().unwrap(), &hang);
    let mut command = Command::new(TOOL);
    command.arg("ab").args([&old, &new]).arg("--threshold=0.1%");
    let tool = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = new.with_extension("d").join("pid");
    let read = || fs::read_to_string(&pid).ok().filter(|text| text.ends_with('\n'));
    let child = loop {
        if let Some(child) = read() {
            break child;
        }
        thread::sleep(Duration::from_millis(10));
    };
    kill_process(Pid::from_raw(tool.id() as i32).unwrap(), Signal::INT).unwrap();
    let output = tool.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stdout}");
    assert!(stdout.contains("note: 8 runs ") && stdout.contains(" s: interrupted; "), "{stdout}");
    assert!(has_ended(child.trim()));
}

#[test]
fn progress_is_shown_on_a_terminal_and_cleared() {
    let folder = Folder::new();
    let old = program(&folder, "old", 1, &[("f", 20e3)]);
    let new = program(&folder, "new", 2, &[("f", 20e3)]);
    let mut command = Command::new(TOOL);
    command.arg("ab").args([&old, &new]).args(["--threshold=0.1%", "--max-runs=8"]);
    command.stdout(Stdio::null());
    let text = terminal::output(200, command, Command::stderr);
    assert!(text.contains("\r\u{1b}[Kgpu-time: 4 runs, ") && text.contains(", 1 undecided"));
    assert!(text.ends_with("\r\u{1b}[K"), "{text:?}");
}

#[test]
fn busy_gpu_is_reported() {
    let folder = Folder::new();
    let old = program(&folder, "old", 1, &[("f", 20e3)]);
    let simulated = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ab");
    let sim = SimDriver::install(simulated).expect("install the simulated driver");
    SimNvml::install(sim.dir()).expect("install the simulated NVML");
    let warnings = |idle: bool| {
        let mut command = Command::new(TOOL);
        command.arg("ab").args([&old, &old]).arg("--max-runs=4").env_remove("CUDA_VISIBLE_DEVICES");
        sim.apply(&mut command);
        // An idle GPU reports a low clock with the reason that nothing runs.
        let script = Script::calm(1).with(|gpu| gpu.reasons = u64::from(idle).into());
        SimNvml::new(script).apply(&mut command, &folder.path("nvml"));
        let run = run(&mut command);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        run.stderr
    };
    let warning = "gpu-time: warning: cuda:0: the GPU is busy";
    let busy = warnings(false);
    assert!(busy.lines().any(|line| line.starts_with(warning)), "{busy}");
    let idle = warnings(true);
    assert!(!idle.contains("cuda:0"), "{idle}");
}

#[test]
fn missing_nvml_is_reported() {
    let folder = Folder::new();
    let old = program(&folder, "old", 1, &[("f", 20e3)]);
    let simulated = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ab-no-nvml");
    let sim = SimDriver::install(simulated).expect("install the simulated driver");
    SimNvml::install_broken(sim.dir()).expect("install a library that cannot be loaded");
    let mut command = Command::new(TOOL);
    command.arg("ab").args([&old, &old]).arg("--max-runs=4").env_remove("CUDA_VISIBLE_DEVICES");
    let run = run(sim.apply(&mut command));
    let warning = "gpu-time: warning: cannot tell whether other programs use the GPUs: NVML: ";
    assert!(run.stderr.lines().any(|line| line.starts_with(warning)), "{}", run.stderr);
}
