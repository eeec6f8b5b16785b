//! Export in the trace event format of Chrome and Perfetto.
//!
//! The host is a process with one row per thread, and every device is a process with one row per
//! stream. Slices that overlap without nesting get additional rows. All times are host times.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::collect::devices::Biases;
use crate::collect::trace::event::{EventArgs, TraceEvent, TraceFile};
use crate::collect::trace::layout::{Interval, lay_out};
use crate::collect::trace::tracks::{OnStream, TimedItem, Track, tracks};
use crate::cuda;
use crate::record::timeline::{
    BracketPreparation, CallId, Slice, StreamWork, TraceRecords, TracedCall, records,
};
use crate::stats::bias::{Bias, ConfiguredBias};
use crate::types::device::DeviceId;
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

#[derive(Serialize)]
struct OtherData<'a> {
    version: &'a str,
    process: &'a str,
    started: &'a str,
    clock: &'static str,
    /// The clock reading at the trace's time 0.
    origin_ns: u64,
    brackets: u64,
    dropped: u64,
    unplaced: u64,
    /// Kernels, copies and memsets.
    activities: u64,
    dropped_activities: u64,
}

fn render(recorded: &TraceRecords, about: &About<'_>) -> String {
    let tracks = tracks(recorded);
    let begins = tracks.iter().flat_map(|track| &track.items).map(|(at, _)| at.begin_ns);
    let begins = begins.chain(recorded.calls.iter().map(|(_, call)| call.began_ns));
    let origin_ns = begins.min().unwrap_or_default();
    let mut file = TraceFile::new(
        origin_ns,
        &OtherData {
            version: &about.process.version,
            process: &about.process.name,
            started: &about.process.started,
            clock: "CLOCK_MONOTONIC",
            origin_ns,
            brackets: recorded.brackets,
            dropped: recorded.dropped(),
            unplaced: recorded.unplaced,
            activities: recorded.activities,
            dropped_activities: recorded.dropped_activities(),
        },
    );
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
            let args = EventArgs::Warmup { file: call.site.spec.file, line: call.site.spec.line };
            let row = (pid, tids + 1);
            file.instant("warm-up", call.site.name().into(), row, call.began_ns, args);
        }
        for ((at, (id, call)), row) in calls.into_iter().zip(rows) {
            let tid = tids + 1 + row;
            let args = EventArgs::Call {
                call: id,
                file: call.site.spec.file,
                line: call.site.spec.line,
                running: call.ended_ns.is_none(),
            };
            file.slice("call", call.site.name().into(), (pid, tid), at, args);
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
                    file.slice("gpu", slice.name(), row, at, slice.args(bias));
                    if let Some(call) = calls.get(&slice.call.0) {
                        write_arrow(file, number, (host, call), slice, (row, at));
                    }
                }
                OnStream::Preparation(prepared, slice) => {
                    let CallId(call) = slice.call;
                    let args = EventArgs::Preparation { call, function: slice.site.name() };
                    file.slice("preparation", prepared.name().into(), row, at, args);
                }
                OnStream::Work(work) => {
                    file.slice(work.category(), work.work.name.into(), row, at, work.args());
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
    ((pid, tid), at): ((u32, usize), Interval),
) {
    let enqueued_ns = slice.enqueued_ns.clamp(from.at.begin_ns, from.at.end_ns - 1);
    let arrow = |ph, pid, tid, ns| TraceEvent {
        ph,
        name: "enqueued".into(),
        cat: "gpu",
        pid,
        tid,
        ts: file.at(ns),
        id: Some(number),
        ..TraceEvent::default()
    };
    let [tail, head] = [arrow("s", host, from.tid, enqueued_ns), arrow("f", pid, tid, at.begin_ns)];
    file.push(&tail);
    file.push(&TraceEvent { bp: Some("e"), ..head });
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

    fn args(&self, bias: Option<Bias>) -> EventArgs<'static> {
        let launch = self.series.launch.and_then(|at| self.site.spec.launches.get(at as usize));
        let error_ns = self.passed.map(|moment| moment.error_ns);
        let CallId(call) = self.call;
        let bias_ns = bias.map(|bias| bias.of_sample(self.sample.flags.queued, self.sample.inner));
        EventArgs::Slice {
            call,
            launch: self.series.launch,
            line: launch.map_or(self.site.spec.line, |launch| launch.line),
            cache: self.series.cache.name(),
            feeding: if self.sample.flags.fed { "fed" } else { "starved" },
            raw_ns: self.sample.raw_ns(),
            net_ns: bias_ns.map(|bias_ns| (self.sample.raw_ns() - bias_ns).max(0.0)),
            alignment_error_ns: error_ns[0].max(error_ns[1]).ceil() as u64,
            queued: self.sample.flags.queued,
            at_floor: self.sample.flags.at_floor,
            nested: self.sample.flags.nested,
            tracked: self.sample.flags.tracked,
        }
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

    fn args(&self) -> EventArgs<'static> {
        let CallId(call) = self.call;
        let of_kernel = |sizes| self.work.is_kernel.then_some(sizes);
        EventArgs::Work {
            call,
            function: self.site.name(),
            grid: of_kernel(self.work.grid),
            block: of_kernel(self.work.block),
            elsewhere: self.elsewhere,
            alignment_error_ns: self.error_ns,
        }
    }
}

#[cfg(test)]
mod tests;
