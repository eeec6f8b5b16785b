//! An ended call that waits for the records of its launches.

use std::time::{Duration, Instant};

use crate::base::lock::locked;
use crate::record::call_tree::{CallTreeWriter, KnownWork};
use crate::record::opened::alignment::Alignment;
use crate::record::opened::attribution::{ActivitiesByFrame, AttributedActivity};
use crate::record::opened::devices;
use crate::record::opened::graph_sizes::GraphSizes;
use crate::record::opened::open_call::{
    CallSeries, Frame, FrameLaunch, OpenCall, OpenedAs, OpenedFunction,
};
use crate::record::overlap;
use crate::record::series_counters::OpenedOutcome;
use crate::record::stream_progress::StreamProgress;
use crate::record::timeline::{self, StreamWork};
use crate::stats::call_tree::RecordedCall;
use crate::types::activity::Activity;
use crate::types::device::DeviceId;
use crate::types::sample::Lost;
use crate::types::stream_id::StreamId;

/// The time without a record after which a call is no longer waited for, once the GPU has gone on to later
/// launches. Missing records were then lost, and groups have no more of them.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The time without a record after which a call is lost in any case. What the GPU has reached is not always known, and
/// CUPTI is flushed for as long as a call is waited for. This includes calls of which only a group without any record is
/// left: it may be empty, but CUPTI may as well withhold its records behind a kernel that runs for as long.
pub(super) const LONGEST_PATIENCE: Duration = Duration::from_secs(600);
/// The maximum number of records of one call. A graph or a batch of copies has many for a single launch.
const MAX_ACTIVITIES: usize = 262_144;
/// A call with groups of activities is complete after this many collections without a new record, once
/// the GPU has gone on to later launches.
const QUIET: u32 = 2;

/// A call that waits for the records of its launches.
pub(super) struct WaitingCall {
    pub call: Box<OpenCall>,
    activities: Vec<AttributedActivity>,
    /// The number of launches without a record, apart from groups. A graph without kernels, copies and memsets
    /// never has a record.
    missing: usize,
    /// Those of them that helper threads made.
    missing_by_helpers: usize,
    pub has_groups: bool,
    /// The number of collections since the last record.
    pub quiet: u32,
    /// The time of the last record or, before the first, the time at which the wait began.
    pub heard: Instant,
    /// Launches or records are missing, or records have no times, or are too many to keep.
    is_incomplete: bool,
}

/// The state of a call's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outlook {
    MoreExpected,
    Complete,
    Lost,
}

impl WaitingCall {
    pub fn new(call: Box<OpenCall>) -> WaitingCall {
        let single = || call.launches.iter().filter(|launch| !launch.is_group);
        WaitingCall {
            activities: Vec::with_capacity(call.launches.len()),
            missing: single().count(),
            missing_by_helpers: single().filter(|launch| launch.is_by_helper).count(),
            has_groups: call.launches.iter().any(|launch| launch.is_group),
            quiet: 0,
            heard: Instant::now(),
            is_incomplete: call.is_incomplete,
            call,
        }
    }

    /// Returns the number of the call's frames, launches and records.
    pub fn work(&self) -> usize {
        self.call.work() + self.activities.len()
    }

    /// Takes a record of the launch with this index, and returns that launch.
    pub fn take(
        &mut self,
        activity: &Activity,
        launch: usize,
        alignment: Option<Alignment>,
    ) -> Option<FrameLaunch> {
        let launch = self.call.launches.get_mut(launch)?;
        self.quiet = 0;
        self.heard = Instant::now();
        launch.records += 1;
        if launch.device.replace(activity.device).is_none() {
            self.missing -= usize::from(!launch.is_group);
            self.missing_by_helpers -= usize::from(!launch.is_group && launch.is_by_helper);
        }
        let launch = *launch;
        let FrameLaunch { frame, enqueued_ns, stream, is_graph, .. } = launch;
        let FrameLaunch { is_after_stop, is_by_helper, .. } = launch;
        if !activity.has_times() && !is_by_helper {
            self.call.count_zero_times(frame);
        }
        if !activity.has_times() || self.activities.len() >= MAX_ACTIVITIES {
            self.is_incomplete |= !is_by_helper;
            return Some(launch);
        }
        // Without a common clock, nothing counts as enqueued late.
        let enqueued_ns = alignment.map_or(0, |alignment| alignment.cupti_ns(enqueued_ns));
        let activity = *activity;
        self.activities.push(AttributedActivity {
            frame,
            stream,
            is_in_graph: is_graph,
            is_after_stop,
            is_by_helper,
            enqueued_ns,
            activity,
        });
        Some(launch)
    }

    /// Notes how many records the launches of graphs have, if the last record came a while ago.
    pub fn note_quiet_graphs(&mut self, sizes: &mut GraphSizes) {
        if !self.has_groups || self.quiet != QUIET {
            return;
        }
        let launches = self.call.launches.iter_mut();
        for launch in launches.filter(|launch| launch.records > 0 && !launch.is_quiet) {
            if let Some(graph) = launch.graph {
                sizes.note_quiet(graph, launch.records);
                launch.is_quiet = true;
            }
        }
    }

    /// Notes how many records the launches of graphs have. The call must be complete.
    pub fn note_ended_graphs(&self, sizes: &mut GraphSizes) {
        for launch in &self.call.launches {
            if let Some(graph) = launch.graph {
                sizes.note_ended(graph, launch.records, launch.is_quiet);
            }
        }
    }

    /// Returns `true` if a launch of a graph has fewer records than another one.
    pub fn has_short_graph(&self, sizes: &GraphSizes) -> bool {
        let is_short =
            |of: &FrameLaunch| of.graph.is_some_and(|it| sizes.are_short(it, of.records));
        self.has_groups && self.own_launches().any(is_short)
    }

    /// Returns the state of the call's records.
    ///
    /// A group may have more records until the GPU goes on to a later launch, unless `sizes` tells how many it has. One
    /// without any record may be
    /// empty, or CUPTI may withhold its records because other work in the same buffer has not ended. `is_last`
    /// means that CUPTI has returned all records, even those of work that has not ended.
    pub fn outlook(
        &self,
        progress: &StreamProgress,
        sizes: &GraphSizes,
        now: Instant,
        is_last: bool,
    ) -> Outlook {
        let silence = now.saturating_duration_since(self.heard);
        let is_silent = silence > PATIENCE;
        let is_past = |launch: &FrameLaunch| progress.are_past(launch.stream, launch.correlation);
        let has_ended = |launch: &FrameLaunch| launch.device.is_some() && is_past(launch);
        let has_begun = |launch: &FrameLaunch| launch.device.is_some() || is_past(launch);
        let launches = || self.call.launches.iter();
        let is_whole =
            |launch: &FrameLaunch| launch.graph.is_some_and(|it| sizes.are_all(it, launch.records));
        let mut groups = launches().filter(|launch| launch.is_group && !is_whole(launch));
        let mut unsure = launches().filter(|launch| launch.is_group || launch.device.is_none());
        let lacks_own = self.missing > self.missing_by_helpers;
        let is_own = |launch: &FrameLaunch| !launch.is_by_helper;
        let lacks_own_group =
            || launches().any(|launch| launch.is_group && is_own(launch) && !is_whole(launch));
        // The work of a helper thread may still be in a queue, or may have gone into a graph.
        let lost_if = |is_lost| if is_lost { Outlook::Lost } else { Outlook::Complete };
        match self.missing {
            0 if is_last || groups.clone().next().is_none() => Outlook::Complete,
            0 if self.quiet >= QUIET && groups.all(has_ended) => Outlook::Complete,
            0 if is_silent && launches().all(has_begun) => Outlook::Complete,
            1.. if is_last && !lacks_own => Outlook::Complete,
            1.. if is_silent && unsure.all(is_past) => lost_if(lacks_own),
            _ if silence > LONGEST_PATIENCE => lost_if(lacks_own || lacks_own_group()),
            _ => Outlook::MoreExpected,
        }
    }

    /// Returns `true` if records that CUPTI dropped by this time may belong to the call's groups, whose numbers
    /// of records are unknown.
    pub fn may_lack(&self, dropped_ns: u64) -> bool {
        let has_begun = |root: &Frame| root.entered_ns < dropped_ns;
        let has_own_groups = || self.own_launches().any(|launch| launch.is_group);
        self.has_groups && has_own_groups() && self.call.frames.first().is_some_and(has_begun)
    }

    /// Returns the launches that no helper thread made. Only their records are needed.
    fn own_launches(&self) -> impl Iterator<Item = &FrameLaunch> {
        self.call.launches.iter().filter(|launch| !launch.is_by_helper)
    }

    /// Records the call in the series of all its functions, or counts it as lost. With an alignment, its
    /// work is kept for the trace. Returns the call.
    pub fn record(self, lost: Option<Lost>, alignment: Option<Alignment>) -> Box<OpenCall> {
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
            match is_known(frame) {
                true if frame.subject.opened_as == OpenedAs::Late => KnownWork::Nothing,
                // Its work is known from the phases, of which this part is not representative.
                true if call.is_cut && frame.left_ns == 0 => KnownWork::Nothing,
                true if is_partial => KnownWork::Own(recorded),
                true => KnownWork::Call(recorded),
                false => KnownWork::Nothing,
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
        // The frame whose work it is, or that helper threads worked for.
        let of = |frame: u32| {
            let by_helper = (frame as usize).checked_sub(call.frames.len());
            by_helper.map_or(Some(frame), |at| helped.get(at).copied())
        };
        let is_known = |frame: u32| {
            of(frame).and_then(|at| call.frames.get(at as usize)).is_some_and(is_known)
        };
        let is_sampled = call.frames.iter().any(|frame| frame.weight() > 1.0);
        overlap::add(&by_frame.work_by_device(is_known), is_sampled);
        let devices = call.recorded_devices();
        for ((frame, figures), device) in call.frames.iter().zip(figures).zip(devices) {
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
            let device = device.filter(is_other);
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
