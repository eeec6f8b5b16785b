//! Attributes the activities of an opened call to the functions that were active when their work
//! was enqueued.

use std::collections::BTreeMap;

use crate::stats::kernels::{CallFigures, WorkTime};
use crate::types::activity::Activity;
use crate::types::device::DeviceId;
use crate::types::stream_id::StreamId;

/// The longest time from the call that launches a kernel to its start on an idle GPU. An idle H200 starts a kernel
/// within some microseconds of that call.
const LAUNCH_LATENCY_NS: u64 = 10_000;

/// The start and the end of some work on the GPU, in nanoseconds.
type GpuInterval = (u64, u64);

/// An activity, and the index of the frame that was innermost when its launch was made.
pub(super) struct AttributedActivity {
    pub frame: u32,
    pub activity: Activity,
    /// The time at which the host enqueued it, on CUPTI's clock.
    pub enqueued_ns: u64,
    /// The stream that it was enqueued on, if known.
    pub stream: Option<StreamId>,
    /// It is part of a graph, whose branches run on streams of their own.
    pub is_in_graph: bool,
    /// As in [`WorkTime`].
    pub is_after_stop: bool,
    /// A helper thread enqueued it, while the frame was innermost.
    pub is_by_helper: bool,
}

/// The activities of a call, ordered so that those of each frame are followed by those of the frames inside it.
pub(super) struct ActivitiesByFrame<'a> {
    /// In order of their start.
    activities: &'a [AttributedActivity],
    by_frame: Vec<&'a AttributedActivity>,
    works: Vec<WorkTime>,
    frames: Vec<FramePlace>,
}

/// The place of a frame's activities.
#[derive(Clone, Copy)]
struct FramePlace {
    /// The index of the frame around it, which is smaller than its own.
    parent: Option<u32>,
    begin: usize,
    /// The number of the frame's own activities.
    own: usize,
    /// The number of its activities and of those of the frames inside it.
    all: usize,
}

impl<'a> ActivitiesByFrame<'a> {
    /// Orders activities. `parent` returns the index of the frame around a given one, which is always smaller.
    pub fn new(
        frames: usize,
        parent: impl Fn(u32) -> Option<u32>,
        activities: &'a mut [AttributedActivity],
    ) -> ActivitiesByFrame<'a> {
        activities.sort_by_key(|of| of.activity.start_ns);
        let activities = &*activities;
        let frames = places(frames, parent, activities);
        let begin = |of: &AttributedActivity| Some(frames.get(of.frame as usize)?.begin);
        let mut by_frame: Vec<_> = activities.iter().filter(|of| begin(of).is_some()).collect();
        by_frame.sort_by_key(|of| begin(of));
        let works = by_frame.iter().map(|of| WorkTime {
            work: of.activity.work,
            ns: of.activity.end_ns.saturating_sub(of.activity.start_ns),
            stream: of.stream,
            is_after_stop: of.is_after_stop,
        });
        ActivitiesByFrame { works: works.collect(), activities, by_frame, frames }
    }

    /// Returns the figures of every frame, without the stream that its function names. An activity counts for the
    /// frame that launched it and for all frames around that one.
    pub fn figures(&self) -> Vec<CallFigures<'_>> {
        // From the innermost frame to the outermost, so that each hands its intervals on. Memory would grow with the
        // depth if each frame had a list of its own.
        let mut inside: Vec<_> = self.frames.iter().map(|_| BusyTime::default()).collect();
        let mut figures = Vec::with_capacity(self.frames.len());
        for (at, place) in self.frames.iter().enumerate().rev() {
            let mut busy = std::mem::take(&mut inside[at]);
            busy.unite();
            let inner_ns = busy.busy_ns();
            busy.add(&self.by_frame[place.begin..][..place.own]);
            busy.unite();
            figures.push(CallFigures {
                busy_ns: busy.busy_ns(),
                self_busy_ns: busy.busy_ns() - inner_ns,
                own_ns: BTreeMap::new(),
                span_ns: busy.span_ns(),
                waited_ns: busy.waited_ns(),
                streams: busy.streams.len() as u32,
                stream: None,
                works: &self.works[place.begin..][..place.all],
                own_works: place.own,
            });
            if let Some(outer) = place.parent {
                inside[outer as usize].join(busy);
            }
        }
        figures.reverse();
        for (of, (start_ns, end_ns)) in own_intervals(self.activities) {
            if let Some(figures) = figures.get_mut(of.frame as usize) {
                let device = DeviceId::Cuda(of.activity.device);
                *figures.own_ns.entry(device).or_default() += end_ns - start_ns;
            }
        }
        figures
    }
}

/// Returns the place of each frame's activities if those of the frames inside it follow its own.
fn places(
    frames: usize,
    parent: impl Fn(u32) -> Option<u32>,
    activities: &[AttributedActivity],
) -> Vec<FramePlace> {
    let parents = (0..frames as u32).map(|at| parent(at).filter(|outer| *outer < at));
    let mut places: Vec<_> =
        parents.map(|parent| FramePlace { parent, begin: 0, own: 0, all: 0 }).collect();
    for of in activities {
        places.get_mut(of.frame as usize).into_iter().for_each(|place| place.own += 1);
    }
    for at in (0..frames).rev() {
        places[at].all += places[at].own;
        if let FramePlace { parent: Some(outer), all, .. } = places[at] {
            places[outer as usize].all += all;
        }
    }
    // Where the next frame inside each frame begins, and the next outermost one.
    let (mut next_inside, mut next_outermost) = (vec![0; frames], 0);
    for at in 0..frames {
        let next = match places[at].parent {
            Some(outer) => &mut next_inside[outer as usize],
            None => &mut next_outermost,
        };
        places[at].begin = *next;
        *next += places[at].all;
        next_inside[at] = places[at].begin + places[at].own;
    }
    places
}

/// The times in which the work of a frame and of the frames inside it ran.
#[derive(Default)]
struct BusyTime {
    intervals: Vec<BusyInterval>,
    /// CUPTI's ids of the contexts and streams.
    streams: Vec<(u32, u32)>,
}

/// A time in which work ran without a gap.
struct BusyInterval {
    start_ns: u64,
    end_ns: u64,
    /// The time at which the host enqueued the work that ran first.
    enqueued_ns: u64,
}

impl BusyTime {
    fn add(&mut self, activities: &[&AttributedActivity]) {
        self.intervals.extend(activities.iter().map(|of| {
            let Activity { start_ns, end_ns, .. } = of.activity;
            BusyInterval { start_ns, end_ns: end_ns.max(start_ns), enqueued_ns: of.enqueued_ns }
        }));
        self.streams.extend(activities.iter().map(|of| (of.activity.context, of.activity.stream)));
    }

    fn join(&mut self, mut other: BusyTime) {
        if self.intervals.len() < other.intervals.len() {
            std::mem::swap(self, &mut other);
        }
        self.intervals.append(&mut other.intervals);
        self.streams.append(&mut other.streams);
    }

    /// Orders the intervals, and unites those without a gap between them.
    fn unite(&mut self) {
        // The sort merges what is in order already.
        self.intervals.sort_by_key(|interval| interval.start_ns);
        self.intervals.dedup_by(|next, last| {
            let is_gapless = next.start_ns <= last.end_ns;
            if is_gapless {
                last.end_ns = last.end_ns.max(next.end_ns);
            }
            is_gapless
        });
        self.streams.sort_unstable();
        self.streams.dedup();
    }

    fn busy_ns(&self) -> u64 {
        self.intervals.iter().map(|interval| interval.end_ns - interval.start_ns).sum()
    }

    fn span_ns(&self) -> u64 {
        match (self.intervals.first(), self.intervals.last()) {
            (Some(first), Some(last)) => last.end_ns - first.start_ns,
            _ => 0,
        }
    }

    /// Returns the total time in which nothing ran because the host had not enqueued the next work yet. Work that
    /// starts long after it was enqueued was delayed by something else, such as the work of another stream.
    fn waited_ns(&self) -> u64 {
        let waited = |gap: &[BusyInterval]| match gap {
            [before, next] if next.enqueued_ns > before.end_ns => {
                let could_start_ns = next.enqueued_ns.saturating_add(LAUNCH_LATENCY_NS);
                next.start_ns.min(could_start_ns) - before.end_ns
            }
            _ => 0,
        };
        self.intervals.windows(2).map(waited).sum()
    }
}

/// Returns each activity with the interval that counts for it: each instant of a device belongs to the activity that
/// started first. Omits activities without such an interval. The activities must be ordered by their start.
fn own_intervals(
    activities: &[AttributedActivity],
) -> impl Iterator<Item = (&AttributedActivity, GpuInterval)> {
    let mut until: BTreeMap<u32, u64> = BTreeMap::new();
    activities.iter().filter_map(move |of| {
        let Activity { start_ns, end_ns, device, .. } = of.activity;
        let until = until.entry(device).or_default();
        let start_ns = start_ns.max(*until);
        *until = end_ns.max(*until);
        (start_ns < end_ns).then_some((of, (start_ns, end_ns)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::fixtures::peak_bytes;
    use crate::types::activity::GpuWork;

    fn attributed(frame: u32, stream: u32, (start_ns, end_ns): GpuInterval) -> AttributedActivity {
        let work: &_ = Box::leak(Box::new(GpuWork {
            name: "",
            is_kernel: true,
            grid: [1; 3],
            block: [1; 3],
            registers: 0,
            shared_bytes: 0,
        }));
        let activity =
            Activity { start_ns, end_ns, correlation: 0, device: 0, context: 1, stream, work };
        AttributedActivity {
            frame,
            activity,
            enqueued_ns: 0,
            stream: None,
            is_in_graph: false,
            is_after_stop: false,
            is_by_helper: false,
        }
    }

    #[test]
    fn overlapping_intervals_count_once() {
        let intervals = [(15, 30), (10, 20), (12, 14), (40, 41)];
        let mut activities = intervals.map(|interval| attributed(0, 7, interval));
        let by_frame = ActivitiesByFrame::new(1, |_| None, &mut activities);
        assert_eq!(by_frame.figures()[0].busy_ns, 21);
        // An empty or reversed interval covers nothing.
        let mut activities = [(5, 5), (9, 7)].map(|interval| attributed(0, 7, interval));
        let by_frame = ActivitiesByFrame::new(1, |_| None, &mut activities);
        assert_eq!(by_frame.figures()[0].busy_ns, 0);
    }

    #[test]
    fn activity_counts_for_its_frame_and_outer_ones() {
        // 0 calls 1 and 3; 1 calls 2.
        let parent = |frame| [None, Some(0), Some(1), Some(0)][frame as usize];
        let mut activities = [
            attributed(2, 7, (120, 130)),
            attributed(0, 7, (100, 110)),
            attributed(1, 8, (125, 140)),
            attributed(3, 7, (150, 160)),
        ];
        let by_frame = ActivitiesByFrame::new(4, parent, &mut activities);
        let figures = by_frame.figures();
        let shown: Vec<_> = figures
            .iter()
            .map(|of| (of.busy_ns, of.self_busy_ns, of.span_ns, of.streams, of.works.len()))
            .collect();
        assert_eq!(
            shown,
            [(40, 10, 60, 2, 4), (20, 10, 20, 2, 2), (10, 10, 10, 1, 1), (10, 10, 10, 1, 1)]
        );
        // The functions' own work adds up to the work of the whole call.
        assert_eq!(figures.iter().map(|of| of.self_busy_ns).sum::<u64>(), figures[0].busy_ns);
    }

    #[test]
    fn every_instant_belongs_to_one_function() {
        // 0 calls 1 and 2, whose work overlaps.
        let parent = |frame| (frame > 0).then_some(0);
        let mut activities = [
            attributed(1, 7, (100, 140)),
            attributed(2, 8, (110, 120)),
            attributed(2, 8, (130, 160)),
            attributed(0, 9, (150, 170)),
        ];
        let by_frame = ActivitiesByFrame::new(3, parent, &mut activities);
        let figures = by_frame.figures();
        let own: Vec<_> = figures.iter().map(|of| of.own_ns[&DeviceId::Cuda(0)]).collect();
        assert_eq!(own, [10, 40, 20]);
        assert_eq!(own.iter().sum::<u64>(), figures[0].busy_ns);
    }

    #[test]
    fn devices_do_not_share_their_instants() {
        let mut activities = [attributed(0, 7, (100, 140)), attributed(0, 8, (110, 150))];
        activities[1].activity.device = 1;
        let by_frame = ActivitiesByFrame::new(1, |_| None, &mut activities);
        let figures = by_frame.figures();
        let own: Vec<_> = figures[0].own_ns.values().copied().collect();
        assert_eq!((own, figures[0].busy_ns), (vec![40, 40], 50));
    }

    #[test]
    fn gpu_waits_for_late_work() {
        let mut activities = [(100, 110, 50), (130, 140, 120), (150, 160, 139), (165, 170, 161)]
            .map(|(start, end, enqueued_ns)| AttributedActivity {
                enqueued_ns,
                ..attributed(0, 7, (start, end))
            });
        // The third was enqueued in time, so the host did not cause the gap before it.
        let by_frame = ActivitiesByFrame::new(1, |_| None, &mut activities);
        let figures = by_frame.figures();
        assert_eq!((figures[0].waited_ns, figures[0].span_ns), (20 + 5, 70));
    }

    #[test]
    fn gpu_does_not_wait_for_early_work() {
        let mut activities =
            [(1_000, 11_000, 0), (991_000, 1_001_000, 31_000)].map(|(start, end, enqueued_ns)| {
                AttributedActivity { enqueued_ns, ..attributed(0, 7, (start, end)) }
            });
        let by_frame = ActivitiesByFrame::new(1, |_| None, &mut activities);
        let figures = by_frame.figures();
        assert_eq!(figures[0].waited_ns, 20_000 + LAUNCH_LATENCY_NS);
    }

    /// As when futures inside a call take turns, the frames inside a frame do not follow each other.
    #[test]
    fn random_frames_agree_with_lists_of_their_activities() {
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..200 {
            let parents: Vec<_> = (0..20_u32).map(|at| (at > 0).then(|| rng.u32(0..at))).collect();
            let parent = |at: u32| parents[at as usize];
            let mut activities: Vec<_> = (0..50)
                .map(|at| {
                    let (frame, start) = (rng.u32(0..20), 100_000 * rng.u64(1..50) + at);
                    let interval = (start, start + rng.u64(0..200_000));
                    let enqueued_ns = rng.u64(0..5_000_000);
                    AttributedActivity { enqueued_ns, ..attributed(frame, at as u32 % 3, interval) }
                })
                .collect();
            let by_frame = ActivitiesByFrame::new(20, parent, &mut activities);
            for (at, figures) in (0_u32..).zip(by_frame.figures()) {
                let is_inside = |of: &&&AttributedActivity| {
                    std::iter::successors(Some(of.frame), |at| parent(*at)).any(|of| of == at)
                };
                let all: Vec<_> = by_frame.activities.iter().filter(|of| is_inside(&of)).collect();
                let (mut busy_ns, mut inner_ns, mut waited_ns) = (0, 0, 0);
                let (mut until, mut inner_until) = (u64::MAX, 0);
                for of in &all {
                    let Activity { start_ns, end_ns, .. } = of.activity;
                    if of.frame != at {
                        inner_ns += end_ns.saturating_sub(start_ns.max(inner_until));
                        inner_until = inner_until.max(end_ns);
                    }
                    if of.enqueued_ns > until && start_ns > until {
                        waited_ns += start_ns.min(of.enqueued_ns + LAUNCH_LATENCY_NS) - until;
                    }
                    let covered = if until == u64::MAX { 0 } else { until };
                    busy_ns += end_ns.saturating_sub(start_ns.max(covered));
                    until = covered.max(end_ns);
                }
                let ns = |works: &[WorkTime]| works.iter().map(|of| of.ns).sum::<u64>();
                assert_eq!(figures.works.len(), all.len());
                assert_eq!(
                    ns(figures.works),
                    all.iter().map(|of| of.activity.end_ns - of.activity.start_ns).sum::<u64>()
                );
                assert_eq!((figures.busy_ns, figures.self_busy_ns), (busy_ns, busy_ns - inner_ns));
                assert_eq!(figures.waited_ns, waited_ns);
            }
        }
    }

    #[test]
    fn memory_does_not_grow_with_the_depth() {
        for (depth, launches) in [(1, 50_000), (50, 1_000), (1_000, 16)] {
            let parent = |at: u32| at.checked_sub(1);
            let total = depth * launches;
            let mut activities: Vec<_> = (0..total)
                .map(|at| attributed((at / launches) as u32, 7, (20 * at + 1, 20 * at + 10)))
                .collect();
            let bytes = peak_bytes(|| {
                let by_frame = ActivitiesByFrame::new(depth as usize, parent, &mut activities);
                assert_eq!(by_frame.figures()[0].works.len() as u64, total);
            });
            assert!(bytes as u64 <= 200 * total + 500 * depth, "{depth}: {bytes}");
        }
    }

    #[test]
    fn call_without_work_is_all_zero() {
        let by_frame = ActivitiesByFrame::new(1, |_| None, &mut []);
        let figures = by_frame.figures();
        assert_eq!((figures[0].busy_ns, figures[0].span_ns, figures[0].streams), (0, 0, 0));
    }
}
