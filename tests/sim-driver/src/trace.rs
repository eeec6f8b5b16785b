//! The trace from a process running with the simulated driver: driver calls, device commands and
//! notes as JSON lines, written by the model and read by tests.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One line in a trace file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line {
    /// A driver call. Calls are in the order in which they took the model's lock.
    Call(Call),
    /// A device command, written when its times became known.
    Command(Command),
    /// An event that is neither a call nor a command.
    Note(Note),
}

/// A driver call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Number of the call, counted from 1.
    pub seq: u64,
    /// The number by which an observer identifies the call and the commands that it enqueues.
    pub correlation: u32,
    /// Number of the thread. Threads are numbered from 1, in the order of their first calls.
    pub thread: u32,
    /// Name of the exported function.
    pub name: String,
    /// Arguments by name (numbers and strings, but not output pointers) and additional results:
    /// `start_record`, `stop_record` and `elapsed_ns` for an elapsed-time call, `record` for a
    /// record.
    pub args: BTreeMap<String, Value>,
    /// Result code.
    pub result: i32,
    /// The failure was scripted.
    pub scripted: bool,
    /// Virtual host time at entry.
    pub before_ns: u64,
    /// Virtual host time on return.
    pub after_ns: u64,
}

/// A command executed by a stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// Handle of the stream. The legacy and per-thread streams have internal handles here.
    pub stream: u64,
    /// Id of the stream's context, as returned by `cuCtxGetId`.
    pub context: u64,
    /// `kernel`, `record`, `wait`, `memset`, `copy`, `free`, `host`, or `nothing` for a captured free.
    pub kind: String,
    /// Name of the kernel, or the direction of a copy.
    pub name: String,
    /// Virtual host time at which the enqueueing call returned.
    pub enqueued_ns: u64,
    /// Device time at which the stream reached the command.
    pub start_ns: u64,
    /// Device time at which the stream continued; for a record, the event's time.
    pub end_ns: u64,
    /// Length as CUPTI would report it; 0 for a record or a wait.
    pub duration_ns: u64,
    /// Handle of the event, for a record.
    pub event: Option<u64>,
    /// For a record, its number, counted from 1 over the process.
    pub record: Option<u64>,
    /// The command ran as a graph node.
    pub graph: bool,
    /// Id of the node in the executable graph, or 0.
    #[serde(default, skip_serializing_if = "is_default")]
    pub graph_node: u64,
    /// Correlation number of the call that enqueued the command.
    pub correlation: u32,
    /// Id of the stream, as returned by `cuStreamGetId`.
    pub stream_id: u64,
    /// Ordinal of the device.
    #[serde(default, skip_serializing_if = "is_default")]
    pub device: u32,
    /// Number of blocks of a kernel in each dimension.
    #[serde(default, skip_serializing_if = "is_default")]
    pub grid: [u32; 3],
    /// Number of threads in a block of a kernel, in each dimension.
    #[serde(default, skip_serializing_if = "is_default")]
    pub block: [u32; 3],
    /// CUPTI had been asked to record the command when it was enqueued.
    #[serde(default, skip_serializing_if = "is_default")]
    pub recorded: bool,
}

/// Returns `true` for values that are left out of the trace, to keep it short: most commands have
/// only a few of these fields.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A noteworthy occurrence, such as a full queue or use of a destroyed handle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// `forked_call`, `exited_call`, `use_after_destroy`, `queue_full`, `hold_expired`,
    /// `hold_released`, `capture_invalidated`, `illegal_address`, `hang` or `context_gone`.
    pub kind: String,
    /// The function or handle concerned.
    pub name: String,
    /// Virtual host time, or 0 if the model must not be locked.
    pub at_ns: u64,
}

/// A trace read from a file.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// All lines in order.
    pub lines: Vec<Line>,
}

/// A successful elapsed-time call, with the two records that determine its result.
#[derive(Clone, Copy, Debug)]
pub struct Elapsed<'a> {
    /// Record of the start event.
    pub start: &'a Command,
    /// Record of the stop event.
    pub stop: &'a Command,
    /// Result of the call, in nanoseconds.
    pub reported_ns: i64,
}

impl Elapsed<'_> {
    /// Returns the difference between the two records' times.
    pub fn expected_ns(&self) -> i64 {
        self.stop.end_ns as i64 - self.start.end_ns as i64
    }

    /// Returns the commands on the stop's stream between the two records.
    pub fn between<'a>(&self, trace: &'a Trace) -> Vec<&'a Command> {
        let (start, stop) = (self.start, self.stop);
        trace
            .commands()
            .filter(|c| c.stream == stop.stream && c.context == stop.context)
            .filter(|c| c.start_ns >= start.end_ns && c.end_ns <= stop.start_ns)
            .collect()
    }
}

impl Trace {
    /// Reads a trace file. Ignores a last line that was cut off when the process ended.
    // Not generic, so that the parser is compiled with this crate, which is always optimised.
    pub fn read(path: &Path) -> io::Result<Self> {
        let text = std::fs::read_to_string(path)?;
        let mut lines = Vec::new();
        for line in text.split_inclusive('\n') {
            match serde_json::from_str(line) {
                Ok(line) => lines.push(line),
                Err(_) if !line.ends_with('\n') => break,
                Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
            }
        }
        Ok(Self { lines })
    }

    /// Returns the driver calls.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.lines.iter().filter_map(|line| match line {
            Line::Call(call) => Some(call),
            _ => None,
        })
    }

    /// Returns the calls of one function.
    pub fn calls_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Call> {
        self.calls().filter(move |call| call.name == name)
    }

    /// Returns the device commands.
    pub fn commands(&self) -> impl Iterator<Item = &Command> {
        self.lines.iter().filter_map(|line| match line {
            Line::Command(command) => Some(command),
            _ => None,
        })
    }

    /// Returns the commands that CUPTI had been asked to record.
    pub fn recorded(&self) -> impl Iterator<Item = &Command> {
        self.commands().filter(|command| command.recorded)
    }

    /// Returns the kernels with this name.
    pub fn kernels<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Command> {
        self.commands().filter(move |command| command.kind == "kernel" && command.name == name)
    }

    /// Returns the notes of one kind.
    pub fn notes<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Note> {
        self.lines.iter().filter_map(move |line| match line {
            Line::Note(note) if note.kind == kind => Some(note),
            _ => None,
        })
    }

    /// Returns the successful elapsed-time calls in order. They contain the raw value of every
    /// sample.
    pub fn elapsed(&self) -> Vec<Elapsed<'_>> {
        let records: BTreeMap<u64, &Command> =
            self.commands().filter_map(|c| Some((c.record?, c))).collect();
        self.calls()
            .filter(|call| call.name.starts_with("cuEventElapsedTime") && call.result == 0)
            .filter_map(|call| {
                let number = |name: &str| call.args.get(name);
                Some(Elapsed {
                    start: records.get(&number("start_record")?.as_u64()?)?,
                    stop: records.get(&number("stop_record")?.as_u64()?)?,
                    reported_ns: number("elapsed_ns")?.as_i64()?,
                })
            })
            .collect()
    }
}

/// The trace file's descriptor, for code that must not take the model's lock.
static FILE: AtomicI32 = AtomicI32::new(-1);

/// The trace writer, if enabled. Each line is written with a single `write`, so that an abort does
/// not lose any.
#[derive(Default)]
pub(crate) struct Tracer {
    file: Option<File>,
    commands_only: bool,
    calls: u64,
}

impl Tracer {
    /// Opens `path` for appending, with `%p` replaced by the process id.
    pub fn open(path: &str, commands_only: bool) -> Result<Self, String> {
        let path = path.replace("%p", &std::process::id().to_string());
        let file = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(|error| format!("cannot open the trace `{path}`: {error}"))?;
        FILE.store(file.as_raw_fd(), Ordering::Relaxed);
        Ok(Self { file: Some(file), commands_only, calls: 0 })
    }

    /// Returns `true` if the trace includes calls.
    pub fn wants_calls(&self) -> bool {
        self.file.is_some() && !self.commands_only
    }

    /// Returns `true` if the trace is enabled.
    pub fn wants_commands(&self) -> bool {
        self.file.is_some()
    }

    /// Writes a call and assigns its number.
    pub fn call(&mut self, mut call: Call) {
        self.calls += 1;
        call.seq = self.calls;
        self.write(&Line::Call(call));
    }

    /// Writes a command.
    pub fn command(&mut self, command: Command) {
        self.write(&Line::Command(command));
    }

    /// Writes a note.
    pub fn note(&mut self, kind: &str, name: impl Into<String>, at_ns: u64) {
        self.write(&Line::Note(Note { kind: kind.to_owned(), name: name.into(), at_ns }));
    }

    fn write(&mut self, line: &Line) {
        if let Some(file) = &mut self.file {
            let mut text = serde_json::to_string(line).expect("a trace line always serializes");
            text.push('\n');
            // A full disk must not affect the program under test. The test that reads the trace
            // will fail.
            let _ = file.write_all(text.as_bytes());
        }
    }
}

/// Writes a note about a call that must not lock the model: in a forked child, or after the
/// driver's exit handler.
pub(crate) fn note_without_model(kind: &str, name: &str) {
    let file = FILE.load(Ordering::Relaxed);
    if file < 0 {
        return;
    }
    let text =
        format!("{{\"type\":\"note\",\"kind\":\"{kind}\",\"name\":\"{name}\",\"at_ns\":0}}\n");
    // SAFETY: the buffer is valid for its length. With a stale descriptor, the write fails.
    let _ = unsafe { libc::write(file, text.as_ptr().cast(), text.len()) };
}
