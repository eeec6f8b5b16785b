//! What happened under the simulated driver, as JSON lines: written by the model, read by tests.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One line of a trace file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line {
    /// A driver call, in the order in which the calls took the model's lock.
    Call(Call),
    /// A command of a device, written when its times became known.
    Command(Command),
    /// Something that a test may want to know of.
    Note(Note),
}

/// A driver call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Counts the calls from 1.
    pub seq: u64,
    /// Counts the threads in the order of their first call, from 1.
    pub thread: u32,
    /// The exported function.
    pub name: String,
    /// Its arguments by name (numbers and strings; no output pointers), and what it found out:
    /// `start_record`, `stop_record` and `elapsed_ns` of an elapsed-time call, `record` of a record.
    pub args: BTreeMap<String, Value>,
    /// The result code.
    pub result: i32,
    /// Whether the failure was scripted.
    pub scripted: bool,
    /// Virtual host time at entry.
    pub before_ns: u64,
    /// Virtual host time on return.
    pub after_ns: u64,
}

/// A command that a stream has run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// The handle of the stream; of the legacy and the per-thread stream one of the model's own.
    pub stream: u64,
    /// The id of the stream's context, as `cuCtxGetId` answers it.
    pub context: u64,
    /// `kernel`, `record`, `wait`, `memset`, `copy`, `free` or `host`.
    pub kind: String,
    /// The kernel's name, or a word that says more about the kind.
    pub name: String,
    /// Virtual host time at which the call that enqueued it returned.
    pub enqueued_ns: u64,
    /// Device time at which the stream came to it.
    pub start_ns: u64,
    /// Device time at which the stream went on; for a record, the event's time.
    pub end_ns: u64,
    /// Its length as CUPTI would date it; zero for a record or a wait.
    pub duration_ns: u64,
    /// For a record, the handle of the event.
    pub event: Option<u64>,
    /// For a record, which one it was: records are counted from 1 over the process.
    pub record: Option<u64>,
    /// Whether it ran as a node of a graph.
    pub graph: bool,
}

/// An occurrence that is neither a call nor a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// `forked_call`, `exited_call`, `use_after_destroy`, `queue_full`, `hold_expired`,
    /// `hold_released`, `capture_invalidated`, `illegal_address`, `hang` or `context_gone`.
    pub kind: String,
    /// The function, or the handle, that it is about.
    pub name: String,
    /// Virtual host time (0 where the model may not be asked).
    pub at_ns: u64,
}

/// A trace that was read back.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// All lines in order.
    pub lines: Vec<Line>,
}

/// An elapsed-time call that succeeded, and what it should have answered.
#[derive(Clone, Copy, Debug)]
pub struct Elapsed<'a> {
    /// The record that the start event stood for.
    pub start: &'a Command,
    /// The record that the stop event stood for.
    pub stop: &'a Command,
    /// What the call answered, in nanoseconds.
    pub reported_ns: i64,
}

impl Elapsed<'_> {
    /// The difference of the two records' times.
    pub fn expected_ns(&self) -> i64 {
        self.stop.end_ns as i64 - self.start.end_ns as i64
    }

    /// What runs, or ran, on the stop's stream between the two records.
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
    /// Reads a trace file. A last line that was cut off by the end of the process is left out.
    pub fn read(path: impl AsRef<Path>) -> io::Result<Self> {
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

    /// The driver calls.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.lines.iter().filter_map(|line| match line {
            Line::Call(call) => Some(call),
            _ => None,
        })
    }

    /// The calls of one function.
    pub fn calls_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Call> {
        self.calls().filter(move |call| call.name == name)
    }

    /// The device's commands.
    pub fn commands(&self) -> impl Iterator<Item = &Command> {
        self.lines.iter().filter_map(|line| match line {
            Line::Command(command) => Some(command),
            _ => None,
        })
    }

    /// The kernels of one name.
    pub fn kernels<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Command> {
        self.commands().filter(move |command| command.kind == "kernel" && command.name == name)
    }

    /// The notes of one kind.
    pub fn notes<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Note> {
        self.lines.iter().filter_map(move |line| match line {
            Line::Note(note) if note.kind == kind => Some(note),
            _ => None,
        })
    }

    /// Every elapsed-time call that succeeded, in order: the raw value of every sample.
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

/// The file behind the trace, for those who may not take the model's lock.
static FILE: AtomicI32 = AtomicI32::new(-1);

/// Writes the trace, if one was asked for. Each line is one `write`, so that a process that aborts
/// loses nothing.
#[derive(Default)]
pub(crate) struct Tracer {
    file: Option<File>,
    commands_only: bool,
    calls: u64,
}

impl Tracer {
    /// Appends to `path`, where `%p` stands for the process id.
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

    /// Whether calls are wanted, with their arguments.
    pub fn wants_calls(&self) -> bool {
        self.file.is_some() && !self.commands_only
    }

    /// Whether commands and notes are wanted.
    pub fn wants_commands(&self) -> bool {
        self.file.is_some()
    }

    /// Writes a call, and numbers it.
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
            let mut text = serde_json::to_string(line).expect("a line is plain data");
            text.push('\n');
            // A full disk must not change what the program under test sees; its reader will notice.
            let _ = file.write_all(text.as_bytes());
        }
    }
}

/// Notes a call that may not touch the model: in a forked child, or after the driver's own exit.
pub(crate) fn note_without_model(kind: &str, name: &str) {
    let file = FILE.load(Ordering::Relaxed);
    if file < 0 {
        return;
    }
    let text =
        format!("{{\"type\":\"note\",\"kind\":\"{kind}\",\"name\":\"{name}\",\"at_ns\":0}}\n");
    // SAFETY: the buffer is valid for its length; a stale descriptor only makes the write fail.
    let _ = unsafe { libc::write(file, text.as_ptr().cast(), text.len()) };
}
