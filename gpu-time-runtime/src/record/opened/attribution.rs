//! Attributes the activities of an opened call to the functions that were active when their work
//! was enqueued.

use std::collections::BTreeMap;

use crate::stats::kernels::{CallFigures, WorkTime};
use crate::stats::overlap::{CallWork, GpuInterval};
use crate::types::activity::Activity;
use crate::types::device::DeviceId;
use crate::types::handles::Stream;
use gpu_time_report::ElsewhereReason;

/// The longest time from the call that launches a kernel to its start on an idle GPU. An idle H200 starts a kernel
/// within some microseconds of that call.
const LAUNCH_LATENCY_NS: u64 = 10_000;

/// An activity, and the index of the frame that was innermost when its launch was made.
pub(super) struct AttributedActivity {
    pub frame: u32,
    pub activity: Activity,
    /// The time at which the host enqueued it, on CUPTI's clock.
    pub enqueued_ns: u64,
    /// The stream that it ran on, if known.
    pub stream: Option<Stream>,
    /// The reason why the frame's events would not bracket it; `None` if they would.
    pub elsewhere: Option<ElsewhereReason>,
}

/// Returns the figures of every frame. `parent` returns the index of the frame around a given one, which is
/// always smaller.
///
/// An activity counts for the frame that launched it and for all frames around that one.
pub(super) fn figures(
    frames: usize,
    parent: impl Fn(u32) -> Option<u32>,
    activities: &mut [AttributedActivity],
) -> Vec<CallFigures> {
    activities.sort_by_key(|attributed| attributed.activity.start_ns);
    let mut own_and_inner: Vec<Vec<&AttributedActivity>> =
        (0..frames).map(|_| Vec::new()).collect();
    for attributed in activities.iter() {
        let mut frame = Some(attributed.frame);
        while let Some(at) = frame {
            let Some(list) = own_and_inner.get_mut(at as usize) else { break };
            list.push(attributed);
            frame = parent(at).filter(|outer| *outer < at);
        }
    }
    let mut figures: Vec<_> =
        (0u32..).zip(&own_and_inner).map(|(frame, list)| figures_of(frame, list)).collect();
    for (of, (start_ns, end_ns)) in own_intervals(activities) {
        if let Some(figures) = figures.get_mut(of.frame as usize) {
            let device = DeviceId::Cuda(of.activity.device);
            *figures.own_ns.entry(device).or_default() += end_ns - start_ns;
        }
    }
    figures
}

/// Returns the call's work on each device, without the work of frames for which `is_known` returns `false`. The
/// activities must be ordered by their start.
pub(super) fn work_by_device(
    activities: &[AttributedActivity],
    is_known: impl Fn(u32) -> bool,
) -> BTreeMap<u32, CallWork> {
    let mut devices: BTreeMap<u32, CallWork> = BTreeMap::new();
    for (of, (start_ns, end_ns)) in own_intervals(activities).filter(|(of, _)| is_known(of.frame)) {
        let Activity { device, context, stream, .. } = of.activity;
        let work = devices.entry(device).or_default();
        if !work.streams.contains(&(context, stream)) {
            work.streams.push((context, stream));
        }
        match work.intervals.last_mut() {
            Some((_, last)) if *last == start_ns => *last = end_ns,
            _ => work.intervals.push((start_ns, end_ns)),
        }
    }
    devices
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

/// Computes the figures of one frame from its activities and those of the frames inside it, which
/// are ordered by their start.
fn figures_of(frame: u32, activities: &[&AttributedActivity]) -> CallFigures {
    let interval = |of: &&&AttributedActivity| (of.activity.start_ns, of.activity.end_ns);
    let busy_ns = union_ns(activities.iter().map(|of| interval(&of)));
    let inner = activities.iter().filter(|of| of.frame != frame);
    let inner_ns = union_ns(inner.map(|of| interval(&of)));
    let waited_ns = waited_ns(activities);
    let start_ns = activities.first().map_or(0, |first| first.activity.start_ns);
    let end_ns = activities.iter().map(|of| of.activity.end_ns).max().unwrap_or(0);
    let mut streams: Vec<_> =
        activities.iter().map(|of| (of.activity.context, of.activity.stream)).collect();
    streams.sort_unstable();
    streams.dedup();
    let time = |of: &&AttributedActivity| WorkTime {
        work: of.activity.work,
        ns: of.activity.end_ns.saturating_sub(of.activity.start_ns),
        elsewhere: of.elsewhere,
    };
    CallFigures {
        busy_ns,
        self_busy_ns: busy_ns - inner_ns,
        own_ns: BTreeMap::new(),
        span_ns: end_ns.saturating_sub(start_ns),
        waited_ns,
        streams: streams.len() as u32,
        works: activities.iter().map(time).collect(),
    }
}

/// Returns the total time covered by intervals, which are ordered by their start.
fn union_ns(intervals: impl Iterator<Item = GpuInterval>) -> u64 {
    let (mut covered, mut until) = (0, 0);
    for (start, end) in intervals {
        covered += end.saturating_sub(start.max(until));
        until = until.max(end);
    }
    covered
}

/// Returns the total time in which none of the activities ran because the host had not enqueued the
/// next one yet. An activity that starts long after it was enqueued was delayed by something else, such as the work
/// of another stream. The activities are ordered by their start.
fn waited_ns(activities: &[&AttributedActivity]) -> u64 {
    let (mut waited, mut until) = (0, u64::MAX);
    for of in activities {
        let Activity { start_ns, end_ns, .. } = of.activity;
        if of.enqueued_ns > until {
            let could_start_ns = of.enqueued_ns.saturating_add(LAUNCH_LATENCY_NS);
            waited += start_ns.min(could_start_ns).saturating_sub(until);
        }
        until = if until == u64::MAX { end_ns } else { until.max(end_ns) };
    }
    waited
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::activity::GpuWork;

    fn attributed(frame: u32, stream: u32, (start_ns, end_ns): GpuInterval) -> AttributedActivity {
        let work = Box::leak(Box::new(GpuWork {
            name: "",
            is_kernel: true,
            grid: [1; 3],
            block: [1; 3],
            registers: 0,
            shared_bytes: 0,
        }));
        let activity =
            Activity { start_ns, end_ns, correlation: 0, device: 0, context: 1, stream, work };
        AttributedActivity { frame, activity, enqueued_ns: 0, stream: None, elsewhere: None }
    }

    #[test]
    fn overlapping_intervals_count_once() {
        assert_eq!(union_ns([(10, 20), (12, 14), (15, 30), (40, 41)].into_iter()), 21);
        assert_eq!(union_ns(std::iter::empty()), 0);
        // An empty or reversed interval covers nothing.
        assert_eq!(union_ns([(5, 5), (9, 7)].into_iter()), 0);
    }

    #[test]
    fn activity_counts_for_its_frame_and_the_frames_around_it() {
        // 0 calls 1 and 3; 1 calls 2.
        let parent = |frame| [None, Some(0), Some(1), Some(0)][frame as usize];
        let mut activities = [
            attributed(2, 7, (120, 130)),
            attributed(0, 7, (100, 110)),
            attributed(1, 8, (125, 140)),
            attributed(3, 7, (150, 160)),
        ];
        let figures = figures(4, parent, &mut activities);
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
        let figures = figures(3, parent, &mut activities);
        let own: Vec<_> = figures.iter().map(|of| of.own_ns[&DeviceId::Cuda(0)]).collect();
        assert_eq!(own, [10, 40, 20]);
        assert_eq!(own.iter().sum::<u64>(), figures[0].busy_ns);
        let work = &work_by_device(&activities, |_| true)[&0];
        assert_eq!(work.intervals, [(100, 170)]);
        assert_eq!(work.streams, [(1, 7), (1, 8), (1, 9)]);
        // Without the work of function 2.
        let work = &work_by_device(&activities, |frame| frame != 2)[&0];
        assert_eq!(work.intervals, [(100, 140), (160, 170)]);
    }

    #[test]
    fn devices_do_not_share_their_instants() {
        let mut activities = [attributed(0, 7, (100, 140)), attributed(0, 8, (110, 150))];
        activities[1].activity.device = 1;
        let figures = figures(1, |_| None, &mut activities);
        let own: Vec<_> = figures[0].own_ns.values().copied().collect();
        assert_eq!((own, figures[0].busy_ns), (vec![40, 40], 50));
        let work = work_by_device(&activities, |_| true);
        let intervals: Vec<_> = work.values().map(|work| &work.intervals[..]).collect();
        assert_eq!(intervals, [[(100, 140)], [(110, 150)]]);
    }

    #[test]
    fn gpu_waits_for_what_is_enqueued_after_it_has_finished() {
        let mut activities = [(100, 110, 50), (130, 140, 120), (150, 160, 139), (165, 170, 161)]
            .map(|(start, end, enqueued_ns)| AttributedActivity {
                enqueued_ns,
                ..attributed(0, 7, (start, end))
            });
        // The third was enqueued in time, so the host did not cause the gap before it.
        let figures = figures(1, |_| None, &mut activities);
        assert_eq!((figures[0].waited_ns, figures[0].span_ns), (20 + 5, 70));
    }

    #[test]
    fn gpu_does_not_wait_for_what_was_enqueued_long_before_it_started() {
        let mut activities =
            [(1_000, 11_000, 0), (991_000, 1_001_000, 31_000)].map(|(start, end, enqueued_ns)| {
                AttributedActivity { enqueued_ns, ..attributed(0, 7, (start, end)) }
            });
        let figures = figures(1, |_| None, &mut activities);
        assert_eq!(figures[0].waited_ns, 20_000 + LAUNCH_LATENCY_NS);
    }

    #[test]
    fn call_without_work_is_all_zero() {
        let figures = figures(1, |_| None, &mut []);
        assert_eq!((figures[0].busy_ns, figures[0].span_ns, figures[0].streams), (0, 0, 0));
    }
}
