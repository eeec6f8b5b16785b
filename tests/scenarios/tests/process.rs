//! Tests for state of the whole process: its rights, descriptors and signals.
#![allow(unsafe_code)] // a terminal

use std::fs::{self, File, Permissions};
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use gpu_time_sim_nvtx::SimNvtx;

use crate::harness::{is_real, program, scenario};

/// The user `nobody`.
const OTHER_USER: u32 = 65534;
/// The time limit of a program, longer than a report waits for the reader of each of its targets.
const LIMIT: Duration = Duration::from_secs(10);

/// Prepares a program that sends its report to `targets`.
fn command(name: &str, targets: &str) -> Command {
    let mut command = Command::new(program());
    command.arg(name).env("GPU_TIME_REPORT", targets).stdin(Stdio::null());
    command
}

/// Waits for a program that must end soon.
#[track_caller]
fn finish(mut command: Command) -> ExitStatus {
    let mut child = command.spawn().unwrap();
    // Only the program has the other ends of its pipes now.
    drop(command);
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("no end within {LIMIT:?}");
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// A pipe that is full.
struct FullPipe {
    reader: PipeReader,
    writer: PipeWriter,
    /// The pipe's write end again, with non-blocking writes.
    nonblocking: File,
    /// The number of bytes in the pipe when it was filled.
    filled: usize,
}

fn full_pipe() -> FullPipe {
    let (reader, writer) = pipe().unwrap();
    let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
    let mut nonblocking =
        File::options().write(true).custom_flags(libc::O_NONBLOCK).open(path).unwrap();
    let mut filled = 0;
    while let Ok(written) = nonblocking.write(&[b'x'; 4096]) {
        filled += written;
    }
    FullPipe { reader, writer, nonblocking, filled }
}

/// Reads a full pipe late and slowly to its end, and returns the text after its first `filled`
/// bytes. The report takes longer in total than a reader may pause at a time.
fn read_late(mut reader: PipeReader, filled: usize) -> String {
    thread::sleep(Duration::from_millis(300));
    let mut text = Vec::new();
    while reader.by_ref().take(4096).read_to_end(&mut text).unwrap() > 0 {
        thread::sleep(Duration::from_millis(60));
    }
    String::from_utf8(text.split_off(filled)).unwrap()
}

/// Returns both ends of a terminal that accepts only a few thousand more bytes.
fn full_terminal() -> [File; 2] {
    let none = ptr::null_mut();
    let mut ends = [0; 2];
    let [reader, writer] = &mut ends;
    // SAFETY: initialises both descriptors, which nothing else owns.
    let [mut reader, writer] = unsafe {
        assert_eq!(libc::openpty(reader, writer, none, none.cast(), none.cast()), 0);
        ends.map(|end| File::from_raw_fd(end))
    };
    let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
    let mut nonblocking =
        File::options().write(true).custom_flags(libc::O_NONBLOCK).open(path).unwrap();
    while nonblocking.write(&[b'x'; 4096]).is_ok() {}
    // This makes less room than a report needs.
    reader.read_exact(&mut [0; 4096]).unwrap();
    [reader, writer]
}

#[test]
fn full_pipes_do_not_stop_exit() {
    let FullPipe { reader: _reader, writer, .. } = full_pipe();
    let mut stuck = command("process/returns", "table,json:-");
    stuck.stderr(writer.try_clone().unwrap()).stdout(writer);
    assert!(finish(stuck).success());
}

/// A terminal that has room for a byte may block a longer write.
#[test]
fn full_terminal_does_not_stop_exit() {
    let [_reader, writer] = full_terminal();
    let mut stuck = command("process/returns", "table,json:-");
    stuck.stderr(writer.try_clone().unwrap()).stdout(writer);
    assert!(finish(stuck).success());
}

#[test]
fn full_pipes_do_not_stop_signal() {
    let FullPipe { reader: _reader, writer, .. } = full_pipe();
    let mut stuck = command("process/terminated", "table,json:-");
    stuck.stderr(writer.try_clone().unwrap()).stdout(writer);
    assert_eq!(finish(stuck).signal(), Some(libc::SIGTERM));
}

#[test]
fn slow_reader_gets_whole_report() {
    for is_nonblocking in [false, true] {
        let FullPipe { reader, writer, nonblocking, filled } = full_pipe();
        let mut slow = command("process/returns", "json:-");
        slow.stdout(match is_nonblocking {
            true => Stdio::from(nonblocking.try_clone().unwrap()),
            false => writer.try_clone().unwrap().into(),
        });
        drop((nonblocking, writer));
        slow.stderr(Stdio::null());
        let text = thread::spawn(move || read_late(reader, filled));
        assert!(finish(slow).success());
        let report: serde_json::Value = serde_json::from_str(&text.join().unwrap()).unwrap();
        assert_eq!(report["schema"], "gpu-time/1", "non-blocking: {is_nonblocking}");
    }
}

#[test]
fn nonblocking_stderr_loses_nothing() {
    let FullPipe { reader, writer, nonblocking, filled } = full_pipe();
    drop(writer);
    let mut slow = command("process/returns", "table");
    slow.stderr(nonblocking).stdout(Stdio::null());
    let text = thread::spawn(move || read_late(reader, filled));
    assert!(finish(slow).success());
    let text = text.join().unwrap();
    assert!(text.starts_with("gpu-time 0") && text.contains("process::timed "), "{text}");
}

#[test]
fn pipes_without_reader_keep_exit_status() {
    let (_, writer) = pipe().unwrap();
    let mut unread = command("process/no_reader", "table,json:-");
    unread.stderr(writer.try_clone().unwrap()).stdout(writer);
    assert_eq!(finish(unread).code(), Some(7));
}

#[test]
fn file_size_limit_keeps_exit_status() {
    let limited = scenario("process/size_limit", &[]).exits(7).prints_only();
    let run = limited.complains("gpu-time: cannot write the report to `").run();
    assert!(run.stderr.contains("File too large"), "{}", run.stderr);
}

#[test]
fn file_that_received_descriptor_of_stderr_stays_empty() {
    let dir = tempfile::tempdir().unwrap();
    let [data, report] = ["data", "report.json"].map(|name| dir.path().join(name));
    let mut reused = command("process/stderr_reused", &format!("table,json:{}", report.display()));
    reused.arg(&data);
    assert!(finish(reused).success());
    assert_eq!(fs::read_to_string(data).unwrap(), "");
    let report = fs::read_to_string(report).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let [warning] = &report["process"]["warnings"].as_array().unwrap()[..] else {
        panic!("{report}")
    };
    let expected = "no report was written to stderr: the program has closed it";
    assert!(warning.as_str().unwrap().starts_with(expected), "{warning}");
}

/// The descriptors refer to the file at separate positions, so a report would overwrite what the
/// program wrote.
#[test]
fn file_that_received_both_descriptors_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut reused = command("process/streams_reused", "table,json:-");
    reused.arg(&data);
    assert!(finish(reused).success());
    assert_eq!(fs::read_to_string(data).unwrap(), "data");
}

/// Redirects as the shell does for `>` and `>>` with `2>&1`. The report overwrites neither what the
/// file holds nor what the program and the shell write.
#[test]
fn redirected_file_receives_report_after_program() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    for is_appended in [false, true] {
        for target in ["/dev/stdout", "/dev/stderr", "/proc/self/fd/1", path.to_str().unwrap()] {
            fs::write(&path, "before\n").unwrap();
            let mut options = File::options();
            options.append(is_appended).write(true).truncate(!is_appended);
            let mut file = options.open(&path).unwrap();
            let mut redirected = command("process/prints", &format!("csv:{target}"));
            redirected.stdout(file.try_clone().unwrap()).stderr(file.try_clone().unwrap());
            assert!(finish(redirected).success());
            file.write_all(b"after\n").unwrap();
            let text = fs::read_to_string(&path).unwrap();
            let rest = text.strip_prefix(if is_appended { "before\n" } else { "" });
            let lines: Vec<&str> = rest.expect(&text).lines().collect();
            let [tally, header, row, "after"] = lines[..] else { panic!("{target}: {text}") };
            assert!(tally.starts_with('{') && header.starts_with("function,"), "{target}: {text}");
            assert!(row.contains("process::timed"), "{target}: {text}");
        }
    }
}

/// If the runtime took the descriptor, the program's messages to stderr would go to a runtime socket.
#[test]
fn descriptor_of_closed_stderr_stays_free() {
    let output = command("process/stderr_closed", "none").output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains(r#""is_taken":false"#), "{stdout}");
}

/// The table needs no new descriptor, so the runtime prints it in place of the report, which needs one.
#[test]
fn table_without_free_descriptors() {
    let exhausted = scenario("process/no_descriptors", &[]).prints_only();
    let run = exhausted.complains("gpu-time: cannot write the report to `").run();
    assert!(run.stderr.contains("open files"), "{}", run.stderr);
    assert!(run.fact("files") > 10);
}

/// The user who starts a set-user-ID program must not be able to write files with the program's rights.
#[test]
fn secure_program_ignores_variables() {
    let dir = tempfile::tempdir().unwrap();
    let [own, report, ranges] =
        ["program", "report.json", "ranges"].map(|name| dir.path().join(name));
    fs::copy(program(), &own).unwrap();
    if chown(&own, Some(OTHER_USER), None).is_err() {
        return eprintln!("skipped: this user cannot give files away");
    }
    fs::set_permissions(&own, Permissions::from_mode(0o4755)).unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
    let mut command = Command::new(&own);
    command.arg("process/secure").env("GPU_TIME_REPORT", format!("json:{}", report.display()));
    command.env("GPU_TIME_NO_SUCH_VARIABLE", "1").env("GPU_TIME_WARMUP", "9");
    command.env("GPU_TIME_NOTES", "all").env("GPU_TIME_LABEL", "not shown");
    if !is_real() {
        SimNvtx::apply(&mut command, &ranges).unwrap();
    }
    let output = command.output().unwrap();
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    if !stdout.contains(r#""is_secure":true"#) {
        return eprintln!("skipped: this file system does not allow set-user-ID programs");
    }
    assert!(output.status.success(), "{stdout}{stderr}");
    assert!(!report.exists(), "{stderr}");
    assert!(!ranges.exists(), "the library of a tool was loaded");
    assert!(stderr.starts_with("gpu-time 0"), "{stderr}");
    assert!(!stderr.contains("warm-up") && !stderr.contains("not shown"), "{stderr}");
    let is_row = |line: &&str| line.starts_with("scenario::process::timed ");
    let row = stderr.lines().find(is_row).expect("a row");
    // The numbers of calls and samples are equal, so there was no warm-up.
    let counts: Vec<u64> = row.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert_eq!(counts[0], counts[1], "{stderr}");
}

#[test]
fn no_report_is_written_while_off() {
    scenario("process/reports", &[]).reports(1).run();
    scenario("process/reports", &[]).env("GPU_TIME", "off").reports_nothing().run();
}
