//! The tool as its users run it.

mod compare;
mod doctor;
mod hostile;
mod made;
mod merge;
mod show;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output};

use gpu_time_report::Snapshot;

/// What came of a run.
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
    let Output { status, stdout, stderr } = command.output().expect("the tool starts");
    let text = |bytes| String::from_utf8(bytes).expect("it says UTF-8");
    Run { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

impl Run {
    /// Its output; nothing was wrong.
    #[track_caller]
    fn fine(self) -> String {
        assert_eq!((self.code, &*self.stderr), (Some(0), ""), "{}", self.stdout);
        self.stdout
    }

    /// The one line that says what was wrong.
    #[track_caller]
    fn refused(self) -> String {
        assert_eq!((self.code, &*self.stdout), (Some(2), ""), "{}", self.stderr);
        let line = self.stderr.strip_suffix('\n').expect("a line");
        assert!(line.chars().all(|c| !c.is_control()), "{line:?}");
        line.strip_prefix("gpu-time: ").expect("it says who says it").to_owned()
    }
}

/// A folder of its own for each test, gone at its end.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("it is written");
        path
    }

    fn report(&self, name: &str, report: &Snapshot) -> PathBuf {
        self.write(name, report.to_json())
    }
}

/// A report of the first version that wrote any.
fn first() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reports/first.json"))
}
