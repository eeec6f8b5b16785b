//! Launches of helper threads: threads that are inside of no annotated function, while exactly one thread is.
//!
//! Libraries hand work to threads of their own, which no one can annotate. What such a thread enqueues while one thread
//! is inside of an opened call most likely belongs to that call. With several such threads there is no telling which.
//!
//! A helper thread leaves its launches in a queue. The [collector](super::collector) takes them after the calls that have
//! ended, and hands them to their calls: a launch is in the queue before its call has ended, or is withdrawn.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::cuda;
use crate::record::open_frames::{self, OnlyThread};
use crate::record::opened::foreign_launches;
use crate::record::opened::open_call::{Adoption, HelperLaunch, OpenCall};
use crate::record::opened::queue::ArrayQueue;
use crate::types::activity::EnqueueCall;

/// The maximum number of launches since the last collection. Phases are collected after a quarter of that.
const MAX_QUEUED: usize = 16_384;
/// The maximum number of launches that wait for the end of their calls. Further ones belong to no call.
const MAX_WAITING: usize = 65_536;

enum HelperEvent {
    Launch(HelperLaunch),
    /// The launch with this correlation id, which was noted before, has failed, or its call has ended meanwhile.
    Withdrawn(u32),
}

struct HelperQueue {
    /// Allocated before the first opened call, and never freed.
    queue: OnceLock<ArrayQueue<HelperEvent>>,
    /// The number of launches that wait for the end of their calls, those in the queue included.
    waiting: AtomicUsize,
}

static NOTED: HelperQueue = HelperQueue { queue: OnceLock::new(), waiting: AtomicUsize::new(0) };

/// Makes room for launches. Must be called before a call is opened.
pub(super) fn prepare() {
    NOTED.queue.get_or_init(|| ArrayQueue::new(MAX_QUEUED));
}

/// A launch of a helper thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HelpedBy {
    /// It belongs to an opened call.
    Opened,
    /// It belongs to a call that is not recorded. Recorded ones stand for that.
    Unrecorded,
}

/// Notes a launch of the calling thread, which must be inside of no function. Returns `None` if it belongs to none. Called
/// from CUPTI's callback, so it takes no lock and allocates nothing.
pub(super) fn note(launched: &EnqueueCall) -> Option<HelpedBy> {
    // What goes into a graph does not run then.
    if launched.capture.is_some() || launched.lacks_records {
        return None;
    }
    let only = match open_frames::only_thread()? {
        OnlyThread::Frame(only) => only,
        OnlyThread::Unrecorded => return Some(HelpedBy::Unrecorded),
    };
    if NOTED.waiting.load(Relaxed) >= MAX_WAITING {
        return None;
    }
    let launch = HelperLaunch {
        call: only.frame.call,
        frame: only.frame.nth,
        launched: *launched,
        enqueued_ns: cuda::now_ns(),
    };
    // Before the collector can take it.
    foreign_launches::remove(launched.correlation);
    NOTED.waiting.fetch_add(1, Relaxed);
    if NOTED.queue.get().is_none_or(|queue| queue.push(HelperEvent::Launch(launch)).is_err()) {
        note_left(1);
        foreign_launches::add(launched.correlation);
        return None;
    }
    if !only.is_still_open() {
        withdraw(launched.correlation);
        return None;
    }
    Some(HelpedBy::Opened)
}

/// Forgets a failed launch of the calling thread, if it was [noted](note).
pub(super) fn note_failure(correlation: u32) {
    if !foreign_launches::contains(correlation) {
        withdraw(correlation);
    }
}

fn withdraw(correlation: u32) {
    foreign_launches::add(correlation);
    // Without room, the call waits in vain for the records.
    _ = NOTED.queue.get().map(|queue| queue.push(HelperEvent::Withdrawn(correlation)));
}

/// Launches whose calls have not ended.
pub(super) struct HelperLaunches {
    /// By the number of the call.
    waiting: BTreeMap<u64, Vec<HelperLaunch>>,
}

impl HelperLaunches {
    pub const fn new() -> HelperLaunches {
        HelperLaunches { waiting: BTreeMap::new() }
    }

    /// Takes what was noted since the last time.
    pub fn take_noted(&mut self) {
        let Some(queue) = NOTED.queue.get() else { return };
        // Bounded, because launches may be noted as fast as they are taken.
        for event in (0..MAX_QUEUED).map_while(|_| queue.pop()) {
            match event {
                HelperEvent::Launch(launch) => self.add(launch),
                HelperEvent::Withdrawn(correlation) => self.forget(correlation),
            }
        }
    }

    fn add(&mut self, launch: HelperLaunch) {
        self.waiting.entry(launch.call).or_default().push(launch);
    }

    fn forget(&mut self, correlation: u32) {
        for launches in self.waiting.values_mut() {
            let is_it = |of: &HelperLaunch| of.launched.correlation == correlation;
            if let Some(at) = launches.iter().rposition(is_it) {
                launches.remove(at);
                return note_left(1);
            }
        }
    }

    /// Moves the launches of a call to the call, which has ended, or of which a part has.
    pub fn give_to(&mut self, call: &mut OpenCall) {
        let Some(mut launches) = self.waiting.remove(&call.number) else { return };
        let before = launches.len();
        launches.retain(|launch| match call.adopt(launch) {
            Adoption::Adopted => false,
            Adoption::Later => true,
            Adoption::Never => {
                foreign_launches::add(launch.launched.correlation);
                false
            }
        });
        note_left(before - launches.len());
        if !launches.is_empty() {
            self.waiting.insert(call.number, launches);
        }
    }

    /// Forgets all launches, because no call is left that they may belong to.
    pub fn clear(&mut self) {
        note_left(self.waiting.values().map(Vec::len).sum());
        self.waiting.clear();
    }
}

/// Notes that this many launches do not wait any more.
fn note_left(launches: usize) {
    let without = |waiting: usize| Some(waiting.saturating_sub(launches));
    // Always succeeds. Tests add launches that were never noted.
    _ = NOTED.waiting.fetch_update(Relaxed, Relaxed, without);
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::record::opened::collector::Collector;
    use crate::record::opened::graph_sizes::GraphSizes;
    use crate::record::opened::tests::{activity, call, counts, launch, subject, thread};
    use crate::record::opened::waiting_call::{LONGEST_PATIENCE, Outlook, PATIENCE, WaitingCall};
    use crate::record::opened::{FrameId, OpenedFunction};
    use crate::record::stream_progress::StreamProgress;
    use crate::site::callsite::CallSite;
    use crate::types::{attribute::Spec, device::DeviceId, sample::Lost};

    const CALL: u64 = 5;

    fn by_helper(correlation: u32, frame: u64) -> HelperLaunch {
        HelperLaunch { call: CALL, frame, launched: launch(correlation), enqueued_ns: 0 }
    }

    /// Returns the correlation ids and the frames of the launches of helper threads in a call.
    fn adopted(call: &OpenCall) -> Vec<(u32, u32)> {
        let launches = call.launches.iter().filter(|of| of.is_by_helper);
        launches.map(|of| (of.correlation, of.frame)).collect()
    }

    fn report(subject: OpenedFunction) -> gpu_time_report::KernelTimes {
        subject.of.site.series()[0].series.times().opened().cloned().unwrap()
    }

    #[test]
    fn launches_of_helpers_are_not_in_the_figures_of_functions() {
        let [outer, inner] = [(); 2].map(|()| subject(thread()));
        let mut call = Box::<OpenCall>::default();
        let frames = [outer, inner].map(|subject| call.enter(subject).unwrap());
        call.note(&launch(21));
        for FrameId { nth, .. } in frames.into_iter().rev() {
            call.leave(nth as usize, None, |_| DeviceId::Cuda(0));
        }
        for (id, frame) in [(22, 0), (23, 1), (24, 1)] {
            assert!(matches!(call.adopt(&by_helper(id, frame)), Adoption::Adopted));
        }
        let mut collector = Collector::new();
        collector.claim([call]);
        for (id, start_ns) in [(21, 100), (22, 110), (23, 120), (24, 200)] {
            collector.take(&activity(id, start_ns, start_ns + 10));
        }
        collector.finish(false);
        for subject in [outer, inner] {
            let times = report(subject);
            assert_eq!((times.opened, times.kernels_per_call), (1, Some(1.0)));
            let [busy, span] = [times.busy_ns, times.span_ns].map(|times| times.unwrap().sum);
            assert_eq!((busy, span), (10.0, 10.0));
        }
    }

    #[test]
    fn call_is_not_lost_with_a_launch_of_a_helper() {
        let subject = subject(thread());
        let mut ended = call(subject, &[31]);
        ended.adopt(&by_helper(32, 0));
        let mut waiting = WaitingCall::new(ended);
        let (progress, sizes) = (StreamProgress::new(), GraphSizes::new());
        let outlook = |waiting: &WaitingCall, silence, is_last| {
            waiting.outlook(&progress, &sizes, Instant::now() + silence, is_last)
        };
        let [soon, late] = [PATIENCE, LONGEST_PATIENCE].map(|patience| patience * 2);
        assert_eq!(outlook(&waiting, late, false), Outlook::Lost);
        waiting.take(&activity(31, 10, 20), 0, None);
        // The other record may still come.
        assert_eq!(outlook(&waiting, soon, false), Outlook::MoreExpected);
        assert_eq!(outlook(&waiting, late, false), Outlook::Complete);
        assert_eq!(outlook(&waiting, soon, true), Outlook::Complete);
        waiting.take(&activity(32, 30, 40), 1, None);
        assert_eq!(outlook(&waiting, soon, false), Outlook::Complete);
        waiting.record(None, None);
        assert_eq!((counts(&subject).opened, report(subject).kernels_per_call), (1, Some(1.0)));
    }

    #[test]
    fn parts_of_a_call_have_the_launches_for_their_frames() {
        let functions = [(); 3].map(|()| OpenedFunction { stream: None, ..subject(thread()) });
        let [outer, inner, later] = functions;
        let mut call = Box::<OpenCall>::default();
        call.number = CALL;
        call.enter(outer).unwrap();
        let inner = call.enter(inner).unwrap();
        call.leave(inner.nth as usize, None, |_| DeviceId::Cuda(0));
        let mut launches = HelperLaunches::new();
        for (id, frame) in [(41, 0), (42, 1), (43, 1), (44, 2)] {
            launches.add(by_helper(id, frame));
        }
        launches.add(HelperLaunch { call: CALL + 1, ..by_helper(45, 0) });
        launches.forget(43);
        let mut part = Box::<OpenCall>::default();
        call.split_off(&mut part, Lost::Long);
        launches.give_to(&mut part);
        assert_eq!(adopted(&part), [(41, 0), (42, 1)]);
        let frame = call.enter(later).unwrap();
        assert_eq!(frame.nth, 2);
        // Its frame has been handed over.
        launches.add(by_helper(46, 1));
        launches.give_to(&mut call);
        let left: usize = launches.waiting.values().map(Vec::len).sum();
        assert_eq!((adopted(&call), left), (vec![(44, 1)], 1));
        launches.clear();
        assert!(launches.waiting.is_empty());
    }

    #[test]
    fn function_may_exclude_helpers_from_all_inside() {
        let [with, inside] = [(); 2].map(|()| subject(thread()));
        let spec = Spec { helpers: false, ..Spec::named("without") };
        let mut without = subject(thread());
        without.of.site = Box::leak(Box::new(CallSite::new(spec)));
        let mut call = Box::<OpenCall>::default();
        let frames = [with, without, inside].map(|subject| {
            let frame = call.enter(subject).unwrap();
            (frame, call.open_frame().map(|of| of.nth))
        });
        let seen = frames.map(|(_, seen)| seen);
        assert_eq!(seen, [Some(0), None, None]);
        for (frame, _) in frames.into_iter().skip(1).rev() {
            call.leave(frame.nth as usize, None, |_| DeviceId::Cuda(0));
        }
        assert_eq!(call.open_frame().map(|of| of.nth), Some(0));
    }
}
