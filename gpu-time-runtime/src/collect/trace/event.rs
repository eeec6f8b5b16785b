//! Trace events as JSON, and the trace file.

use serde_json::{Value, json};

use crate::collect::trace::layout::Interval;

/// The text of a trace file.
pub(super) struct TraceFile {
    text: Vec<u8>,
    /// The host time at the trace's time 0. Times in the file are relative to it, because large
    /// numbers of microseconds are not exact to the nanosecond.
    origin_ns: u64,
}

/// A process and a row of it.
pub(super) type Row = (u32, usize);

impl TraceFile {
    /// Begins the file.
    pub fn new(origin_ns: u64, other_data: &Value) -> TraceFile {
        let head =
            format!("{{\"displayTimeUnit\":\"ns\",\"otherData\":{other_data},\"traceEvents\":[");
        TraceFile { text: head.into_bytes(), origin_ns }
    }

    /// Ends the file and returns its text.
    pub fn finish(mut self) -> String {
        self.text.extend_from_slice(b"\n]}\n");
        String::from_utf8(self.text).unwrap_or_default()
    }

    /// Adds an event, with the field names of the file format. Arguments that are `null` are left out.
    pub fn push(&mut self, mut event: Value) {
        if let Some(args) = event.get_mut("args").and_then(Value::as_object_mut) {
            args.retain(|_, value| !value.is_null());
        }
        let is_first = self.text.ends_with(b"[");
        self.text.extend_from_slice(if is_first { b"\n" } else { b",\n" });
        _ = serde_json::to_writer(&mut self.text, &event);
    }

    /// Returns a host time in the file's microseconds.
    pub fn at(&self, ns: u64) -> f64 {
        ns.saturating_sub(self.origin_ns) as f64 / 1e3
    }

    /// Adds a slice.
    pub fn slice(&mut self, cat: &str, name: &str, (pid, tid): Row, at: Interval, args: Value) {
        let (ts, dur) = (self.at(at.begin_ns), (at.end_ns - at.begin_ns) as f64 / 1e3);
        self.push(json!({
            "ph": "X", "name": name, "cat": cat, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args,
        }));
    }

    /// Adds a moment in a thread's row.
    pub fn instant(&mut self, cat: &str, name: &str, (pid, tid): Row, ns: u64, args: Value) {
        let ts = self.at(ns);
        self.push(json!({
            "ph": "i", "name": name, "cat": cat, "pid": pid, "tid": tid, "ts": ts, "s": "t", "args": args,
        }));
    }

    /// Names a process and sets its position among the processes.
    pub fn process(&mut self, pid: u32, name: &str, sort_index: usize) {
        self.metadata((pid, 0), "process_name", json!({ "name": name }));
        self.metadata((pid, 0), "process_sort_index", json!({ "sort_index": sort_index }));
    }

    /// Names `rows` consecutive rows that share a name, after the `before` rows of the process so far.
    pub fn rows(&mut self, pid: u32, before: usize, name: &str, rows: usize) {
        for nth in 0..rows {
            let tid = before + 1 + nth;
            let name = match nth {
                0 => name.to_owned(),
                nth => format!("{name} (overlapping {nth})"),
            };
            self.metadata((pid, tid), "thread_name", json!({ "name": name }));
            self.metadata((pid, tid), "thread_sort_index", json!({ "sort_index": tid }));
        }
    }

    fn metadata(&mut self, (pid, tid): Row, name: &str, args: Value) {
        self.push(json!({ "ph": "M", "name": name, "pid": pid, "tid": tid, "args": args }));
    }
}

/// Returns the argument for a mark, which is left out where it is not set.
pub(super) fn mark(is_set: bool) -> Option<bool> {
    is_set.then_some(true)
}
