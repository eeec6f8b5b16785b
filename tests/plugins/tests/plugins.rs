//! Plugins that are unloaded while the process goes on.

use std::path::PathBuf;
use std::process::{Command, Output};

/// Returns the path of an example of this package, which `cargo test` builds before the tests.
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

/// Prepares an example as a program that gpu-time is not configured for.
fn program(name: &str) -> Command {
    let mut command = Command::new(example(name));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GPU_TIME") {
            command.env_remove(name);
        }
    }
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

/// The threads of a plugin may begin to run after the program has unloaded it.
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
