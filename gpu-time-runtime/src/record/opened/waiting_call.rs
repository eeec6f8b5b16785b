//! An ended call that waits for the records of its launches.

use crate::base::lock::locked;
use crate::record::alignment::Alignment;
use crate::record::awaited::{Awaited, KnownLaunch, KnownLaunches, QUIET};
use crate::record::call_tree::{CallTreeWriter, KnownWork};
use crate::record::graph_sizes::GraphSizes;
use crate::record::opened::attribution::{ActivitiesByFrame, AttributedActivity};
use crate::record::opened::devices;
use crate::record::opened::open_call::{CallSeries, Frame, OpenCall, OpenedAs, OpenedFunction};
use crate::record::series_counters::OpenedOutcome;
use crate::record::timeline::{self, StreamWork};
use crate::stats::call_tree::RecordedCall;
use crate::types::activity::Activity;
use crate::types::device::DeviceId;
use crate::types::sample::Lost;
use crate::types::stream_id::StreamId;

/// The maximum number of records of one call. A graph or a batch of copies has many for a single launch.
pub(in crate::record) const MAX_ACTIVITIES: usize = 262_144;

/// A call that waits for the records of its launches.
pub(in crate::record) struct WaitingCall {
    pub call: Box<OpenCall>,
    pub awaited: Awaited,
    activities: Vec<AttributedActivity>,
    /// Launches or records are missing, or records have no times, or are too many to keep.
    pub is_incomplete: bool,
}

impl WaitingCall {
    pub fn new(call: Box<OpenCall>) -> WaitingCall {
        WaitingCall {
            awaited: Awaited::new(),
            activities: Vec::with_capacity(call.launches),
            is_incomplete: call.is_incomplete,
            call,
        }
    }

    /// Returns the number of the call's frames, launches and records.
    pub fn work(&self) -> usize {
        self.call.frames.len() + self.awaited.launches.len() + self.activities.len()
    }

    /// Returns the call's launches. A failed one is unknown.
    pub fn launches<'a>(
        &'a self,
        known: &'a KnownLaunches,
    ) -> impl Iterator<Item = &'a KnownLaunch> {
        self.awaited.launches.iter().filter_map(|id| known.get(id))
    }

    /// Returns the launches that no helper thread made. Only their records are needed.
    fn own_launches<'a>(
        &'a self,
        known: &'a KnownLaunches,
    ) -> impl Iterator<Item = &'a KnownLaunch> {
        self.launches(known).filter(|of| !of.launch.is_by_helper())
    }

    /// Takes a record of a launch of the call.
    pub fn take(&mut self, activity: &Activity, known: &KnownLaunch, alignment: Option<Alignment>) {
        let (Some(owner), Some((_, frame))) = (known.launch.owner, known.frame) else { return };
        let is_by_helper = owner.is_by_helper;
        if !activity.has_times() && !is_by_helper {
            self.call.count_zero_times(frame);
        }
        if !activity.has_times() || self.activities.len() >= MAX_ACTIVITIES {
            self.is_incomplete |= !is_by_helper;
            return;
        }
        self.activities.push(AttributedActivity {
            frame,
            stream: known.launch.stream,
            is_in_graph: known.launch.is_graph,
            is_after_stop: owner.is_after_stop,
            is_by_helper,
            // Without a common clock, nothing counts as enqueued late.
            enqueued_ns: alignment.map_or(0, |alignment| alignment.cupti_ns(owner.enqueued_ns)),
            activity: *activity,
        });
    }

    /// Notes how many records the launches of graphs have, if the last record came a while ago.
    pub fn note_quiet_graphs(&self, known: &mut KnownLaunches, sizes: &mut GraphSizes) {
        if !self.awaited.has_groups || self.awaited.quiet != QUIET {
            return;
        }
        for id in &self.awaited.launches {
            let Some(of) = known.get_mut(id).filter(|of| of.records > 0 && !of.is_quiet) else {
                continue;
            };
            if let Some(graph) = of.launch.graph {
                sizes.note_quiet(graph, of.records);
                of.is_quiet = true;
            }
        }
    }

    /// Notes how many records the launches of graphs have. The call must be complete.
    pub fn note_ended_graphs(&self, known: &KnownLaunches, sizes: &mut GraphSizes) {
        if self.awaited.has_groups {
            for of in self.launches(known) {
                let graph = of.launch.graph.into_iter();
                graph.for_each(|graph| sizes.note_ended(graph, of.records, of.is_quiet));
            }
        }
    }

    /// Returns `true` if a launch of a graph has fewer records than another one.
    pub fn has_short_graph(&self, known: &KnownLaunches, sizes: &GraphSizes) -> bool {
        let is_short = |of: &KnownLaunch| {
            of.launch.graph.is_some_and(|graph| sizes.are_short(graph, of.records))
        };
        self.awaited.has_groups && self.own_launches(known).any(is_short)
    }

    /// Returns `true` if records that CUPTI dropped by this time may belong to the call's groups, whose numbers
    /// of records are unknown.
    pub fn may_lack(&self, known: &KnownLaunches, dropped_ns: u64) -> bool {
        let has_begun = |root: &Frame| root.entered_ns < dropped_ns;
        self.awaited.has_groups
            && self.call.frames.first().is_some_and(has_begun)
            && self.own_launches(known).any(|of| of.launch.is_group)
    }

    /// Returns the ordinal of the device of each frame's first launch with a record, including those of frames inside it.
    pub fn recorded_devices(&self, known: &KnownLaunches) -> Vec<Option<u32>> {
        let mut devices = vec![None; self.call.frames.len()];
        for of in self.launches(known).filter(|of| of.device.is_some()) {
            let mut inner = of.frame.map(|(_, frame)| frame as usize);
            while let Some(at) = inner
                && let Some(device @ None) = devices.get_mut(at)
            {
                *device = of.device;
                inner = self.call.frames[at].parent.map(|outer| outer as usize);
            }
        }
        devices
    }

    /// Records the call in the series of all its functions, or counts it as lost. `devices` are the
    /// [recorded ones](Self::recorded_devices). With an alignment, its work is kept for the trace. Returns the call.
    pub fn record(
        self,
        lost: Option<Lost>,
        devices: &[Option<u32>],
        alignment: Option<Alignment>,
    ) -> Box<OpenCall> {
        let WaitingCall { call, mut activities, is_incomplete, .. } = self;
        let lost = lost.or(is_incomplete.then_some(Lost::Records));
        let helped = set_helpers_apart(call.frames.len(), &mut activities);
        let all = call.frames.len() + helped.len();
        // Nothing contains the work of helper threads, so that it is in the figures of no function.
        let parent = |frame: u32| call.frames.get(frame as usize)?.parent;
        let by_frame = ActivitiesByFrame::new(all, parent, &mut activities);
        let mut figures = by_frame.figures();
        let of_helpers = figures.split_off(call.frames.len());
        for (figures, frame) in figures.iter_mut().zip(&call.frames) {
            figures.stream = frame.subject.stream;
        }
        let helped_ns = call.helped_ns(&helped, &of_helpers);
        let is_known = |frame: &Frame| matches!(lost.or(frame.lost), None | Some(Lost::Long));
        let mut paths = CallTreeWriter::begin(call.around);
        let known = |frame: &Frame, recorded| {
            // A split function's own work is known, part by part, and so is that of one that outlives the call, such as
            // a guard. Its row counts it as lost.
            let is_partial = frame.goes_on || frame.lost.is_some() || frame.left_ns == 0;
            let is_late = frame.subject.opened_as == OpenedAs::Late;
            // Its work is known from the phases, of which this part is not representative.
            let is_cut = call.is_cut && frame.left_ns == 0;
            if !is_known(frame) || is_late || is_cut {
                KnownWork::Nothing
            } else if is_partial {
                KnownWork::Own(recorded)
            } else {
                KnownWork::Call(recorded)
            }
        };
        for ((frame, figures), helped_ns) in call.frames.iter().zip(&figures).zip(helped_ns) {
            let &Frame { subject, parent, entered_ns, left_ns, draw, .. } = frame;
            let host_ns = left_ns.saturating_sub(entered_ns);
            let weight = frame.weight();
            let recorded = RecordedCall { figures, helped_ns, host_ns, weight, draw };
            paths.add(subject.of.site, parent, known(frame, recorded));
        }
        for (&at, figures) in helped.iter().zip(&of_helpers) {
            let frame = &call.frames[at as usize];
            let (weight, draw) = (frame.weight(), frame.draw);
            let recorded = RecordedCall { figures, helped_ns: 0, host_ns: 0, weight, draw };
            paths.add_helpers(at, known(frame, recorded));
        }
        drop(paths);
        for (at, (frame, figures)) in call.frames.iter().zip(figures).enumerate() {
            let &Frame { subject, series, entered_ns, left_ns, draw, .. } = frame;
            if frame.goes_on || left_ns == 0 || subject.opened_as == OpenedAs::Late {
                continue;
            }
            let outcome = match frame.lost.or(lost) {
                Some(reason) => Err(reason),
                None => Ok((&figures, left_ns.saturating_sub(entered_ns))),
            };
            let outcome = OpenedOutcome {
                outcome,
                weight: frame.series_weight(),
                represents: frame.weight(),
                draw,
                ended_ns: left_ns,
                workload: subject.workload,
            };
            // The first launch of a function that was split is in an earlier part.
            let is_other = |of: &u32| !frame.is_split() && subject.device != DeviceId::Cuda(*of);
            let device = devices.get(at).copied().flatten().filter(is_other);
            device.into_iter().for_each(devices::note);
            let identity = device.map(|device| subject.of.identity(DeviceId::Cuda(device)));
            let mut recorder = locked(&subject.of.thread.recorder);
            let series = identity.map_or(series, |of| recorder.series.move_opened(series, of));
            recorder.series.end_opened(series, outcome);
            recorder.series.count_zero_times(series, frame.zero_times);
        }
        if let Some(alignment) = alignment.filter(|_| timeline::is_on()) {
            let works = activities.iter().filter_map(|of| stream_work(&call, of, alignment));
            timeline::record_works(works);
        }
        call
    }
}

/// Gives the work that helper threads enqueued for a frame a frame of its own, behind those of the functions. Returns, for
/// each of these, the frame that they worked for.
fn set_helpers_apart(frames: usize, activities: &mut [AttributedActivity]) -> Vec<u32> {
    let by_helpers = activities.iter_mut().filter(|of| of.is_by_helper);
    let mut by_helpers: Vec<_> = by_helpers.filter(|of| (of.frame as usize) < frames).collect();
    let mut helped: Vec<u32> = by_helpers.iter().map(|of| of.frame).collect();
    helped.sort_unstable();
    helped.dedup();
    for of in &mut by_helpers {
        let at = helped.partition_point(|frame| *frame < of.frame);
        of.frame = (frames + at) as u32;
    }
    helped
}

/// Converts an activity of a call for the trace. `None` for work of helper threads, which no function enqueued.
fn stream_work(
    call: &OpenCall,
    of: &AttributedActivity,
    alignment: Alignment,
) -> Option<StreamWork> {
    let OpenedFunction { of: CallSeries { site, .. }, call_id, stream: named, .. } =
        call.frames.get(of.frame as usize)?.subject;
    let is_elsewhere = named.zip(of.stream).is_some_and(|(named, ran)| !named.names(ran));
    let Activity { start_ns, end_ns, device, context, stream, work, .. } = of.activity;
    Some(StreamWork {
        site,
        call: call_id,
        device,
        context,
        stream_id: stream,
        // The branches of a graph run on streams of their own.
        stream: of.stream.filter(|_| !of.is_in_graph).map(StreamId::handle),
        elsewhere: is_elsewhere,
        begin_ns: alignment.host_ns(start_ns),
        end_ns: alignment.host_ns(end_ns),
        error_ns: alignment.error_ns,
        work,
    })
}
