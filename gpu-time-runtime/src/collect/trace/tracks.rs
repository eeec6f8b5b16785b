//! Groups brackets and the work of opened calls by stream.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::Hash;
use std::ptr;

use crate::collect::trace::layout::Interval;
use crate::record::timeline::{BracketPreparation, CallId, Slice, StreamWork, TraceRecords};
use crate::types::{device::DeviceId, handles::Stream};

/// A call or a slice, with its interval and number.
pub(super) type TimedItem<'a, T> = (Interval, (u64, &'a T));

/// A stream's brackets, and the work of opened calls on it.
pub(super) struct Track<'a> {
    pub device: DeviceId,
    stream: StreamName,
    pub items: Vec<(Interval, OnStream<'a>)>,
}

/// An item on a stream's track.
pub(super) enum OnStream<'a> {
    /// A bracket, with its number.
    Bracket(u64, &'a Slice),
    /// The work that a bracket enqueued in front of its start.
    Preparation(BracketPreparation, &'a Slice),
    Work(&'a StreamWork),
}

/// The identity of a stream, which also gives it a name in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamName {
    Legacy,
    /// The default stream of a thread.
    OfThread(u64),
    Handle(usize),
    /// CUPTI's id, for a stream whose handle is unknown.
    Id(u32),
}

impl StreamName {
    /// Names a stream by its handle. `thread` is the owner of a per-thread stream.
    fn new(stream: Stream, thread: Option<u64>) -> StreamName {
        match (stream, thread) {
            _ if stream.is_legacy() => StreamName::Legacy,
            (_, Some(thread)) => StreamName::OfThread(thread),
            (Stream(handle), None) => StreamName::Handle(handle),
        }
    }
}

impl Track<'_> {
    pub fn name(&self, recorded: &TraceRecords) -> Cow<'static, str> {
        match self.stream {
            StreamName::Legacy => "NULL stream".into(),
            StreamName::OfThread(thread) => {
                format!("stream of {}", recorded.thread_name(thread)).into()
            }
            StreamName::Handle(handle) => format!("stream {handle:#x}").into(),
            StreamName::Id(id) => format!("stream {id}").into(),
        }
    }
}

/// Returns the tracks of all streams, those with brackets first.
pub(super) fn tracks(recorded: &TraceRecords) -> Vec<Track<'_>> {
    let slices = recorded.slices.iter().map(|(number, slice)| (*number, slice));
    let slices = by_stream(slices, |(_, of)| (ptr::from_ref(of.stream_state), of.stream.0));
    let brackets = slices.into_iter().map(in_order).filter_map(track_of_brackets);
    let mut tracks: Vec<Track<'_>> = brackets.collect();
    let works = recorded.works.iter().map(|(_, work)| work);
    for works in by_stream(works, |work| (work.device, work.context, work.stream_id)) {
        let Some(first) = works.first() else { continue };
        let (device, stream) = (DeviceId::Cuda(first.device), name_of(&works, recorded));
        // Several streams may have had the same handle, one after another. The last one is used.
        let is_it = |track: &&mut Track<'_>| track.device == device && track.stream == stream;
        let items = works.into_iter().map(|work| {
            let &StreamWork { begin_ns, end_ns, .. } = work;
            let end_ns = end_ns.max(begin_ns + 1);
            (Interval { begin_ns, end_ns }, OnStream::Work(work))
        });
        match tracks.iter_mut().rev().find(is_it) {
            Some(track) => track.items.extend(items),
            None => tracks.push(Track { device, stream, items: items.collect() }),
        }
    }
    tracks
}

fn track_of_brackets(slices: Vec<TimedItem<'_, Slice>>) -> Option<Track<'_>> {
    let (_, (_, slice)) = slices.first()?;
    let (device, stream) = (slice.series.device, StreamName::new(slice.stream, slice.thread_id));
    let mut items = preparations(&slices);
    let bracket = |(at, (number, slice))| (at, OnStream::Bracket(number, slice));
    items.extend(slices.into_iter().map(bracket));
    Some(Track { device, stream, items })
}

/// Returns the preparations of one stream's brackets. Each begins when the host enqueued it, or
/// when the preceding bracket ended if that is later, and ends when its own bracket begins.
fn preparations<'a>(slices: &[TimedItem<'a, Slice>]) -> Vec<(Interval, OnStream<'a>)> {
    let mut ends: Vec<u64> = slices.iter().map(|(at, _)| at.end_ns).collect();
    ends.sort_unstable();
    let of = |(at, (_, slice)): &TimedItem<'a, Slice>| {
        let prepared = slice.prepared?;
        let before = ends.partition_point(|end_ns| *end_ns <= at.begin_ns);
        let free_ns = before.checked_sub(1).and_then(|last| ends.get(last)).copied();
        let begin_ns = prepared.began_ns.max(free_ns.unwrap_or_default());
        let interval = Interval { begin_ns, end_ns: at.begin_ns };
        (begin_ns < at.begin_ns).then_some((interval, OnStream::Preparation(prepared, slice)))
    };
    slices.iter().filter_map(of).collect()
}

/// Groups items by stream, in the order in which the streams were first used.
fn by_stream<T, K: Eq + Hash>(
    items: impl Iterator<Item = T>,
    stream: impl Fn(&T) -> K,
) -> Vec<Vec<T>> {
    let mut streams: Vec<Vec<T>> = Vec::new();
    let mut known = HashMap::new();
    for item in items {
        let at = *known.entry(stream(&item)).or_insert(streams.len());
        if at == streams.len() {
            streams.push(Vec::new());
        }
        streams[at].push(item);
    }
    streams
}

/// Returns the name of the stream that these works ran on. One known handle is enough to name the
/// stream.
fn name_of(works: &[&StreamWork], recorded: &TraceRecords) -> StreamName {
    let known = works.iter().find_map(|work| {
        let stream = work.stream?;
        let thread =
            if stream.is_per_thread() { Some(recorded.thread_of(work.call)?) } else { None };
        Some(StreamName::new(stream, thread))
    });
    known.unwrap_or(StreamName::Id(works.first().map_or(0, |work| work.stream_id)))
}

/// Computes the intervals for one stream's slices. The clock fit varies slightly between slices, so
/// intervals are shifted to ensure that consecutive slices on the stream do not overlap.
pub(super) fn in_order(slices: Vec<(u64, &Slice)>) -> Vec<TimedItem<'_, Slice>> {
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
            // A slice may begin where the previous one ends. An arrow to that point must lead to
            // the later one.
            at.end_ns = at.end_ns.max(at.begin_ns + 1);
        }
    }
    placed
}

impl TraceRecords {
    pub(super) fn thread_name(&self, thread: u64) -> Cow<'_, str> {
        let known = self.threads.iter().find(|(known, _)| *known == thread);
        known.map_or_else(|| format!("thread {thread}").into(), |(_, name)| name.as_str().into())
    }

    /// Returns the thread on which a call began, unless the call was overwritten.
    fn thread_of(&self, CallId(call): CallId) -> Option<u64> {
        let at = self.calls.binary_search_by_key(&call, |(number, _)| number + 1).ok()?;
        self.calls.get(at).map(|(_, call)| call.thread)
    }
}
