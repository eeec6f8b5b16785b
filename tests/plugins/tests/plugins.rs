//! Tests for plugins that are unloaded while the process continues.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

const SIGTERM: i32 = 15;

/// Returns the path of one of this package's examples, which `cargo test` builds before the tests.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let target = test.ancestors().nth(2).expect("the test is in `target/debug/deps`");
    let path = target.join("examples").join(name);
    assert!(path.exists(), "{}: run `cargo test -p gpu-time-plugins`", path.display());
    path
}

fn plugin(name: &str) -> PathBuf {
    example(&format!("lib{name}.so"))
}

/// Prepares to run an example, without any of gpu-time's variables in its environment.
fn program(name: &str) -> Command {
    let mut command = Command::new(example(name));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GPU_TIME") {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}

/// Runs a program that must succeed, and returns its stdout and stderr.
#[track_caller]
fn succeed(mut command: Command) -> (String, String) {
    let Output { status, stdout, stderr } = command.output().expect("the program runs");
    let [stdout, stderr] =
        [stdout, stderr].map(|text| String::from_utf8(text).expect("the output is UTF-8"));
    assert!(status.success(), "{command:?}: {status}\n{stdout}{stderr}");
    (stdout, stderr)
}

/// A plugin's threads may begin to run only after the program has unloaded the plugin.
#[test]
fn unloaded_plugin_stays_in_memory() {
    const ROUNDS: usize = 50;
    let plugin = plugin("plugin_alone");
    for budget in ["", "1%"] {
        for _ in 0..ROUNDS {
            let mut loader = program("loader");
            loader.arg(&plugin).env("GPU_TIME_BUDGET", budget);
            let (stdout, stderr) = succeed(loader);
            assert_eq!(stdout, format!("{}\n", plugin.display()));
            assert!(stderr.contains("plugin_alone::alone "), "{stderr}");
        }
    }
}

/// A running thread keeps its code in memory, so this test uses a runtime without threads. Such a runtime
/// still has handlers for forks and signals.
#[test]
fn unloaded_plugin_without_threads_stays_in_memory() {
    let plugin = plugin("plugin_alone");
    let mut loader = program("loader");
    loader.arg(&plugin).env("GPU_TIME", "off");
    let (stdout, stderr) = succeed(loader);
    assert_eq!((stdout, stderr), (format!("{}\n", plugin.display()), String::new()));
}

/// The report reads the sites of every plugin that shares the runtime.
#[test]
fn report_has_functions_of_unloaded_plugin() {
    let mut sharing = program("program_sharing");
    sharing.arg(plugin("plugin_sharing"));
    let (_, stderr) = succeed(sharing);
    for name in ["program_sharing::program ", "plugin_sharing::sharing "] {
        assert!(stderr.contains(name), "{stderr}");
    }
}

/// Prepares a program that loads three plugins, each with its own runtime, and returns the paths of
/// their reports.
fn three_runtimes(dir: &Path) -> (Command, [PathBuf; 3]) {
    let mut loader = program("loader");
    for number in 1..=3 {
        let copy = dir.join(format!("plugin-{number}.so"));
        fs::copy(plugin("plugin_alone"), &copy).expect("the plugin can be copied");
        loader.arg(copy);
    }
    loader.env("GPU_TIME_REPORT", format!("table,json:{}/report.json", dir.display()));
    let reports = ["report.json", "report.2.json", "report.3.json"];
    (loader, reports.map(|name| dir.join(name)))
}

/// Asserts that each report has its own plugin's call, and warns of three copies of gpu-time.
#[track_caller]
fn assert_complete(reports: &[PathBuf; 3]) {
    for path in reports {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let report: Value = serde_json::from_str(&text).expect("the report is JSON");
        assert_eq!(report["sites"][0]["calls"], 1, "{path:?}");
        let warning = report["process"]["warnings"][0].as_str().expect("a warning");
        assert!(warning.starts_with("this process has 3 copies of gpu-time"), "{warning}");
    }
}

#[test]
fn runtimes_write_files_of_their_own() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (loader, reports) = three_runtimes(dir.path());
    let (_, stderr) = succeed(loader);
    assert_complete(&reports);
    assert_eq!(stderr.matches("\nplugin_alone::alone ").count(), 3, "{stderr}");
}

fn send(signal: &str, pid: u32) {
    let sent = Command::new("kill").args(["-s", signal, &pid.to_string()]).status();
    assert!(sent.expect("`kill` runs").success());
}

#[test]
fn runtimes_answer_signals_together() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (mut loader, reports) = three_runtimes(dir.path());
    loader.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = loader.spawn().expect("the program runs");
    // The program ends when its stdin is closed, and `wait` would close it.
    let _stdin = child.stdin.take();
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    assert!(lines.by_ref().take(3).all(|line| line.is_ok()));

    send("USR1", child.id());
    let deadline = Instant::now() + Duration::from_secs(20);
    while !reports.iter().all(|path| path.exists()) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    assert_complete(&reports);
    reports.iter().for_each(|path| fs::remove_file(path).expect("the report is a file"));

    send("TERM", child.id());
    assert_eq!(child.wait().expect("the program ends").signal(), Some(SIGTERM));
    assert_complete(&reports);
}
