//! Trace events as JSON: what is written of each, and the file that they make.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

/// One trace event. The letters are the format's.
#[derive(Default, Serialize)]
pub(super) struct Event<'a> {
    pub ph: &'static str,
    pub name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub cat: &'static str,
    pub pid: u32,
    pub tid: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ts: Option<Micros>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dur: Option<Micros>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// To what the end of an arrow is bound: `e` for the slice around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bp: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Args<'a>>,
}

/// Nanoseconds, written as microseconds.
pub(super) struct Micros(pub u64);

impl Serialize for Micros {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0 as f64 / 1e3)
    }
}

/// What an event says of itself.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Args<'a> {
    Name {
        name: Cow<'a, str>,
    },
    SortIndex {
        sort_index: usize,
    },
    Call {
        call: u64,
        file: &'static str,
        line: u32,
        /// It had not returned when the trace was written, and is shown up to then.
        #[serde(skip_serializing_if = "is_false")]
        running: bool,
    },
    Slice {
        call: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        launch: Option<u32>,
        line: u32,
        cache: &'static str,
        feeding: &'static str,
        raw_ns: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        net_ns: Option<f64>,
        /// How far its place in the host's time may be off.
        alignment_error_ns: u64,
        #[serde(skip_serializing_if = "is_false")]
        queued: bool,
        #[serde(skip_serializing_if = "is_false")]
        at_floor: bool,
        #[serde(skip_serializing_if = "is_false")]
        nested: bool,
        #[serde(skip_serializing_if = "is_false")]
        tracked: bool,
    },
}

fn is_false(value: &bool) -> bool {
    !value
}

/// The file, event by event.
pub(super) struct File {
    text: Vec<u8>,
    /// The host's time at 0 of the trace, so that its times keep their nanoseconds as numbers.
    origin_ns: u64,
}

impl File {
    /// A file without events that says this of itself.
    pub fn new(origin_ns: u64, other_data: &impl Serialize) -> File {
        let mut file = File { text: Vec::new(), origin_ns };
        file.text.extend_from_slice(b"{\"displayTimeUnit\":\"ns\",\"otherData\":");
        file.append(other_data);
        file.text.extend_from_slice(b",\"traceEvents\":[");
        file
    }

    /// The whole file.
    pub fn finish(mut self) -> String {
        self.text.extend_from_slice(b"\n]}\n");
        String::from_utf8(self.text).unwrap_or_default()
    }

    fn append(&mut self, value: &impl Serialize) {
        // Strings and numbers into memory: nothing here can fail.
        _ = serde_json::to_writer(&mut self.text, value);
    }

    /// Adds an event on a line of its own.
    pub fn push(&mut self, event: &Event<'_>) {
        let is_first = self.text.ends_with(b"[");
        self.text.extend_from_slice(if is_first { b"\n" } else { b",\n" });
        self.append(event);
    }

    /// The trace's time at this time of the host's.
    pub fn at(&self, ns: u64) -> Option<Micros> {
        Some(Micros(ns.saturating_sub(self.origin_ns)))
    }

    /// Names a process, and puts it behind those with a smaller index.
    pub fn process(&mut self, pid: u32, name: &str, sort_index: usize) {
        self.metadata(pid, 0, "process_name", Args::Name { name: name.into() });
        self.metadata(pid, 0, "process_sort_index", Args::SortIndex { sort_index });
    }

    /// Names so many rows of a process, behind the `before` that it has.
    pub fn rows(&mut self, pid: u32, before: usize, name: &str, rows: usize) {
        for nth in 0..rows {
            let tid = before + 1 + nth;
            let name = match nth {
                0 => Cow::from(name),
                nth => format!("{name} (overlapping {nth})").into(),
            };
            self.metadata(pid, tid, "thread_name", Args::Name { name });
            self.metadata(pid, tid, "thread_sort_index", Args::SortIndex { sort_index: tid });
        }
    }

    fn metadata(&mut self, pid: u32, tid: usize, name: &'static str, args: Args<'_>) {
        let args = Some(args);
        self.push(&Event { ph: "M", name: name.into(), pid, tid, args, ..Event::default() });
    }
}
