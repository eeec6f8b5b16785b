//! Trace events as JSON, and the trace file.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use crate::collect::trace::layout::Interval;

/// A trace event, with the field names used in the file format.
#[derive(Default, Serialize)]
pub(super) struct TraceEvent<'a> {
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
    /// The binding point of an arrow's end: `e` for the enclosing slice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bp: Option<&'static str>,
    /// The extent of an instant: `t` for the row of a thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub s: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<EventArgs<'a>>,
}

/// A time in nanoseconds, serialized in microseconds.
pub(super) struct Micros(pub u64);

impl Serialize for Micros {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0 as f64 / 1e3)
    }
}

/// The arguments of an event.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum EventArgs<'a> {
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
        /// The call had not returned when the trace was written, so it is shown as ending at that
        /// time.
        #[serde(skip_serializing_if = "is_false")]
        running: bool,
    },
    Warmup {
        file: &'static str,
        line: u32,
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
        /// The maximum error of the position on the host's time axis.
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
    /// A flush, a hold, or both. It is shown from the time at which the host enqueued it or the
    /// preceding bracket ended, and may in fact begin later.
    Preparation {
        call: u64,
        function: &'static str,
    },
    /// A kernel, copy or memset.
    Work {
        call: u64,
        /// The name of the function that the work is attributed to.
        function: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        grid: Option<[u32; 3]>,
        #[serde(skip_serializing_if = "Option::is_none")]
        block: Option<[u32; 3]>,
        /// The work ran on a different stream from the function's own.
        #[serde(skip_serializing_if = "is_false")]
        elsewhere: bool,
        /// The maximum error of the conversion from CUPTI's clock.
        alignment_error_ns: u64,
    },
}

fn is_false(value: &bool) -> bool {
    !value
}

/// A trace file in memory.
pub(super) struct TraceFile {
    text: Vec<u8>,
    /// The host time at the trace's time 0. Relative times keep nanosecond precision as JSON
    /// numbers.
    origin_ns: u64,
}

impl TraceFile {
    /// Creates a file without events.
    pub fn new(origin_ns: u64, other_data: &impl Serialize) -> TraceFile {
        let mut file = TraceFile { text: Vec::new(), origin_ns };
        file.text.extend_from_slice(b"{\"displayTimeUnit\":\"ns\",\"otherData\":");
        file.append(other_data);
        file.text.extend_from_slice(b",\"traceEvents\":[");
        file
    }

    /// Returns the complete file.
    pub fn finish(mut self) -> String {
        self.text.extend_from_slice(b"\n]}\n");
        String::from_utf8(self.text).unwrap_or_default()
    }

    fn append(&mut self, value: &impl Serialize) {
        // Strings and numbers are serialized into memory, which cannot fail.
        _ = serde_json::to_writer(&mut self.text, value);
    }

    /// Appends an event on a separate line.
    pub fn push(&mut self, event: &TraceEvent<'_>) {
        let is_first = self.text.ends_with(b"[");
        self.text.extend_from_slice(if is_first { b"\n" } else { b",\n" });
        self.append(event);
    }

    /// Converts a host time to a trace time.
    pub fn at(&self, ns: u64) -> Option<Micros> {
        Some(Micros(ns.saturating_sub(self.origin_ns)))
    }

    /// Appends a slice on a row of a process.
    pub fn slice(
        &mut self,
        cat: &'static str,
        name: Cow<'_, str>,
        (pid, tid): (u32, usize),
        at: Interval,
        args: EventArgs<'_>,
    ) {
        let (ts, dur) = (self.at(at.begin_ns), Some(Micros(at.end_ns - at.begin_ns)));
        let args = Some(args);
        let event =
            TraceEvent { ph: "X", name, cat, pid, tid, ts, dur, args, ..TraceEvent::default() };
        self.push(&event);
    }

    /// Appends an instant on a row of a process.
    pub fn instant(
        &mut self,
        cat: &'static str,
        name: Cow<'_, str>,
        (pid, tid): (u32, usize),
        ns: u64,
        args: EventArgs<'_>,
    ) {
        let (ts, s, args) = (self.at(ns), Some("t"), Some(args));
        self.push(&TraceEvent {
            ph: "i",
            name,
            cat,
            pid,
            tid,
            ts,
            s,
            args,
            ..TraceEvent::default()
        });
    }

    /// Sets a process's name, and its position among the others.
    pub fn process(&mut self, pid: u32, name: &str, sort_index: usize) {
        self.metadata(pid, 0, "process_name", EventArgs::Name { name: name.into() });
        self.metadata(pid, 0, "process_sort_index", EventArgs::SortIndex { sort_index });
    }

    /// Names `rows` additional rows in a process that already has `before` rows.
    pub fn rows(&mut self, pid: u32, before: usize, name: &str, rows: usize) {
        for nth in 0..rows {
            let tid = before + 1 + nth;
            let name = match nth {
                0 => Cow::from(name),
                nth => format!("{name} (overlapping {nth})").into(),
            };
            self.metadata(pid, tid, "thread_name", EventArgs::Name { name });
            self.metadata(pid, tid, "thread_sort_index", EventArgs::SortIndex { sort_index: tid });
        }
    }

    fn metadata(&mut self, pid: u32, tid: usize, name: &'static str, args: EventArgs<'_>) {
        let (name, args) = (name.into(), Some(args));
        self.push(&TraceEvent { ph: "M", name, pid, tid, args, ..TraceEvent::default() });
    }
}
