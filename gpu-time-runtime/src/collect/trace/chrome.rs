//! Export in the trace event format of Chrome and Perfetto.
//!
//! The host is a process with one row per thread, and every device is a process with one row per
//! stream. Slices that overlap without nesting get additional rows. All times are host times.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use crate::collect::devices::Biases;
use crate::collect::trace::event::{Row, TraceFile, mark};
use crate::collect::trace::layout::{Interval, lay_out};
use crate::collect::trace::tracks::{OnStream, TimedItem, Track, tracks};
use crate::cuda;
use crate::record::timeline::{
    BracketPreparation, Slice, StreamWork, TraceRecords, TracedCall, records,
};
use crate::stats::bias::{Bias, ConfiguredBias};
use crate::types::{device::DeviceId, sample::SampleFlags};
use gpu_time_report::Process;

/// Returns the trace, and a note about anything missing from it.
pub(crate) fn rendered(
    process: &Process,
    configured: Option<ConfiguredBias>,
) -> (String, Option<String>) {
    let recorded = records();
    let contexts = cuda::contexts();
    let about = About {
        process,
        devices: contexts.iter().map(|c| (c.device_id(), c.device.name.clone())).collect(),
        biases: Biases::new(configured),
        now_ns: cuda::now_ns(),
    };
    (render(&recorded, &about), recorded.note())
}

/// The process and devices that a trace names.
struct About<'a> {
    process: &'a Process,
    devices: Vec<(DeviceId, String)>,
    biases: Biases,
    now_ns: u64,
}

impl About<'_> {
    fn device_name(&self, device: DeviceId) -> String {
        let known = self.devices.iter().find(|(known, _)| *known == device);
        known.map_or_else(|| device.to_string(), |(_, name)| format!("{device} {name}"))
    }
}

fn render(recorded: &TraceRecords, about: &About<'_>) -> String {
    let tracks = tracks(recorded);
    let begins = tracks.iter().flat_map(|track| &track.items).map(|(at, _)| at.begin_ns);
    let begins = begins.chain(recorded.calls.iter().map(|(_, call)| call.began_ns));
    let origin_ns = begins.min().unwrap_or_default();
    let other_data = json!({
        "version": about.process.version,
        "process": about.process.name,
        "started": about.process.started,
        "clock": "CLOCK_MONOTONIC",
        // The clock reading at the trace's time 0.
        "origin_ns": origin_ns,
        "brackets": recorded.brackets,
        "dropped": recorded.dropped(),
        "unplaced": recorded.unplaced,
        // Kernels, copies and memsets.
        "activities": recorded.activities,
        "dropped_activities": recorded.dropped_activities(),
    });
    let mut file = TraceFile::new(origin_ns, &other_data);
    let pid = about.process.pid;
    file.process(pid, &about.process.name, 0);
    let calls = write_calls(&mut file, pid, recorded, about.now_ns);
    write_tracks(&mut file, pid, tracks, &calls, recorded, about);
    file.finish()
}

/// The position of a call in the trace.
struct CallPosition {
    tid: usize,
    at: Interval,
}

/// Writes each thread's calls, and returns their positions by call number.
fn write_calls(
    file: &mut TraceFile,
    pid: u32,
    recorded: &TraceRecords,
    now_ns: u64,
) -> HashMap<u64, CallPosition> {
    let mut threads: BTreeMap<u64, Vec<TimedItem<'_, TracedCall>>> = BTreeMap::new();
    let mut warmups: BTreeMap<u64, Vec<&TracedCall>> = BTreeMap::new();
    for (number, call) in &recorded.calls {
        if call.is_warmup {
            warmups.entry(call.thread).or_default().push(call);
            threads.entry(call.thread).or_default();
            continue;
        }
        let begin_ns = call.began_ns;
        let end_ns = call.ended_ns.unwrap_or(now_ns).max(begin_ns + 1);
        let calls = threads.entry(call.thread).or_default();
        calls.push((Interval { begin_ns, end_ns }, (number + 1, call)));
    }
    let mut shown = HashMap::with_capacity(recorded.calls.len());
    let mut tids = 0;
    for (thread, mut calls) in threads {
        let (rows, count) = lay_out(&mut calls);
        let count = count.max(1);
        file.rows(pid, tids, &recorded.thread_name(thread), count);
        for call in warmups.remove(&thread).into_iter().flatten() {
            let args = json!({ "file": call.site.spec.file, "line": call.site.spec.line });
            file.instant("warm-up", call.site.name(), (pid, tids + 1), call.began_ns, args);
        }
        for ((at, (id, call)), row) in calls.into_iter().zip(rows) {
            let tid = tids + 1 + row;
            let args = json!({
                "call": id,
                "file": call.site.spec.file,
                "line": call.site.spec.line,
                // It had not returned when the trace was written, and is shown as ending then.
                "running": mark(call.ended_ns.is_none()),
            });
            file.slice("call", call.site.name(), (pid, tid), at, args);
            shown.insert(id, CallPosition { tid, at });
        }
        tids += count;
    }
    shown
}

/// Writes each device's streams.
fn write_tracks(
    file: &mut TraceFile,
    host: u32,
    tracks: Vec<Track<'_>>,
    calls: &HashMap<u64, CallPosition>,
    recorded: &TraceRecords,
    about: &About<'_>,
) {
    let mut devices: BTreeMap<DeviceId, usize> = BTreeMap::new();
    for mut track in tracks {
        let device = track.device;
        let (pid, sort_index) = device_pid(host, device);
        let tids = devices.entry(device).or_insert_with(|| {
            file.process(pid, &about.device_name(device), sort_index);
            0
        });
        let (rows, count) = lay_out(&mut track.items);
        file.rows(pid, *tids, &track.name(recorded), count);
        let bias = about.biases.of(device);
        for ((at, item), row) in track.items.into_iter().zip(rows) {
            let row = (pid, *tids + 1 + row);
            match item {
                OnStream::Bracket(number, slice) => {
                    file.slice("gpu", &slice.name(), row, at, slice.args(bias));
                    if let Some(call) = calls.get(&slice.call.0) {
                        write_arrow(file, number, (host, call), slice, (row, at));
                    }
                }
                OnStream::Preparation(prepared, slice) => {
                    // It is shown from the time at which the host enqueued it or the preceding bracket
                    // ended, and may in fact begin later.
                    let args = json!({ "call": slice.call.0, "function": slice.site.name() });
                    file.slice("preparation", prepared.name(), row, at, args);
                }
                OnStream::Work(work) => {
                    file.slice(work.category(), work.work.name, row, at, work.args());
                }
            }
        }
        *tids += count;
    }
}

/// Writes an arrow from a call to its bracket.
fn write_arrow(
    file: &mut TraceFile,
    number: u64,
    (host, from): (u32, &CallPosition),
    slice: &Slice,
    ((pid, tid), at): (Row, Interval),
) {
    let enqueued_ns = slice.enqueued_ns.clamp(from.at.begin_ns, from.at.end_ns - 1);
    let [tail_ts, head_ts] = [enqueued_ns, at.begin_ns].map(|ns| file.at(ns));
    file.push(json!({
        "ph": "s", "name": "enqueued", "cat": "gpu", "pid": host, "tid": from.tid, "ts": tail_ts, "id": number,
    }));
    // The arrow ends at the enclosing slice.
    file.push(json!({
        "ph": "f", "name": "enqueued", "cat": "gpu", "pid": pid, "tid": tid, "ts": head_ts, "id": number,
        "bp": "e",
    }));
}

/// Returns a process id for a device, which no real process has, and the device's sort position. Real process
/// ids have at most 22 bits.
fn device_pid(host: u32, device: DeviceId) -> (u32, usize) {
    let nth = match device {
        DeviceId::Cuda(ordinal) => 1 + ordinal.min(500),
        DeviceId::Unknown | DeviceId::Host => 511,
    };
    (nth << 22 | host & 0x3f_ffff, nth as usize)
}

impl Slice {
    /// Returns the function's name, followed by the launch index if the function has several
    /// launches.
    fn name(&self) -> Cow<'static, str> {
        let name = self.site.name();
        match self.series.launch {
            Some(launch) if !self.site.spec.is_single => format!("{name} #{launch}").into(),
            _ => name.into(),
        }
    }

    fn args(&self, bias: Option<Bias>) -> Value {
        let launch = self.series.launch.and_then(|at| self.site.spec.launches.get(at as usize));
        let error_ns = self.passed.map(|moment| moment.error_ns);
        let SampleFlags { fed, queued, at_floor, nested, tracked } = self.sample.flags;
        json!({
            "call": self.call.0,
            "launch": self.series.launch,
            "line": launch.map_or(self.site.spec.line, |launch| launch.line),
            "cache": self.series.cache.name(),
            "feeding": if fed { "fed" } else { "starved" },
            "raw_ns": self.sample.alone_ns(),
            "added_ns": self.sample.added_ns,
            "net_ns": bias.map(|bias| (self.sample.alone_ns() - bias.ns).max(0.0)),
            // The maximum error of the position on the host's time axis.
            "alignment_error_ns": error_ns[0].max(error_ns[1]).ceil() as u64,
            "queued": mark(queued),
            "at_floor": mark(at_floor),
            "nested": mark(nested),
            "tracked": mark(tracked),
        })
    }
}

impl BracketPreparation {
    fn name(self) -> &'static str {
        match (self.flushes, self.holds) {
            (true, true) => "flush and hold",
            (true, false) => "flush",
            (false, _) => "hold",
        }
    }
}

impl StreamWork {
    fn category(&self) -> &'static str {
        if self.work.is_kernel { "kernel" } else { "memory" }
    }

    fn args(&self) -> Value {
        let of_kernel = |sizes| self.work.is_kernel.then_some(sizes);
        json!({
            "call": self.call.0,
            // The function that the work is attributed to.
            "function": self.site.name(),
            "grid": of_kernel(self.work.grid),
            "block": of_kernel(self.work.block),
            // The work ran on a different stream from the function's own.
            "elsewhere": mark(self.elsewhere),
            // The maximum error of the conversion from CUPTI's clock.
            "alignment_error_ns": self.error_ns,
        })
    }
}

#[cfg(test)]
mod tests;
