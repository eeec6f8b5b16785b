//! One run of a program, and its report.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use gpu_time_report::Snapshot;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::input;
use crate::merge;
use crate::message::Failure;

/// The interval at which a running program is polled.
const POLL: Duration = Duration::from_millis(5);
/// The time that a program has to exit after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// The number of bytes at the end of stderr that are searched for its last line.
const TAIL: u64 = 4096;

/// A program with its arguments, and the limits on the time of its runs.
pub struct Program<'a> {
    pub path: &'a Path,
    pub arguments: &'a [OsString],
    /// The maximum duration of a run.
    pub timeout: Duration,
    /// The time at which the experiment ends.
    pub end: Instant,
}

/// The reason why an experiment ends.
pub enum Stop {
    /// Every series has a verdict.
    Decided,
    /// The time or the number of runs is used up.
    Limit,
    /// The user asked to stop.
    Interrupted,
    /// A run gave no report.
    Failed(Failure),
}

impl Program<'_> {
    /// Runs the program and returns its report, merged if several of its processes wrote one. Ends
    /// the program at the limit or on an interrupt, and always ends the processes that it started.
    pub fn run(&self, interrupted: &AtomicBool) -> Result<Snapshot, Stop> {
        let name = self.path.display();
        let failed = |what: String| Stop::Failed(format!("`{name}` {what}"));
        let cannot = |what: &str, error: io::Error| failed(format!("{what}: {error}"));
        // Other users cannot enter this folder. A process that leaves the group cannot write its
        // report once the folder is gone, so the next run cannot mistake that report for its own.
        let folder = tempfile::tempdir()
            .map_err(|error| cannot("cannot be given a temporary folder", error))?;
        let folder = folder.path();
        let target = target(folder).map_err(Stop::Failed)?;
        let stderr = folder.join("stderr");
        let log = File::create(&stderr).map_err(|error| cannot("cannot be run", error))?;
        let mut command = Command::new(self.path);
        command
            .args(self.arguments)
            .env("GPU_TIME_REPORT", target)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            // A process group of its own, which is used to end all processes that the program
            // starts.
            .process_group(0);
        let mut child = command.spawn().map_err(|error| cannot("cannot be run", error))?;
        let started = Instant::now();
        let stop = loop {
            if has_exited(&child) {
                break None;
            }
            if interrupted.load(Relaxed) {
                break Some(Stop::Interrupted);
            }
            if Instant::now() > self.end {
                break Some(Stop::Limit);
            }
            if started.elapsed() > self.timeout {
                let seconds = self.timeout.as_secs_f64();
                break Some(failed(format!(
                    "did not end within {seconds} s and was ended: see --timeout"
                )));
            }
            thread::sleep(POLL);
        };
        // Processes that the program left behind would disturb the next run.
        let status = end(&mut child);
        if let Some(stop) = stop {
            return Err(stop);
        }
        let status = status.map_err(|error| cannot("cannot be waited for", error))?;
        // The terminal also sent the signal to the program, which may have handled it and exited.
        if interrupted.load(Relaxed) {
            return Err(Stop::Interrupted);
        }
        let last_line = last_line(&stderr);
        let reports = reports(folder).map_err(|error| cannot("left unreadable files", error))?;
        if !status.success() {
            return Err(failed(ended(status, last_line)));
        }
        let report = match &*reports {
            [] => {
                let why = "wrote no report: it must be built with the feature `enabled` of gpu-time and call a \
                           timed function, and GPU_TIME must not be `off`";
                return Err(failed(why.to_owned()));
            }
            [file] => input::report(file),
            files => merge::files(files),
        };
        report.map_err(|why| failed(format!("wrote an unusable report: {why}")))
    }
}

/// Returns the value of GPU_TIME_REPORT for reports in this folder. Each of the program's processes replaces
/// `%p` with its own id.
fn target(folder: &Path) -> Result<String, Failure> {
    let path = folder.to_str().ok_or_else(|| {
        let folder = folder.display();
        format!(
            "reports cannot be written to `{folder}`: set TMPDIR to a folder whose path is UTF-8"
        )
    })?;
    Ok(format!("json:{}/%p.json", path.replace(',', ",,").replace('%', "%%")))
}

/// Returns `true` if a program has exited. Does not reap it, so that its process id stays its own.
fn has_exited(child: &Child) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(Pid::from_child(child)), options).is_ok_and(|status| status.is_some())
}

/// Asks a program to exit if it still runs, kills what is left of its group, and reaps the program.
fn end(child: &mut Child) -> io::Result<ExitStatus> {
    let group = Pid::from_child(child);
    _ = kill_process_group(group, Signal::TERM);
    let asked = Instant::now();
    while asked.elapsed() < GRACE && !has_exited(child) {
        thread::sleep(POLL);
    }
    _ = kill_process_group(group, Signal::KILL);
    child.wait()
}

fn ended(status: ExitStatus, last_line: Option<String>) -> String {
    // A status reads `exit status: 3`, or `signal: 9 (SIGKILL)`.
    let said = last_line.map(|line| format!(": {line}")).unwrap_or_default();
    format!("failed with {status}{said}")
}

/// Returns the last line that is not empty.
fn last_line(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

/// Returns the paths of the reports in the folder.
fn reports(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let files = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut files = files.collect::<io::Result<Vec<_>>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    Ok(files)
}
