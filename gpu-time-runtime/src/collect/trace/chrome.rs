//! Export in the trace event format of Chrome and Perfetto.
//!
//! The host is a process with one row per thread, and every device is a process with one row per
//! stream. Slices that overlap without nesting get additional rows. All times are host times.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ptr;

use serde::Serialize;

use crate::collect::devices::Biases;
use crate::collect::trace::event::{EventArgs, TraceEvent, TraceFile};
use crate::collect::trace::layout::{Interval, lay_out};
use crate::cuda;
use crate::record::stream_state::StreamState;
use crate::record::timeline::{Call, CallId, Slice, TraceRecords, records};
use crate::stats::bias::Bias;
use crate::types::device::DeviceId;
use gpu_time_report::Process;

/// Returns the trace, and a note about anything missing from it.
pub(crate) fn rendered(process: &Process) -> (String, Option<String>) {
    let recorded = records();
    let contexts = cuda::contexts();
    let about = About {
        process,
        devices: contexts.iter().map(|c| (c.device_id(), c.device.name.clone())).collect(),
        biases: Biases::new(),
        now_ns: cuda::now_ns(),
    };
    (render(&recorded, &about), recorded.note())
}

/// The data that describes a trace.
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
}

fn render(recorded: &TraceRecords, about: &About<'_>) -> String {
    let slices = streams(&recorded.slices);
    let begins = slices.iter().flatten().map(|(at, _)| at.begin_ns);
    let begins = begins.chain(recorded.calls.iter().map(|(_, call)| call.began_ns));
    let origin_ns = begins.min().unwrap_or_default();
    let mut file = TraceFile::new(
        origin_ns,
        &OtherData {
            version: about.process.version(),
            process: about.process.name(),
            started: about.process.started(),
            clock: "CLOCK_MONOTONIC",
            origin_ns,
            brackets: recorded.brackets,
            dropped: recorded.dropped(),
            unplaced: recorded.unplaced,
        },
    );
    let pid = about.process.pid();
    file.process(pid, about.process.name(), 0);
    let calls = write_calls(&mut file, pid, recorded, about.now_ns);
    write_slices(&mut file, pid, slices, &calls, recorded, about);
    file.finish()
}

/// A call or a slice, with its interval and number.
type TimedItem<'a, T> = (Interval, (u64, &'a T));

/// The position of a call in the trace.
struct CallPosition {
    tid: usize,
    at: Interval,
}

/// Writes each thread's calls, and returns their positions by number.
fn write_calls(
    file: &mut TraceFile,
    pid: u32,
    recorded: &TraceRecords,
    now_ns: u64,
) -> HashMap<u64, CallPosition> {
    let mut threads: BTreeMap<u64, Vec<TimedItem<'_, Call>>> = BTreeMap::new();
    for (number, call) in &recorded.calls {
        let begin_ns = call.began_ns;
        let end_ns = call.ended_ns.unwrap_or(now_ns).max(begin_ns + 1);
        let calls = threads.entry(call.thread).or_default();
        calls.push((Interval { begin_ns, end_ns }, (number + 1, call)));
    }
    let mut shown = HashMap::with_capacity(recorded.calls.len());
    let mut tids = 0;
    for (thread, mut calls) in threads {
        let (rows, count) = lay_out(&mut calls);
        file.rows(pid, tids, &recorded.thread_name(thread), count);
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

/// Groups slices by stream, in the order in which the streams were first used.
fn streams(slices: &[(u64, Slice)]) -> Vec<Vec<TimedItem<'_, Slice>>> {
    let mut streams: Vec<Vec<(u64, &Slice)>> = Vec::new();
    let mut known: HashMap<(*const StreamState, usize), usize> = HashMap::new();
    for (number, slice) in slices {
        let key = (ptr::from_ref(slice.stream_state), slice.stream.0);
        let at = *known.entry(key).or_insert(streams.len());
        if at == streams.len() {
            streams.push(Vec::new());
        }
        streams[at].push((*number, slice));
    }
    streams.into_iter().map(in_order).collect()
}

/// Computes the intervals for one stream's slices. The clock fit varies slightly between slices, so
/// intervals are shifted to ensure that consecutive slices on the stream do not overlap.
fn in_order(slices: Vec<(u64, &Slice)>) -> Vec<TimedItem<'_, Slice>> {
    let first = slices.first().map_or(0, |(_, slice)| slice.marks[0].order());
    let since = |order: u32| order.wrapping_sub(first) as i32;
    let mut ends: Vec<(i32, bool, usize)> = Vec::with_capacity(2 * slices.len());
    for (at, (_, slice)) in slices.iter().enumerate() {
        let [begun, ended] = slice.marks.map(|mark| since(mark.order()));
        ends.extend([(begun, false, at), (ended, true, at)]);
    }
    ends.sort_unstable();
    let host_ns = |slice: &Slice| slice.passed.map(|moment| moment.host_ns.max(0.0).round() as u64);
    let mut placed: Vec<TimedItem<'_, Slice>> = slices
        .into_iter()
        .map(|(number, slice)| {
            let [begin_ns, end_ns] = host_ns(slice);
            (Interval { begin_ns, end_ns: end_ns.max(begin_ns) }, (number, slice))
        })
        .collect();
    let mut ended_ns = 0;
    for (_, is_end, at) in ends {
        let at = &mut placed[at].0;
        if is_end {
            ended_ns = ended_ns.max(at.end_ns);
        } else {
            at.begin_ns = at.begin_ns.max(ended_ns);
            // A slice may begin where the previous one ends. An arrow to that point belongs to the
            // later one.
            at.end_ns = at.end_ns.max(at.begin_ns + 1);
        }
    }
    placed
}

/// Writes each device's streams, and arrows from the calls to the slices.
fn write_slices(
    file: &mut TraceFile,
    host: u32,
    streams: Vec<Vec<TimedItem<'_, Slice>>>,
    calls: &HashMap<u64, CallPosition>,
    recorded: &TraceRecords,
    about: &About<'_>,
) {
    let mut devices: BTreeMap<DeviceId, usize> = BTreeMap::new();
    for mut slices in streams {
        let Some((_, (_, slice))) = slices.first() else { continue };
        let (device, thread) = (slice.series.device, slice.thread_id);
        let (pid, sort_index) = device_pid(host, device);
        let tids = devices.entry(device).or_insert_with(|| {
            file.process(pid, &about.device_name(device), sort_index);
            0
        });
        let name = match (slice.stream.0, thread) {
            (0 | 1, _) => "NULL stream".to_owned(),
            (_, Some(thread)) => format!("stream of {}", recorded.thread_name(thread)),
            (handle, None) => format!("stream {handle:#x}"),
        };
        let (rows, count) = lay_out(&mut slices);
        file.rows(pid, *tids, &name, count);
        let bias = about.biases.of(device);
        for ((at, (number, slice)), row) in slices.into_iter().zip(rows) {
            let tid = *tids + 1 + row;
            file.slice("gpu", slice.name(), (pid, tid), at, slice.args(bias));
            let CallId(call) = slice.call;
            let Some(from) = calls.get(&call) else { continue };
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
            let [tail, head] =
                [arrow("s", host, from.tid, enqueued_ns), arrow("f", pid, tid, at.begin_ns)];
            file.push(&tail);
            file.push(&TraceEvent { bp: Some("e"), ..head });
        }
        *tids += count;
    }
}

/// Returns a process id for a device, which differs from all real ones, and its sort position. Real
/// process ids have at most 22 bits.
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
        let bias_ns =
            bias.map(|bias| if self.sample.flags.queued { bias.queued_ns } else { bias.ns });
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

impl TraceRecords {
    fn thread_name(&self, thread: u64) -> Cow<'_, str> {
        let known = self.threads.iter().find(|(known, _)| *known == thread);
        known.map_or_else(|| format!("thread {thread}").into(), |(_, name)| name.as_str().into())
    }
}

#[cfg(test)]
mod tests;
