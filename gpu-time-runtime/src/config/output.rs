//! Writes reports to their targets.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::base::console::{self, say};
use crate::config::targets::{Format, Sink, Target, with_process_id};
use gpu_time_report::{Snapshot, Terminal};

/// The longest wait for the reader of a full pipe, because the process is about to end.
const PATIENCE: Duration = Duration::from_secs(1);

/// Renders the trace from a snapshot. The second value describes what is missing from the trace, if
/// anything.
pub type Trace = fn(&Snapshot) -> (String, Option<String>);

/// Writes the report to every target. If a target fails, prints the error and the table to stderr,
/// so that the results are not lost.
pub fn deliver(snapshot: &Snapshot, targets: &[Target], trace: Trace) {
    let mut table_is_due = false;
    for target in targets {
        match target.write(snapshot, trace) {
            Ok(note) => note.iter().for_each(|note| say(note)),
            Err(error) => {
                say(&format!("cannot write the report to {}: {error}", target.sink));
                table_is_due |= !targets.contains(&Target::TABLE);
            }
        }
    }
    if table_is_due {
        // If stderr cannot be written, there is nowhere else to report the error.
        let _ = Target::TABLE.write(snapshot, trace);
    }
}

impl Target {
    /// Renders and writes the report. Returns a note about what the rendering lacks, if anything.
    fn write(&self, snapshot: &Snapshot, trace: Trace) -> io::Result<Option<String>> {
        let (text, note) = match self.format {
            Format::Table => (snapshot.to_table(self.sink.terminal()), None),
            Format::Json => (snapshot.to_json() + "\n", None),
            Format::Csv => (snapshot.to_csv(), None),
            #[cfg(feature = "html")]
            Format::Html => (snapshot.to_html(), None),
            Format::Trace => trace(snapshot),
        };
        self.sink.write(text.as_bytes()).map(|()| note)
    }
}

impl Sink {
    /// Returns the width and the styles available for the table.
    fn terminal(&self) -> Terminal {
        match self {
            Sink::Stderr => Terminal::stderr(),
            Sink::Stdout => Terminal::stdout(),
            Sink::File(_) => Terminal::default(),
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            // Duplicates bypass the locks in `std`: another thread may hold one forever, and the
            // process must still end.
            Sink::Stderr => console::unlocked(io::stderr())?.write_all(bytes),
            Sink::Stdout => console::unlocked(io::stdout())?.write_all(bytes),
            Sink::File(path) => write_file(&with_process_id(path), bytes),
        }
    }
}

impl fmt::Display for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sink::Stderr => f.write_str("stderr"),
            Sink::Stdout => f.write_str("stdout"),
            Sink::File(path) => {
                write!(f, "`{}`", with_process_id(path).to_string_lossy().escape_debug())
            }
        }
    }
}

/// Writes a file atomically: writes a temporary file in the same directory, then renames it.
pub fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static WRITTEN: AtomicU32 = AtomicU32::new(0);
    // A rename would replace a link instead of its target.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match fs::metadata(&path) {
        Ok(old) if old.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(old) if !old.is_file() => return write_special(&path, bytes),
        _ => {}
    }
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    let nth = WRITTEN.fetch_add(1, Relaxed);
    name.push(format!(".{}-{nth}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    // A killed process with the same id may have left a temporary file.
    let _ = fs::remove_file(&temporary);
    let written = File::create_new(&temporary)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&temporary, &path));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Writes to a pipe or a device. Fails if a pipe has no reader or stays full.
fn write_special(path: &Path, mut bytes: &[u8]) -> io::Result<()> {
    let mut options = File::options();
    options.write(true);
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let mut file = options.open(path)?;
    let mut last_progress = Instant::now();
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = bytes.get(written..).unwrap_or_default();
                last_progress = Instant::now();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock
                    && last_progress.elapsed() < PATIENCE =>
            {
                thread::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use gpu_time_report as report;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use std::process::Stdio;
    use std::time::UNIX_EPOCH;

    fn no_trace(_: &Snapshot) -> (String, Option<String>) {
        (String::new(), None)
    }

    fn snapshot() -> Snapshot {
        let wall = Duration::from_millis(1234);
        let process = report::Process::new("app".to_owned(), 1, UNIX_EPOCH, wall, None);
        Snapshot::new(process, vec![report::Device::host()], Vec::new())
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn file_is_replaced_without_leftovers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        for text in ["a long first one", "second"] {
            write_file(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(names(folder.path()), ["report.json"]);
    }

    #[test]
    fn link_stays_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        symlink(&file, &link).unwrap();
        write_file(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }

    #[test]
    fn device_is_not_replaced() {
        write_file(Path::new("/dev/null"), b"gone").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    fn fifo(folder: &Path) -> PathBuf {
        let path = folder.join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        path
    }

    #[test]
    fn pipe_without_reader_fails_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let error = write_file(&fifo(folder.path()), b"x").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENXIO));
    }

    #[test]
    fn slow_reader_gets_more_than_pipe_capacity() {
        let folder = tempfile::tempdir().unwrap();
        let path = fifo(folder.path());
        // Opening a pipe for both reading and writing does not wait for the other end.
        let keep = File::options().read(true).write(true).open(&path).unwrap();
        let reader = thread::spawn({
            let mut pipe = File::open(&path).unwrap();
            move || {
                thread::sleep(Duration::from_millis(50));
                let mut text = Vec::new();
                io::Read::read_to_end(&mut pipe, &mut text).unwrap();
                text
            }
        });
        let text: Vec<u8> = (0..300_000u32).map(|i| i as u8).collect();
        write_file(&path, &text).unwrap();
        drop(keep);
        assert!(reader.join().unwrap() == text);
    }

    #[test]
    fn full_pipe_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = fifo(folder.path());
        let _stalled = File::options().read(true).write(true).open(&path).unwrap();
        let error = write_file(&path, &vec![0; 4 << 20]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn full_disk_fails() {
        assert_eq!(
            write_file(Path::new("/dev/full"), b"x").unwrap_err().kind(),
            io::ErrorKind::StorageFull
        );
    }

    #[test]
    fn failed_write_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            write_file(folder.path(), b"x").unwrap_err().kind(),
            io::ErrorKind::IsADirectory
        );
        let missing = folder.path().join("missing").join("report");
        assert_eq!(write_file(&missing, b"x").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(names(folder.path()), [""; 0]);
    }

    #[test]
    fn targets_get_their_renderings() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let target = |format, name: &str| Target { format, sink: Sink::File(path(name)) };
        let snapshot = snapshot();
        deliver(
            &snapshot,
            &[
                target(Format::Table, "t"),
                target(Format::Json, "%p.json"),
                target(Format::Csv, "c"),
            ],
            no_trace,
        );
        let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
        assert_eq!(read("t"), snapshot.to_string());
        assert_eq!(read(&format!("{}.json", std::process::id())), snapshot.to_json() + "\n");
        assert_eq!(read("c"), snapshot.to_csv());
    }

    /// The test runs itself as a child process, because the report bypasses the test harness's
    /// capture.
    #[test]
    fn stderr_locked_falls_back_to_table() {
        const CHILD: &str = "GPU_TIME_TEST_CHILD";
        let target = Target { format: Format::Json, sink: Sink::File("/missing/%p.json".into()) };
        if std::env::var_os(CHILD).is_some() {
            let (locked, when_locked) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                let _lock = std::io::stderr().lock();
                locked.send(()).unwrap();
                std::thread::park();
            });
            when_locked.recv().unwrap();
            return deliver(&snapshot(), &[target.clone(), target], no_trace);
        }
        let name = std::thread::current().name().unwrap().to_owned();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", &name]).env(CHILD, "1");
        let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let line = format!(
            "gpu-time: cannot write the report to `/missing/{}.json`: \
             No such file or directory (os error 2)\n",
            child.id()
        );
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert_eq!(
            String::from_utf8(output.stderr).unwrap(),
            format!("{line}{line}{}", snapshot())
        );
    }
}
