//! Tests for plugins that are unloaded while the process continues.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

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

/// Prepares a program that loads three plugins, each with its own runtime.
fn three_runtimes(dir: &Path) -> Command {
    let mut loader = program("loader");
    for number in 1..=3 {
        let copy = dir.join(format!("plugin-{number}.so"));
        fs::copy(plugin("plugin_alone"), &copy).expect("the plugin can be copied");
        loader.arg(copy);
    }
    loader
}

/// Returns the number of tables that have the function of a plugin.
fn tables(stderr: &str) -> usize {
    stderr.matches("\nplugin_alone::alone ").count()
}

#[test]
fn each_runtime_reports_at_exit() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut loader = three_runtimes(dir.path());
    loader.env("GPU_TIME_REPORT", format!("table,json:{}/report.json", dir.path().display()));
    let (_, stderr) = succeed(loader);
    assert_eq!(tables(&stderr), 3, "{stderr}");
    for name in ["report.json", "report.2.json", "report.3.json"] {
        let text = fs::read_to_string(dir.path().join(name)).expect(name);
        let report: Value = serde_json::from_str(&text).expect("the report is JSON");
        assert_eq!(report["sites"][0]["calls"], 1, "{name}");
    }
}

#[test]
fn first_runtime_handles_signals() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut loader = three_runtimes(dir.path());
    loader.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = loader.spawn().expect("the program runs");
    // The program ends when its stdin is closed, and `wait_with_output` would close it.
    let _stdin = child.stdin.take();
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    assert!(lines.by_ref().take(3).all(|line| line.is_ok()));

    let sent = Command::new("kill").args(["-s", "TERM", &child.id().to_string()]).status();
    assert!(sent.expect("`kill` runs").success());
    let Output { status, stderr, .. } = child.wait_with_output().expect("the program ends");
    let stderr = String::from_utf8(stderr).expect("the output is UTF-8");
    assert_eq!((status.signal(), tables(&stderr)), (Some(SIGTERM), 1), "{stderr}");
}
