use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;

use super::call_exchange::{MAX_WAITING_WORK, Refused};
use super::waiting_call::MAX_ACTIVITIES;
use super::*;
use crate::base::lock::{Mutex, Rank};
use crate::cupti::{DrainKind, DrainOutcome};
use crate::gpu::fake;
use crate::record::awaited::{LONGEST_PATIENCE, PATIENCE};
use crate::record::launches::{LaunchOwner, NotedLaunch};
use crate::record::open_frames::ThreadFrames;
use crate::record::phase::current::Phase;
use crate::record::recorder::Recorder;
use crate::record::records::{self, FLUSH_PERIOD, MAX_WAITING, Records};
use crate::record::threads::ThreadRecorder;
use crate::record::timeline::CallId;
use crate::site::thread_counters::ThreadCounters;
use crate::stats::bracket_counts::BracketCounts;
use crate::types::activity::{Activity, GpuWork, GraphExec};
use crate::types::attribute::Spec;
use crate::types::{handles::Stream, key::SeriesKey, sample::CacheState, stream_id::StreamId};
use gpu_time_report::ElsewhereReason;

const STREAM: Stream = Stream(0x70);
/// The context of all launches.
const CONTEXT: usize = 9;

pub(super) fn thread() -> &'static ThreadRecorder {
    Box::leak(Box::new(ThreadRecorder {
        counters: ThreadCounters::NONE,
        recorder: Mutex::new(Rank::Recorder, Recorder::default()),
        frames: ThreadFrames::new(),
    }))
}

fn stream_id(handle: usize) -> StreamId {
    StreamId::new(Stream(handle), CONTEXT)
}

pub(super) fn subject(thread: &'static ThreadRecorder) -> OpenedFunction {
    static LAST_ID: AtomicU32 = AtomicU32::new(0);
    let site = fake::site();
    site.set_id(1 + LAST_ID.fetch_add(1, Relaxed));
    let (cache, key) = (CacheState::AsFound, SeriesKey::NONE);
    OpenedFunction {
        of: CallSeries { site, thread, launch: None, cache, key },
        stream: Some(stream_id(STREAM.0)),
        weight: 1.0,
        opened_as: OpenedAs::OfPhase,
        workload: Workload::UNKNOWN,
        call_id: CallId::default(),
        device: DeviceId::Cuda(0),
    }
}

pub(super) fn launch(correlation: u32) -> EnqueueCall {
    EnqueueCall {
        correlation,
        context: CONTEXT,
        stream: Some(STREAM.0),
        capture: None,
        is_graph: false,
        graph: None,
        is_group: false,
        lacks_records: false,
    }
}

pub(super) fn activity(correlation: u32, start_ns: u64, end_ns: u64) -> Activity {
    let (name, sizes) = ("k", [1; 3]);
    let work =
        GpuWork { name, is_kernel: true, grid: sizes, block: sizes, registers: 0, shared_bytes: 0 };
    Activity {
        start_ns,
        end_ns,
        correlation,
        device: 0,
        context: 1,
        stream: 7,
        work: Box::leak(Box::new(work)),
    }
}

/// Returns the position of a frame in a call of which no part was handed over.
fn at(frame: FrameId) -> usize {
    frame.nth as usize
}

thread_local! {
    /// The launches that the test's calls have made and that no [`Table`] has yet.
    static MADE: RefCell<Vec<NotedLaunch>> = const { RefCell::new(Vec::new()) };
}

/// Returns a call with a number of its own.
fn new_call() -> Box<OpenCall> {
    static LAST: AtomicU64 = AtomicU64::new(0);
    Box::new(OpenCall { number: 1 + LAST.fetch_add(1, Relaxed), ..OpenCall::default() })
}

/// Makes a launch.
fn note(call: &mut OpenCall, launched: &EnqueueCall) {
    let owner = call.note(launched);
    let launch = NotedLaunch { is_in_window: false, ..NotedLaunch::new(launched, owner, None) };
    owner.into_iter().for_each(|_| MADE.with_borrow_mut(|made| made.push(launch)));
}

/// Makes a launch on a helper thread, while this frame is innermost.
fn note_by_helper(call: &OpenCall, nth: u64, correlation: u32) {
    let (call, enqueued_ns) = (call.number, 0);
    let owner = LaunchOwner { call, nth, enqueued_ns, is_by_helper: true, is_after_stop: false };
    let launched = NotedLaunch::new(&launch(correlation), Some(owner), None);
    MADE.with_borrow_mut(|made| made.push(NotedLaunch { is_in_window: false, ..launched }));
}

/// The records, with the launches of the test's calls.
struct Table(Records);

impl Table {
    fn new() -> Table {
        Table(Records::default())
    }

    /// Adds the launches that have been made. Returns their ids.
    fn add_made(&mut self) -> Vec<u32> {
        let made = MADE.take();
        made.iter().for_each(|launch| self.0.add(*launch));
        made.iter().map(|launch| launch.correlation).collect()
    }

    fn claim(&mut self, calls: impl IntoIterator<Item = Box<OpenCall>>) {
        for call in calls {
            self.add_made();
            self.0.claim(call);
        }
    }

    fn take(&mut self, activity: &Activity) {
        self.add_made();
        _ = self.0.take(activity);
    }
}

impl Deref for Table {
    type Target = Records;

    fn deref(&self) -> &Records {
        &self.0
    }
}

impl DerefMut for Table {
    fn deref_mut(&mut self) -> &mut Records {
        &mut self.0
    }
}

/// Makes a call of one function that launches with the given ids.
pub(super) fn call(subject: OpenedFunction, launches: &[u32]) -> Box<OpenCall> {
    let mut call = new_call();
    let frame = call.enter(subject).unwrap();
    launches.iter().for_each(|&id| note(&mut call, &launch(id)));
    assert!(call.leave(at(frame), None, |_| DeviceId::Cuda(0)));
    call
}

pub(super) fn counts(subject: &OpenedFunction) -> BracketCounts {
    let recorder = locked(&subject.of.thread.recorder);
    let mut counts = BracketCounts::default();
    let all = recorder.series.counters(0, usize::MAX).iter();
    all.filter(|of| std::ptr::eq(of.site, subject.of.site)).for_each(|of| counts.add(&of.counts));
    let BracketCounts { timed, measured, opened, in_flight, lost, .. } = counts;
    assert_eq!(timed, measured + opened + in_flight + lost.total());
    counts
}

#[test]
fn launch_belongs_to_the_innermost_function() {
    let thread = thread();
    let (outer, inner) = (subject(thread), subject(thread));
    let mut call = new_call();
    let outer_frame = call.enter(outer).unwrap();
    note(&mut call, &launch(1));
    let inner_frame = call.enter(inner).unwrap();
    note(&mut call, &launch(2));
    assert!(!call.leave(at(inner_frame), None, |_| DeviceId::Cuda(0)));
    note(&mut call, &launch(3));
    let device = |context| {
        assert_eq!(context, CONTEXT);
        DeviceId::Cuda(0)
    };
    assert!(call.leave(at(outer_frame), None, device));
    let frames: Vec<_> = MADE.take().iter().map(|of| of.owner.map(|owner| owner.nth)).collect();
    assert_eq!(frames, [Some(0), Some(1), Some(0)]);
    assert_eq!((counts(&outer).in_flight, counts(&inner).in_flight), (1, 1));
}

#[test]
fn failed_launch_is_forgotten() {
    let subject = subject(thread());
    let mut open = new_call();
    let frame = open.enter(subject).unwrap();
    for id in [1, 2] {
        note(&mut open, &launch(id));
    }
    let mut table = Table::new();
    table.add_made();
    // A driver function that calls another one reports a failure for both.
    [2, 2, 9].iter().for_each(|&id| table.forget(id));
    open.leave(at(frame), None, |_| DeviceId::Cuda(0));
    table.claim([open]);
    table.take(&activity(1, 10, 20));
    table.finish(false);
    assert_eq!((counts(&subject).opened, counts(&subject).in_flight), (1, 0));
}

/// Returns the reasons of the work elsewhere in the report of a function, with the number of works.
fn elsewhere(subject: OpenedFunction) -> Vec<(ElsewhereReason, u64)> {
    let report = subject.of.site.series()[0].series.times().opened().cloned().unwrap();
    report.elsewhere.iter().map(|of| (of.why, of.count)).collect()
}

/// Ends the frames, the last one first, and records the call.
fn record_launches(mut call: Box<OpenCall>, frames: &[FrameId]) {
    for frame in frames.iter().rev() {
        call.leave(at(*frame), None, |_| DeviceId::Cuda(0));
    }
    record_all(vec![call]);
}

#[test]
fn launch_on_another_stream_is_elsewhere() {
    let subject = subject(thread());
    let mut call = new_call();
    let frame = call.enter(subject).unwrap();
    call.frames[0].is_launching = true;
    for (id, stream) in [(1, Some(STREAM.0)), (2, Some(0x71)), (3, None)] {
        note(&mut call, &EnqueueCall { stream, ..launch(id) });
    }
    // Not one of the launches that events bracket.
    call.frames[0].is_launching = false;
    note(&mut call, &launch(4));
    record_launches(call, &[frame]);
    let (other, after) = (ElsewhereReason::OtherStream, ElsewhereReason::AfterStop);
    assert_eq!(elsewhere(subject), [(other, 1), (after, 1)]);
}

/// The work of inner functions is elsewhere for each function whose stream it does not run on.
#[test]
fn inner_work_is_elsewhere_for_outer_function() {
    let named = |stream| OpenedFunction { stream, ..subject(thread()) };
    let [outer, bare, inner] = [Some(stream_id(STREAM.0)), None, Some(stream_id(0x71))].map(named);
    let mut call = new_call();
    let frames = [outer, bare, inner].map(|subject| {
        let frame = call.enter(subject).unwrap();
        call.frames.last_mut().unwrap().is_launching = true;
        frame
    });
    note(&mut call, &EnqueueCall { stream: Some(0x71), ..launch(1) });
    note(&mut call, &EnqueueCall { stream: Some(STREAM.0), ..launch(2) });
    record_launches(call, &frames);
    let other = ElsewhereReason::OtherStream;
    assert_eq!([outer, bare, inner].map(elsewhere), [vec![(other, 1)], vec![], vec![(other, 1)]]);
}

/// The stop event of the inner function says nothing about that of the outer one.
#[test]
fn work_after_stop_is_elsewhere_for_own_function() {
    let [outer, inner] = [(); 2].map(|()| subject(thread()));
    let mut call = new_call();
    let frames = [outer, inner].map(|subject| call.enter(subject).unwrap());
    call.frames[0].is_launching = true;
    note(&mut call, &launch(1));
    record_launches(call, &frames);
    assert_eq!([outer, inner].map(elsewhere), [vec![], vec![(ElsewhereReason::AfterStop, 1)]]);
}

/// Events time the calls of such a function outside of phases.
#[test]
fn opened_calls_represent_all_calls_with_stream() {
    let function = subject(thread());
    // A phase on request, and a planned one.
    for (weight, launches) in [(1.0, 3), (10.0, 1)] {
        let mut call = new_call();
        call.phase = Some(Phase { number: 1, weight });
        let frame = call.enter(function).unwrap();
        (0..launches).for_each(|id| note(&mut call, &launch(id)));
        record_launches(call, &[frame]);
    }
    let report = function.of.site.series()[0].series.times().opened().cloned().unwrap();
    assert_eq!((report.opened, report.kernels_per_call), (2, Some(13.0 / 11.0)));
}

#[test]
fn captured_launch_loses_the_functions_inside_the_capture() {
    let thread = thread();
    let [outer, inner] = [(); 2].map(|()| subject(thread));
    let mut call = new_call();
    let outer_frame = call.enter(outer).unwrap();
    note(&mut call, &launch(1));
    let begun = cupti::captures_begun();
    let inner_frame = call.enter(inner).unwrap();
    // As if the capture had begun between the two functions.
    call.frames[1].captures_begun = begun + 1;
    note(&mut call, &EnqueueCall { capture: Some(begun + 1), ..launch(2) });
    call.leave(at(inner_frame), None, |_| DeviceId::Cuda(0));
    call.leave(at(outer_frame), None, |_| DeviceId::Cuda(0));
    assert_eq!(call.frames[1].lost, Some(Lost::Capture));
    let mut table = Table::new();
    table.claim([call]);
    table.take(&activity(1, 10, 20));
    table.finish(false);
    assert_eq!((counts(&outer).opened, counts(&outer).lost.total()), (1, 0));
    assert_eq!((counts(&inner).opened, counts(&inner).lost.total()), (0, 1));
}

#[test]
fn legacy_streams_are_the_same() {
    let subject = OpenedFunction { stream: Some(stream_id(0)), ..subject(thread()) };
    let mut call = new_call();
    let frame = call.enter(subject).unwrap();
    call.frames[0].is_launching = true;
    note(&mut call, &EnqueueCall { stream: Some(1), ..launch(1) });
    record_launches(call, &[frame]);
    assert_eq!(elsewhere(subject), []);
}

/// All contexts use the same handle for their default streams.
#[test]
fn default_stream_of_another_context_is_elsewhere() {
    let subject = OpenedFunction { stream: Some(stream_id(0)), ..subject(thread()) };
    let mut call = new_call();
    let frame = call.enter(subject).unwrap();
    call.frames[0].is_launching = true;
    for (id, context) in [(1, CONTEXT), (2, CONTEXT + 1)] {
        note(&mut call, &EnqueueCall { stream: Some(0), context, ..launch(id) });
    }
    record_launches(call, &[frame]);
    assert_eq!(elsewhere(subject), [(ElsewhereReason::OtherStream, 1)]);
}

#[test]
fn records_before_and_after_the_end_are_matched() {
    let subject = subject(thread());
    let (mut table, call) = (Table::new(), call(subject, &[11, 12]));
    // The record comes before the call has ended, after one that belongs to no call.
    [activity(900, 1, 2), activity(11, 100, 140)].iter().for_each(|of| table.take(of));
    table.claim([call]);
    table.finish(false);
    assert_eq!(counts(&subject).in_flight, 1, "a record is missing");
    table.take(&activity(12, 150, 160));
    table.finish(false);
    assert_eq!((counts(&subject).opened, counts(&subject).in_flight), (1, 0));
    let report = subject.of.site.series()[0].series.times().opened().cloned().unwrap();
    assert_eq!((report.opened, report.kernels_per_call), (1, Some(2.0)));
    assert_eq!(report.busy_ns.unwrap().sum, 50.0);
    assert_eq!(report.span_ns.unwrap().sum, 60.0);
}

#[test]
fn calls_finish_in_any_order() {
    let subjects = [(); 3].map(|()| subject(thread()));
    let mut table = Table::new();
    table.claim([call(subjects[0], &[1]), call(subjects[1], &[2]), call(subjects[2], &[3])]);
    for (correlation, opened) in [(3, [0, 0, 1]), (1, [1, 0, 1]), (2, [1, 1, 1])] {
        table.take(&activity(correlation, 10, 20));
        table.finish(false);
        assert_eq!(subjects.map(|subject| counts(&subject).opened), opened);
    }
    assert!(table.is_empty());
}

#[test]
fn record_without_times_loses_its_call_alone() {
    for (start_ns, end_ns) in [(0, 0), (10, 0), (0, 20)] {
        let (one, other) = (subject(thread()), subject(thread()));
        let mut table = Table::new();
        table.claim([call(one, &[1, 2]), call(other, &[3])]);
        for activity in [activity(1, 10, 20), activity(2, start_ns, end_ns), activity(3, 30, 40)] {
            table.take(&activity);
        }
        table.finish(false);
        assert_eq!(counts(&one).lost.total(), 1, "{start_ns} to {end_ns}");
        assert_eq!((counts(&other).opened, counts(&other).lost.total()), (1, 0));
    }
}

#[test]
fn graph_waits_for_more_records() {
    let subject = subject(thread());
    let mut table = waiting_for(subject, EnqueueCall { is_group: true, ..launch(5) });
    for node in 0..3 {
        table.begin_round();
        table.take(&activity(5, 100 * node + 5, 100 * node + 15));
        table.finish(false);
        assert_eq!(counts(&subject).opened, 0);
    }
    rounds(&mut table);
    assert_eq!(counts(&subject).opened, 0, "the graph may still run");
    go_on(&mut table);
    rounds(&mut table);
    let report = subject.of.site.series()[0].series.times().opened().cloned().unwrap();
    assert_eq!((report.opened, report.kernels_per_call), (1, Some(3.0)));
}

/// Lets two rounds pass without a record.
fn rounds(table: &mut Table) {
    (0..2).for_each(|_| table.begin_round());
    table.finish(false);
}

/// Makes a later call on the same stream, whose launch has a record.
fn go_on(table: &mut Table) {
    table.claim([call(subject(thread()), &[800])]);
    table.take(&activity(800, 900, 910));
}

/// Returns a table that waits for the records of a call with one launch.
fn waiting_for(subject: OpenedFunction, launched: EnqueueCall) -> Table {
    let mut table = Table::new();
    let mut call = new_call();
    let frame = call.enter(subject).unwrap();
    note(&mut call, &launched);
    call.leave(at(frame), None, |_| DeviceId::Cuda(0));
    table.claim([call]);
    table
}

/// Returns a table with one call, whose launch has one record.
fn with_graph(subject: OpenedFunction, launched: EnqueueCall) -> Table {
    let mut table = waiting_for(subject, launched);
    table.begin_round();
    table.take(&activity(5, 5, 15));
    go_on(&mut table);
    table
}

#[test]
fn rounds_without_a_flush_do_not_complete_a_graph() {
    let subject = subject(thread());
    let mut table = with_graph(subject, EnqueueCall { is_group: true, ..launch(5) });
    for _ in 0..5 {
        table.begin_round();
        table.repeat_round();
        table.finish(false);
        assert_eq!(counts(&subject).opened, 0);
    }
    rounds(&mut table);
    assert_eq!(counts(&subject).opened, 1);
}

#[test]
fn flush_is_due_after_a_while_or_much_work() {
    let mut table = Table::new();
    assert_eq!(table.due_drain(), DrainKind::Flushed);
    table.note_flush();
    assert_eq!(table.due_drain(), DrainKind::Completed);
    table.wait(FLUSH_PERIOD);
    assert_eq!(table.due_drain(), DrainKind::Flushed);
    let launches: Vec<u32> = (0..(MAX_WAITING_WORK / 8) as u32).collect();
    let subject = subject(thread());
    table.claim((0..3).map(|_| call(subject, &launches)));
    table.note_flush();
    assert_eq!(table.due_drain(), DrainKind::Completed);
    table.claim([call(subject, &launches)]);
    table.note_flush();
    assert_eq!(table.due_drain(), DrainKind::Flushed);
    table.give_up();
}

/// CUPTI withholds a buffer until all work in it has ended, and may return later ones before it.
#[test]
fn graph_whose_records_are_withheld_is_waited_for() {
    let subject = subject(thread());
    let mut table = waiting_for(subject, EnqueueCall { is_group: true, ..launch(5) });
    go_on(&mut table);
    rounds(&mut table);
    assert_eq!(counts(&subject).in_flight, 1, "it may not be empty");
    table.take(&activity(5, 5, 15));
    rounds(&mut table);
    let report = subject.of.site.series()[0].series.times().opened().cloned().unwrap();
    assert_eq!((report.opened, report.kernels_per_call), (1, Some(1.0)));
}

#[test]
fn graph_without_records_is_empty_once_gpu_has_gone_on() {
    let subject = subject(thread());
    let mut table = waiting_for(subject, EnqueueCall { is_group: true, ..launch(5) });
    table.wait(2 * PATIENCE);
    rounds(&mut table);
    assert_eq!(counts(&subject).in_flight, 1, "it may not have begun");
    go_on(&mut table);
    table.finish(false);
    assert_eq!((counts(&subject).opened, counts(&subject).lost.total()), (1, 0));
}

#[test]
fn graph_is_empty_if_last_flush_has_no_record() {
    let subject = subject(thread());
    let mut table = waiting_for(subject, EnqueueCall { is_group: true, ..launch(5) });
    table.finish(true);
    assert_eq!((counts(&subject).opened, counts(&subject).lost.total()), (1, 0));
}

/// The dropped records may be of the graph.
#[test]
fn dropped_records_lose_calls_with_graphs() {
    let thread = thread();
    let (one, other) = (subject(thread), subject(thread));
    let mut table = waiting_for(one, EnqueueCall { is_group: true, ..launch(5) });
    table.claim([call(other, &[7])]);
    table.note_dropped(1);
    [activity(5, 5, 15), activity(7, 20, 25)].iter().for_each(|of| table.take(of));
    table.finish(true);
    assert_eq!((counts(&one).opened, counts(&one).lost.total()), (0, 1));
    assert_eq!((counts(&other).opened, counts(&other).lost.total()), (1, 0));
}

/// A launch of the same graph as others, on a stream of its own.
fn replay(correlation: u32) -> EnqueueCall {
    let graph = Some(GraphExec { handle: NonZeroUsize::MIN, changes: 0 });
    let stream = Some(0x1000 + correlation as usize);
    EnqueueCall { is_graph: true, is_group: true, graph, stream, ..launch(correlation) }
}

/// Adds a call that makes this launch, and so many records of it.
fn add_replay(table: &mut Table, of: OpenedFunction, launched: EnqueueCall, records: u64) {
    let mut call = new_call();
    let frame = call.enter(of).unwrap();
    note(&mut call, &launched);
    call.leave(at(frame), None, |_| DeviceId::Cuda(0));
    table.claim([call]);
    for node in 1..=records {
        table.take(&activity(launched.correlation, 100 * node, 100 * node + 10));
    }
}

/// CUPTI does not count all records that it loses.
#[test]
fn graph_with_fewer_records_than_before_is_lost() {
    let subject = subject(thread());
    let mut table = Table::new();
    for (id, records) in [(1, 2), (2, 3), (3, 0), (4, 3)] {
        add_replay(&mut table, subject, replay(id), records);
    }
    let changed = Some(GraphExec { handle: NonZeroUsize::MIN, changes: 1 });
    add_replay(&mut table, subject, EnqueueCall { graph: changed, ..replay(5) }, 2);
    table.finish(true);
    assert_eq!((counts(&subject).opened, counts(&subject).lost.of(Lost::Records)), (3, 2));
}

#[test]
fn graph_is_complete_once_it_has_as_many_records_as_others() {
    let subject = subject(thread());
    let mut table = Table::new();
    (0..100).for_each(|id| add_replay(&mut table, subject, replay(id), 3));
    table.finish(false);
    assert_eq!(counts(&subject).opened, 0, "none has a later launch on its stream");
    rounds(&mut table);
    assert_eq!(counts(&subject).opened, 100);
    add_replay(&mut table, subject, replay(100), 3);
    add_replay(&mut table, subject, replay(101), 2);
    rounds(&mut table);
    assert_eq!((counts(&subject).opened, counts(&subject).in_flight), (101, 1));
    table.take(&activity(101, 300, 310));
    table.finish(false);
    assert_eq!((counts(&subject).opened, counts(&subject).lost.total()), (102, 0));
    // The number was wrong after all.
    table.take(&activity(101, 400, 410));
    add_replay(&mut table, subject, replay(102), 3);
    rounds(&mut table);
    assert_eq!(counts(&subject).in_flight, 1);
}

#[test]
fn launch_that_lacks_records_loses_its_call() {
    let subject = subject(thread());
    let launched = EnqueueCall { is_graph: true, is_group: true, lacks_records: true, ..launch(5) };
    let mut table = with_graph(subject, launched);
    rounds(&mut table);
    assert_eq!((counts(&subject).opened, counts(&subject).lost.total()), (0, 1));
}

/// CUPTI refused to record a copy, so there is no use in waiting for its record.
#[test]
fn launch_without_records_loses_functions_around_it() {
    let thread = thread();
    let [outer, copies, other] = [(); 3].map(|()| subject(thread));
    let mut call = new_call();
    let outer_frame = call.enter(outer).unwrap();
    for (inner, lacks_records) in [(copies, true), (other, false)] {
        let frame = call.enter(inner).unwrap();
        note(&mut call, &EnqueueCall { lacks_records, ..launch(5) });
        call.leave(at(frame), None, |_| DeviceId::Cuda(0));
    }
    call.leave(at(outer_frame), None, |_| DeviceId::Cuda(0));
    let mut table = Table::new();
    table.claim([call]);
    table.take(&activity(5, 10, 20));
    table.finish(false);
    for (subject, opened) in [(outer, 0), (copies, 0), (other, 1)] {
        assert_eq!((counts(&subject).opened, counts(&subject).lost.total()), (opened, 1 - opened));
    }
}

#[test]
fn last_graph_completes_after_a_while() {
    let subject = subject(thread());
    let mut table = waiting_for(subject, EnqueueCall { is_group: true, ..launch(5) });
    table.take(&activity(5, 5, 15));
    rounds(&mut table);
    assert_eq!(counts(&subject).opened, 0);
    table.wait(2 * PATIENCE);
    table.finish(false);
    assert_eq!(counts(&subject).opened, 1);
    // Not taken for a record of a call that has not ended.
    let before = records::LATE.load(Relaxed);
    table.take(&activity(5, 20, 30));
    assert!(records::LATE.load(Relaxed) > before);
}

#[test]
fn call_without_record_is_lost_once_gpu_has_gone_on() {
    let subject = subject(thread());
    let mut table = Table::new();
    table.claim([call(subject, &[1, 2])]);
    table.take(&activity(1, 10, 20));
    table.wait(2 * PATIENCE);
    table.finish(false);
    assert_eq!(counts(&subject).in_flight, 1, "its kernel may run for long");
    go_on(&mut table);
    table.finish(false);
    assert_eq!((counts(&subject).in_flight, counts(&subject).lost.total()), (0, 1));
}

#[test]
fn call_without_record_is_lost_after_longest_patience() {
    let subject = subject(thread());
    let mut table = Table::new();
    table.claim([call(subject, &[1, 2])]);
    table.take(&activity(1, 10, 20));
    table.wait(2 * LONGEST_PATIENCE);
    table.finish(false);
    assert_eq!((counts(&subject).in_flight, counts(&subject).lost.total()), (0, 1));
}

#[test]
fn missing_records_are_lost_in_the_end() {
    let subject = subject(thread());
    let mut table = Table::new();
    table.claim([call(subject, &[1]), call(subject, &[2])]);
    table.take(&activity(2, 1, 2));
    table.finish(true);
    assert_eq!((counts(&subject).opened, counts(&subject).in_flight), (1, 1));
    table.give_up();
    assert_eq!(counts(&subject).lost.total(), 1);
}

/// Its row has counted it already.
#[test]
fn part_that_comes_after_the_last_report_is_lost() {
    let [recorded, late] = [(); 2].map(|()| subject(thread()));
    let mut table = Table::new();
    table.claim([call(recorded, &[1])]);
    table.take(&activity(1, 10, 20));
    table.finish(true);
    table.give_up();
    table.claim([call(late, &[2])]);
    table.take(&activity(2, 30, 40));
    table.finish(true);
    assert_eq!((counts(&recorded).opened, counts(&late).lost.of(Lost::Unfinished)), (1, 1));
}

#[test]
fn long_call_waits_behind_many_short_ones() {
    let (long, short) = (subject(thread()), subject(thread()));
    let mut table = Table::new();
    table.claim([call(long, &[1])]);
    for round in 0..2 {
        let ids = (0..MAX_WAITING as u32).map(|nth| 10 + 10_000 * round + nth);
        table.claim(ids.clone().map(|id| call(short, &[id])));
        ids.for_each(|id| table.take(&activity(id, 10, 20)));
        table.finish(false);
    }
    assert_eq!(counts(&short).opened, 2 * MAX_WAITING as u64);
    assert_eq!((counts(&long).in_flight, counts(&long).lost.total()), (1, 0));
}

#[test]
fn oldest_of_too_many_calls_are_lost() {
    let (old, new) = (subject(thread()), subject(thread()));
    let before = records::CROWDED_OUT.load(Relaxed);
    let mut table = Table::new();
    table.claim([call(old, &[1]), call(old, &[2])]);
    table.claim((0..MAX_WAITING as u32).map(|nth| call(new, &[10 + nth])));
    table.finish(false);
    assert_eq!((counts(&old).in_flight, counts(&old).lost.total()), (0, 2));
    assert_eq!(counts(&new).in_flight, MAX_WAITING as u64);
    // Other tests may lose calls in this way meanwhile.
    assert!(records::CROWDED_OUT.load(Relaxed) >= before + 2);
    // Its record comes too late.
    table.take(&activity(1, 10, 20));
}

#[test]
fn call_without_launches_is_complete_at_once() {
    let subject = subject(thread());
    let mut table = Table::new();
    table.claim([call(subject, &[])]);
    table.finish(false);
    assert_eq!(counts(&subject).opened, 1);
}

/// Runs a function inside the call, with these launches, and hands over what is long enough.
#[allow(clippy::vec_box, reason = "threads hold their calls as boxes")]
fn run_inner(call: &mut OpenCall, of: OpenedFunction, ids: &[u32], parts: &mut Vec<Box<OpenCall>>) {
    let frame = call.enter(of).unwrap();
    ids.iter().for_each(|&id| note(call, &launch(id)));
    let position = call.position(frame.nth).unwrap();
    assert!(!call.leave(position, None, |_| DeviceId::Cuda(0)));
    if call.is_long() {
        let mut part = Box::default();
        call.split_off(&mut part, Lost::Long);
        parts.push(part);
    }
}

/// Records calls with 10 ns for each launch.
#[allow(clippy::vec_box, reason = "threads hold their calls as boxes")]
fn record_all(calls: Vec<Box<OpenCall>>) {
    let mut table = Table::new();
    let ids = table.add_made();
    table.claim(calls);
    for id in ids {
        table.take(&activity(id, 20 * u64::from(id) + 20, 20 * u64::from(id) + 30));
    }
    table.finish(false);
    assert!(table.is_empty());
}

/// The limits are half of what a call keeps at once.
#[test]
fn call_within_the_limits_is_not_split() {
    let thread = thread();
    let [outer, inner] = [(); 2].map(|()| subject(thread));
    let (mut call, mut parts) = (new_call(), Vec::new());
    let frame = call.enter(outer).unwrap();
    (0..4_095).for_each(|nth| run_inner(&mut call, inner, &[nth], &mut parts));
    assert!(call.leave(at(frame), None, |_| DeviceId::Cuda(0)) && parts.is_empty());
    record_all(vec![call]);
    assert_eq!((counts(&outer).opened, counts(&inner).opened), (1, 4_095));
}

#[test]
fn functions_inside_a_long_call_are_recorded_in_parts() {
    let thread = thread();
    let [outer, inner] = [(); 2].map(|()| subject(thread));
    let (mut call, mut parts) = (new_call(), Vec::new());
    let frame = call.enter(outer).unwrap();
    for nth in 0..20_000 {
        note(&mut call, &launch(1_000_000 + nth));
        run_inner(&mut call, inner, &[nth], &mut parts);
        assert!(call.frames.len() <= 4_097 && call.position(frame.nth) == Some(0));
    }
    assert_eq!(parts.len(), 4);
    assert_eq!((counts(&outer).in_flight, counts(&inner).in_flight), (1, 20_000));
    assert!(call.leave(0, None, |_| DeviceId::Cuda(0)));
    parts.push(call);
    record_all(parts);
    assert_eq!((counts(&outer).lost.of(Lost::Long), counts(&inner).opened), (1, 20_000));
    let report = inner.of.site.series()[0].series.times().opened().cloned().unwrap();
    assert_eq!((report.kernels_per_call, report.busy_ns.unwrap().sum), (Some(1.0), 200_000.0));
}

/// A function with many launches is split only if it is the outermost one, as long as there is room.
#[test]
fn function_between_stays_whole() {
    let thread = thread();
    let [outer, between, inner] = [(); 3].map(|()| subject(thread));
    let (mut call, mut parts) = (new_call(), Vec::new());
    let outermost = call.enter(outer).unwrap();
    for round in 0..4 {
        let frame = call.enter(between).unwrap();
        (0..4_000).for_each(|nth| run_inner(&mut call, inner, &[4_000 * round + nth], &mut parts));
        assert_eq!(parts.len() as u32, round / 2);
        let position = call.position(frame.nth).unwrap();
        call.leave(position, None, |_| DeviceId::Cuda(0));
        if call.is_long() {
            let mut part = Box::default();
            call.split_off(&mut part, Lost::Long);
            parts.push(part);
        }
    }
    call.leave(at(outermost), None, |_| DeviceId::Cuda(0));
    parts.push(call);
    record_all(parts);
    assert_eq!((counts(&outer).lost.of(Lost::Long), counts(&between).opened), (1, 4));
    assert_eq!(counts(&inner).opened, 16_000);
}

/// A short function inside a long one is whole, wherever the long one is split.
#[test]
fn only_long_functions_are_split() {
    let thread = thread();
    let [outer, long, short, inner] = [(); 4].map(|()| subject(thread));
    let (mut call, mut parts) = (new_call(), Vec::new());
    let outermost = call.enter(outer).unwrap();
    let within = call.enter(long).unwrap();
    for nth in 0..5_000 {
        let frame = call.enter(short).unwrap();
        (0..3).for_each(|of| run_inner(&mut call, inner, &[3 * nth + of], &mut parts));
        let position = call.position(frame.nth).unwrap();
        call.leave(position, None, |_| DeviceId::Cuda(0));
    }
    assert!(parts.len() > 1, "{}", parts.len());
    for frame in [within, outermost] {
        let position = call.position(frame.nth).unwrap();
        call.leave(position, None, |_| DeviceId::Cuda(0));
    }
    parts.push(call);
    record_all(parts);
    assert_eq!((counts(&outer).lost.of(Lost::Long), counts(&long).lost.of(Lost::Long)), (1, 1));
    assert_eq!((counts(&short).opened, counts(&inner).opened), (5_000, 15_000));
    let report = short.of.site.series()[0].series.times().opened().cloned().unwrap();
    assert_eq!(report.kernels_per_call, Some(3.0));
}

/// Functions that wait for something stay in the call with all their launches.
#[test]
fn suspended_function_is_not_split() {
    let thread = thread();
    let [outer, waiting, inner] = [(); 3].map(|()| subject(thread));
    let (mut call, mut parts) = (new_call(), Vec::new());
    let outermost = call.enter(outer).unwrap();
    run_inner(&mut call, inner, &[1], &mut parts);
    let frame = call.enter(waiting).unwrap();
    run_inner(&mut call, inner, &[2], &mut parts);
    note(&mut call, &launch(3));
    call.at = Some(0);
    (10..10_000).for_each(|nth| run_inner(&mut call, inner, &[nth], &mut parts));
    assert_eq!(parts.len(), 2);
    let position = call.position(frame.nth).unwrap();
    call.go_on(position);
    note(&mut call, &launch(4));
    call.leave(position, None, |_| DeviceId::Cuda(0));
    call.leave(at(outermost), None, |_| DeviceId::Cuda(0));
    parts.push(call);
    record_all(parts);
    assert_eq!((counts(&waiting).opened, counts(&inner).opened), (1, 9_992));
    let report = waiting.of.site.series()[0].series.times().opened().cloned().unwrap();
    assert_eq!(report.kernels_per_call, Some(3.0));
}

/// The functions around the launches that are too many are lost, and no others.
#[test]
fn too_many_launches_of_one_function_lose_it() {
    let thread = thread();
    let [outer, inner, big] = [(); 3].map(|()| subject(thread));
    let (mut call, mut parts) = (new_call(), Vec::new());
    let frame = call.enter(outer).unwrap();
    run_inner(&mut call, inner, &[1], &mut parts);
    run_inner(&mut call, big, &(10..170_000).collect::<Vec<_>>(), &mut parts);
    run_inner(&mut call, inner, &[2], &mut parts);
    call.leave(at(frame), None, |_| DeviceId::Cuda(0));
    parts.push(call);
    record_all(parts);
    assert_eq!((counts(&outer).lost.of(Lost::Long), counts(&big).lost.of(Lost::Long)), (1, 1));
    assert_eq!(counts(&inner).opened, 2);
}

#[test]
fn abandoned_call_loses_what_has_not_ended() {
    let thread = thread();
    let [outer, inner] = [(); 2].map(|()| subject(thread));
    let (mut call, mut parts) = (new_call(), Vec::new());
    call.enter(outer).unwrap();
    run_inner(&mut call, inner, &[1], &mut parts);
    call.give_up();
    record_all(vec![call]);
    assert_eq!((counts(&outer).lost.of(Lost::Unfinished), counts(&inner).opened), (1, 1));
}

/// The order in which a thread's variables are destroyed is not specified, so one is used before the opened call's
/// place and one after.
#[test]
fn ending_thread_cannot_open_calls() {
    struct AtEnd(mpsc::Sender<Lost>);
    impl Drop for AtEnd {
        fn drop(&mut self) {
            self.0.send(why_not_entered()).unwrap();
        }
    }
    thread_local! {
        static EARLY: Cell<Option<AtEnd>> = const { Cell::new(None) };
        static LATE: Cell<Option<AtEnd>> = const { Cell::new(None) };
    }
    let (sender, reasons) = mpsc::channel();
    let thread = thread::spawn(move || {
        EARLY.set(Some(AtEnd(sender.clone())));
        assert!(!is_thread_ending());
        LATE.set(Some(AtEnd(sender)));
    });
    thread.join().unwrap();
    let reasons: Vec<_> = reasons.iter().collect();
    assert_eq!(reasons.len(), 2);
    assert!(reasons.contains(&Lost::Unfinished) && reasons.contains(&Lost::Records), "{reasons:?}");
}

/// A guard may be dropped after the end of its thread has counted its function as lost.
#[test]
fn late_end_of_a_lost_call_does_not_end_another_one() {
    let subject = subject(thread());
    let mut call = new_call();
    let frame = call.enter(subject).unwrap();
    let identity = subject.of.identity(subject.device);
    locked(&subject.of.thread.recorder).series.begin_opened(subject.of.site, identity);
    switches::begin_recording(RecordingState::Now);
    thread::scope(|scope| {
        scope.spawn(|| {
            drop(OpenSlot(Cell::new(Some(call))));
            // Another test may take the call.
            while counts(&subject).lost.of(Lost::Unfinished) == 0 {
                Table::new().0.collect_from(DrainKind::Completed, |_, _| DrainOutcome::default());
            }
            lose(frame, &subject.of, Lost::Unfinished);
        });
    });
    assert_eq!((counts(&subject).lost.of(Lost::Unfinished), counts(&subject).in_flight), (1, 1));
}

/// The device of a call is known only when it has launched something.
#[test]
fn open_call_is_in_flight_on_one_device() {
    let subject = OpenedFunction { device: DeviceId::Unknown, ..subject(thread()) };
    let mut open = new_call();
    let frame = open.enter(subject).unwrap();
    assert_eq!(counts(&subject).in_flight, 1);
    open.leave(at(frame), None, |_| DeviceId::Cuda(0));
    assert_eq!((counts(&subject).timed, counts(&subject).in_flight), (1, 1));
    locked(&subject.of.thread.recorder).series.lose_opened(Lost::Unfinished);
    record_all(vec![open]);
    assert_eq!((counts(&subject).lost.of(Lost::Unfinished), counts(&subject).opened), (1, 0));
}

/// The context of the launch may be gone when the call ends, so that the driver cannot name its device.
#[test]
fn records_name_the_device_of_a_call() {
    let on = |device| OpenedFunction { device, ..subject(thread()) };
    let [outer, inner, idle] = [DeviceId::Unknown, DeviceId::Cuda(0), DeviceId::Cuda(0)].map(on);
    let mut call = new_call();
    let frames = [outer, inner, idle].map(|subject| {
        let frame = call.enter(subject).unwrap();
        (call.at, frame)
    });
    for (id, (at, _)) in [(1, frames[0]), (2, frames[1]), (3, frames[0])] {
        call.at = at;
        note(&mut call, &launch(id));
    }
    frames.iter().rev().for_each(|(_, frame)| {
        let device = call.frames[at(*frame)].subject.device;
        call.leave(at(*frame), None, |_| device);
    });
    let mut table = Table::new();
    table.claim([call]);
    // The record of the first launch comes last.
    for (id, device) in [(3, 0), (2, 1), (1, 2)] {
        table.take(&Activity { device, ..activity(id, 10, 20) });
    }
    table.finish(false);
    let devices = [outer, inner, idle].map(|subject| {
        let recorder = locked(&subject.of.thread.recorder);
        let mut counters = recorder.series.counters(0, usize::MAX).iter();
        counters.find(|of| of.counts.opened == 1).map(|of| of.id.device)
    });
    assert_eq!(devices, [2, 1, 0].map(|device| Some(DeviceId::Cuda(device))));
    assert_eq!((counts(&outer).timed, counts(&outer).in_flight), (1, 0));
}

/// Records of one launch count as well, because a graph has many.
#[test]
fn oldest_calls_are_lost_if_too_much_work_waits() {
    let (old, new) = (subject(thread()), subject(thread()));
    let mut table = Table::new();
    let ids = |round: u32| (100_000 * round..100_000 * (round + 1)).collect::<Vec<_>>();
    table.claim([call(old, &ids(0)), call(new, &[2_000_000])]);
    table.claim((1..10).map(|round| call(new, &ids(round))));
    table.finish(false);
    assert_eq!((counts(&old).in_flight, counts(&new).in_flight), (1, 10));
    (100_000..150_000).for_each(|id| table.take(&activity(id, 10, 20)));
    table.finish(false);
    assert_eq!((counts(&old).lost.of(Lost::Records), counts(&new).in_flight), (1, 10));
}

#[test]
fn functions_count_as_work_that_waits() {
    let mut call = new_call();
    let [outer, inner] = [(); 2].map(|()| subject(thread()));
    let frame = call.enter(outer).unwrap();
    (0..3).for_each(|id| run_inner(&mut call, inner, &[id], &mut Vec::new()));
    call.leave(at(frame), None, |_| DeviceId::Cuda(0));
    assert_eq!(call.work(), 4 + 3);
}

/// Threads that make short calls must not answer for a thread inside a long one.
#[test]
fn end_of_the_process_waits_for_calls_that_were_open() {
    let calls = OpenCalls { awaited: AtomicUsize::new(0), is_ending: AtomicBool::new(false) };
    let [mut long, mut short, mut later] = std::array::from_fn(|_| new_call());
    [&mut long, &mut short].into_iter().for_each(|call| calls.count(call));
    calls.is_ending.store(true, Relaxed);
    calls.count(&mut later);
    let awaited = [later, short, long].map(|call| {
        calls.count_answer(call.is_awaited);
        calls.awaited.load(Relaxed)
    });
    assert_eq!(awaited, [2, 1, 0]);
}

/// What has ended in a call that is not about to end is recorded when the process ends.
#[test]
fn end_of_the_process_splits_an_old_call() {
    let thread = thread();
    let [outer, inner] = [(); 2].map(|()| subject(thread));
    let (mut call, mut parts) = (new_call(), Vec::new());
    call.enter(outer).unwrap();
    run_inner(&mut call, inner, &[1], &mut parts);
    call.is_awaited = true;
    assert_eq!((call.due_part(false), call.due_part(true)), (None, None));
    call.frames[0].entered_ns -= 200_000_000;
    assert_eq!(call.due_part(true), Some(Lost::Unfinished));
    let mut part = new_call();
    call.split_off(&mut part, Lost::Unfinished);
    assert!(!part.is_awaited);
    // It has answered, or was opened afterwards.
    call.is_awaited = false;
    assert_eq!(call.due_part(true), None);
    record_all(vec![part]);
    assert_eq!((counts(&outer).in_flight, counts(&inner).opened), (1, 1));
}

fn opened_times(subject: OpenedFunction) -> gpu_time_report::KernelTimes {
    subject.of.site.series()[0].series.times().opened().cloned().unwrap()
}

#[test]
fn launches_of_helpers_are_not_in_the_figures_of_functions() {
    let [outer, inner] = [(); 2].map(|()| subject(thread()));
    let mut call = new_call();
    let frames = [outer, inner].map(|subject| call.enter(subject).unwrap());
    note(&mut call, &launch(21));
    [(22, 0), (23, 1), (24, 1)]
        .into_iter()
        .for_each(|(id, frame)| note_by_helper(&call, frame, id));
    for frame in frames.into_iter().rev() {
        call.leave(at(frame), None, |_| DeviceId::Cuda(0));
    }
    let mut table = Table::new();
    table.claim([call]);
    for (id, start_ns) in [(21, 100), (22, 110), (23, 120), (24, 200)] {
        table.take(&activity(id, start_ns, start_ns + 10));
    }
    table.finish(false);
    for subject in [outer, inner] {
        let times = opened_times(subject);
        assert_eq!((times.opened, times.kernels_per_call), (1, Some(1.0)));
        let [busy, span] = [times.busy_ns, times.span_ns].map(|times| times.unwrap().sum);
        assert_eq!((busy, span), (10.0, 10.0));
    }
}

#[test]
fn call_is_not_lost_with_a_launch_of_a_helper() {
    for (records, silence, is_last, expected) in [
        (&[][..], LONGEST_PATIENCE, false, (0, 1)),
        // The other record may still come.
        (&[31], PATIENCE, false, (0, 0)),
        (&[31], LONGEST_PATIENCE, false, (1, 0)),
        (&[31], PATIENCE, true, (1, 0)),
        (&[31, 32], PATIENCE, false, (1, 0)),
    ] {
        let subject = subject(thread());
        let mut call = new_call();
        let frame = call.enter(subject).unwrap();
        note(&mut call, &launch(31));
        note_by_helper(&call, 0, 32);
        call.leave(at(frame), None, |_| DeviceId::Cuda(0));
        let mut table = Table::new();
        table.claim([call]);
        records.iter().for_each(|id| table.take(&activity(*id, 10, 20)));
        table.wait(2 * silence);
        table.finish(is_last);
        let BracketCounts { opened, lost, .. } = counts(&subject);
        assert_eq!((opened, lost.total()), expected, "{records:?} {silence:?}");
        if opened == 1 {
            assert_eq!(opened_times(subject).kernels_per_call, Some(1.0));
        }
    }
}

/// Launches are where their frames are, whether or not these were handed over before.
#[test]
fn parts_of_a_call_have_the_launches_of_their_frames() {
    let functions = [(); 3].map(|()| OpenedFunction { stream: None, ..subject(thread()) });
    let [outer, inner, later] = functions;
    let mut call = new_call();
    call.enter(outer).unwrap();
    let ended = call.enter(inner).unwrap();
    call.leave(at(ended), None, |_| DeviceId::Cuda(0));
    [(41, 0), (42, 1), (43, 1), (44, 2)]
        .into_iter()
        .for_each(|(id, frame)| note_by_helper(&call, frame, id));
    let mut table = Table::new();
    table.add_made();
    table.disown(43);
    let mut part = Box::<OpenCall>::default();
    call.split_off(&mut part, Lost::Long);
    table.claim([part]);
    let frame = call.enter(later).unwrap();
    assert_eq!(frame.nth, 2);
    // Its frame has been handed over.
    note_by_helper(&call, 1, 46);
    call.leave(call.position(2).unwrap(), None, |_| DeviceId::Cuda(0));
    call.leave(0, None, |_| DeviceId::Cuda(0));
    table.claim([call]);
    assert_eq!(table.waited_for(), [vec![(41, 0), (42, 1)], vec![(44, 1)]]);
    assert!(!table.0.take(&activity(43, 10, 20)) && !table.0.take(&activity(46, 10, 20)));
}

#[test]
fn function_may_exclude_helpers_from_all_inside() {
    let [with, inside] = [(); 2].map(|()| subject(thread()));
    let spec = Spec { helpers: false, ..Spec::named("without") };
    let mut without = subject(thread());
    without.of.site = Box::leak(Box::new(CallSite::new(spec)));
    let mut call = new_call();
    let frames = [with, without, inside].map(|subject| {
        let frame = call.enter(subject).unwrap();
        (frame, call.open_frame().map(|of| of.nth))
    });
    let seen = frames.map(|(_, seen)| seen);
    assert_eq!(seen, [Some(0), None, None]);
    for (frame, _) in frames.into_iter().skip(1).rev() {
        call.leave(at(frame), None, |_| DeviceId::Cuda(0));
    }
    assert_eq!(call.open_frame().map(|of| of.nth), Some(0));
}

fn refused(call: u64, goes_on: bool) -> Refused {
    Refused { call, goes_on }
}

/// Its records need not be kept until the end of the process.
#[test]
fn call_that_is_refused_leaves_nothing() {
    let mut table = Table::new();
    let call = call(subject(thread()), &[51]);
    table.add_made();
    table.refuse(refused(call.number, false));
    assert!(!table.0.take(&activity(51, 10, 20)));
    assert_eq!(table.unended_calls(), 0);
}

/// Some of the launches may have been made in the refused part.
#[test]
fn parts_after_a_refused_one_are_lost() {
    let [outer, between] = [(); 2].map(|()| subject(thread()));
    let mut call = new_call();
    call.enter(outer).unwrap();
    let frame = call.enter(between).unwrap();
    note(&mut call, &launch(61));
    let mut table = Table::new();
    table.add_made();
    let mut part = Box::<OpenCall>::default();
    call.split_off(&mut part, Lost::Long);
    table.refuse(refused(part.number, true));
    note(&mut call, &launch(62));
    call.leave(call.position(frame.nth).unwrap(), None, |_| DeviceId::Cuda(0));
    call.leave(0, None, |_| DeviceId::Cuda(0));
    table.claim([call]);
    [61, 62].into_iter().for_each(|id| table.take(&activity(id, 10, 20)));
    table.finish(false);
    assert_eq!((counts(&between).opened, counts(&between).lost.of(Lost::Records)), (0, 1));
    assert_eq!(table.unended_calls(), 0);
}

#[test]
fn records_beyond_the_limit_lose_every_part() {
    let [outer, between] = [(); 2].map(|()| subject(thread()));
    let mut call = new_call();
    call.enter(outer).unwrap();
    let ended = call.enter(subject(thread())).unwrap();
    note(&mut call, &EnqueueCall { is_group: true, ..launch(91) });
    call.leave(at(ended), None, |_| DeviceId::Cuda(0));
    let frame = call.enter(between).unwrap();
    note(&mut call, &launch(92));
    let mut table = Table::new();
    (0..MAX_ACTIVITIES).for_each(|_| table.take(&activity(91, 10, 20)));
    table.take(&activity(92, 30, 40));
    let mut part = Box::<OpenCall>::default();
    call.split_off(&mut part, Lost::Long);
    table.claim([part]);
    call.leave(call.position(frame.nth).unwrap(), None, |_| DeviceId::Cuda(0));
    call.leave(0, None, |_| DeviceId::Cuda(0));
    table.claim([call]);
    table.finish(false);
    assert_eq!((counts(&between).opened, counts(&between).lost.of(Lost::Records)), (0, 1));
}

#[cfg(feature = "kernels")]
#[test]
fn late_record_of_a_graph_that_a_window_knows_is_counted() {
    let subject = subject(thread());
    let mut table = Table::new();
    table.windows.open(100, 0, false);
    let mut call = new_call();
    let frame = call.enter(subject).unwrap();
    let launched = EnqueueCall { is_group: true, ..launch(71) };
    let owner = call.note(&launched);
    table.add(NotedLaunch { is_in_window: true, ..NotedLaunch::new(&launched, owner, None) });
    call.leave(at(frame), None, |_| DeviceId::Cuda(0));
    table.claim([call]);
    table.take(&activity(71, 10, 20));
    go_on(&mut table);
    rounds(&mut table);
    assert_eq!(counts(&subject).opened, 1);
    let before = records::LATE.load(Relaxed);
    table.take(&activity(71, 300, 310));
    assert!(records::LATE.load(Relaxed) > before);
}

/// The call may have ended before the collector learns that the launch does not belong to it, or even before the launch.
#[test]
fn disowned_launch_is_not_waited_for() {
    let subject = subject(thread());
    let mut call = new_call();
    let (number, frame) = (call.number, call.enter(subject).unwrap());
    note(&mut call, &launch(81));
    note_by_helper(&call, 0, 82);
    call.leave(at(frame), None, |_| DeviceId::Cuda(0));
    let mut table = Table::new();
    table.claim([call]);
    table.disown(82);
    table.take(&activity(81, 10, 20));
    table.finish(false);
    assert_eq!((counts(&subject).opened, counts(&subject).in_flight), (1, 0));
    let late = OpenCall { number, ..OpenCall::default() };
    note_by_helper(&late, 0, 83);
    table.add_made();
    table.disown(83);
    assert_eq!(table.unended_calls(), 0);
}
