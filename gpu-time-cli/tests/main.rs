//! Tests that run the tool as a command.

mod ab;
mod calibrate;
mod compare;
mod doctor;
mod fixtures;
mod formats;
mod hostile;
mod merge;
mod opened_calls;
mod show;
mod terminal;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output};

use gpu_time_report::Snapshot;

/// The result of one run.
struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

const TOOL: &str = env!("CARGO_BIN_EXE_gpu-time");

fn tool(arguments: &[impl AsRef<OsStr>]) -> Run {
    run(Command::new(TOOL).args(arguments))
}

fn run(command: &mut Command) -> Run {
    let Output { status, stdout, stderr } = command.output().expect("run the tool");
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    Run { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

impl Run {
    /// Returns stdout. Panics if the run failed or wrote to stderr.
    #[track_caller]
    fn success(self) -> String {
        assert_eq!((self.code, &*self.stderr), (Some(0), ""), "{}", self.stdout);
        self.stdout
    }

    /// Returns the error message. Panics unless the run refused its input with exactly one line.
    #[track_caller]
    fn refusal(self) -> String {
        assert_eq!((self.code, &*self.stdout), (Some(2), ""), "{}", self.stderr);
        let line = self.stderr.strip_suffix('\n').expect("stderr ends with a line break");
        assert!(line.chars().all(|c| !c.is_control()), "{line:?}");
        line.strip_prefix("gpu-time: ").expect("the message names the tool").to_owned()
    }
}

/// A temporary folder of one test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().expect("create a temporary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("write the file");
        path
    }

    fn report(&self, name: &str, report: &Snapshot) -> PathBuf {
        self.write(name, report.to_json())
    }
}

/// Returns a report in a file.
fn stored() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reports/app.json"))
}
