//! An opened call: its functions, and the launches that each of them made.

use crate::base::{clock, lock::locked, switches};
use crate::cuda;
use crate::cupti::{self, RecordingGuard};
use crate::record::launches::LaunchOwner;
use crate::record::open_frames::OpenFrame;
use crate::record::phase::current::{self, Phase};
use crate::record::series_counters::SeriesRef;
use crate::record::threads::ThreadRecorder;
use crate::record::timeline::CallId;
use crate::site::{callsite::CallSite, series_id::SeriesIdentity};
use crate::stats::kernels::CallFigures;
use crate::stats::{call_tree::place::PathId, total::OpeningDraw};
use crate::types::activity::EnqueueCall;
use crate::types::attribute::{Clock, ScopeKind};
use crate::types::sample::{CacheState, Lost};
use crate::types::{device::DeviceId, key::SeriesKey, stream_id::StreamId, workload::Workload};

/// The maximum number of frames that an opened call keeps at once. If nothing can be [handed
/// over](crate::record::opened::parts), calls beyond it are counted as lost, and their work belongs to the
/// function around them.
pub(super) const MAX_FRAMES: usize = 10_240;
/// The maximum number of launches that an opened call keeps at once. Functions that make more launches are
/// counted as lost.
pub(super) const MAX_LAUNCHES: usize = 163_840;
/// The longest call that is recorded to its end though its phase is over.
const LONGEST_NS: u64 = 250_000_000;
/// Set in the numbers of draws that are no phases.
const OUTSIDE_PHASES: u64 = 1 << 63;
/// The space that an idle call keeps when memory is short.
const IDLE_FRAMES: usize = 256;

/// The series in which a call is counted, apart from its device, which is known only later.
#[derive(Clone, Copy)]
pub(crate) struct CallSeries {
    pub site: &'static CallSite,
    pub thread: &'static ThreadRecorder,
    /// `Some(0)` for a function with a single launch, whose series is shown as that launch.
    pub launch: Option<u32>,
    pub cache: CacheState,
    pub key: SeriesKey,
}

/// The properties of one function of an opened call.
#[derive(Clone, Copy)]
pub(crate) struct OpenedFunction {
    pub of: CallSeries,
    /// The stream that the function names.
    pub stream: Option<StreamId>,
    /// The number of calls that this call represents by sampling.
    pub weight: f32,
    pub opened_as: OpenedAs,
    pub workload: Workload,
    pub call_id: CallId,
    /// The device that the call is counted on. Until it ends, this is a guess.
    pub device: DeviceId,
}

/// The reason why CUPTI records a call, which is also what the call stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenedAs {
    /// It begins in a phase, and stands for the calls outside of phases.
    OfPhase,
    /// It is the first call of a function that has no other source of times. It is opened in any case, and stands for
    /// itself.
    First,
    /// It begins after the phase, inside a call that began in it. It stands for nothing, because only long calls show what
    /// happens so late. It keeps its work from counting for the functions around it.
    Late,
}

/// An annotated function inside an opened call.
#[derive(Clone)]
pub(crate) struct Frame {
    /// The number of frames that were entered before it in its call.
    pub nth: u64,
    pub subject: OpenedFunction,
    /// The position of the frame around it, which is smaller than its own.
    pub parent: Option<u32>,
    /// The random choice by which it was recorded, with the number of calls that one in its phase represents.
    pub(super) draw: OpeningDraw,
    /// Set while the function makes a launch that events would bracket.
    pub is_launching: bool,
    /// The number of records without times, for the frame's launches and for those of frames inside it.
    pub zero_times: u64,
    pub entered_ns: u64,
    pub left_ns: u64,
    /// The number of captures that had begun before it was entered.
    pub captures_begun: u64,
    /// Work of helper threads may belong to it: neither its function nor one around it in the call excludes that.
    pub(super) takes_helpers: bool,
    /// The context of its first launch, or of the first one inside it; 0 without a launch.
    pub context: usize,
    pub series: SeriesRef,
    pub lost: Option<Lost>,
    /// The number of its own launches, without those that an earlier part has.
    pub(super) launches: usize,
    /// The function has ended, and will not be continued.
    pub is_over: bool,
    /// In a part of a call, a function that goes on in the next part and is counted there.
    pub goes_on: bool,
    /// In a part of a call, the next part has the launches that the function made before.
    pub(super) keeps_launches: bool,
}

/// What became of the frame that a launch belongs to.
pub(in crate::record) enum Whereabouts {
    /// It has this position in the call, or in the part of one.
    Here(u32),
    /// It has not ended, or will be handed over with its launches in a later part.
    Later,
    /// It was handed over with an earlier part.
    Gone,
}

/// A call with its frames. Its launches are in the [records](crate::record::records).
///
/// Invariant: while it is the thread's open call, `at` is the innermost frame that has not ended.
#[derive(Default)]
pub(crate) struct OpenCall {
    /// Unique within the process.
    pub number: u64,
    /// Ordered by [`Frame::nth`].
    pub frames: Vec<Frame>,
    /// The number of frames that have been entered so far.
    pub(super) entered: u64,
    /// The numbers of frames and launches that were left after the last part was handed over.
    pub(super) kept: (usize, usize),
    /// The end of the process waits for the call to end, or to hand over what has ended inside it.
    pub(super) is_awaited: bool,
    /// The number of launches of its frames.
    pub launches: usize,
    pub at: Option<u32>,
    /// It was taken off its thread before it had ended, because it took too long.
    pub is_cut: bool,
    /// Launches are missing, because they were made while the call was not open.
    pub is_incomplete: bool,
    /// The path of the function around it.
    pub around: Option<PathId>,
    /// The phase in which it was opened, if any. Calls inside it may begin in later ones.
    pub phase: Option<Phase>,
    /// The number of spans that each span in it stands for within the phase, if a span opened the call.
    pub span_weight: Option<f64>,
    /// The host time that the runtime spent on the call's spans, counted while a budget is set.
    pub cost_ns: u64,
    /// Keeps CUPTI recording.
    pub switched_on: Option<RecordingGuard>,
}

/// A frame of an opened call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameId {
    pub call: u64,
    /// The number of frames that were entered before it in the call.
    pub nth: u64,
    /// The series in which it was counted when it was entered.
    pub series: SeriesRef,
}

impl Frame {
    /// Returns `true` if the function times its launches by events, and is not making one of those.
    fn is_after_stop(&self) -> bool {
        let spec = &self.subject.of.site.spec;
        let has_brackets = spec.scope == ScopeKind::Launches && spec.clock == Clock::Events;
        has_brackets && self.subject.stream.is_some() && !self.is_launching
    }

    /// Counts the call on this device.
    fn count_on(&mut self, device: DeviceId) {
        self.subject.device = device;
        let CallSeries { thread, .. } = self.subject.of;
        let identity = self.subject.of.identity(device);
        self.series = locked(&thread.recorder).series.move_opened(self.series, identity);
    }

    /// Returns the number of calls that this call represents.
    pub fn weight(&self) -> f64 {
        f64::from(self.subject.weight) * self.draw.weight
    }

    /// Returns the number of calls that this call represents in its series. If the function names a stream,
    /// this is the weight from sampling alone, because events time the calls that are not opened.
    pub fn series_weight(&self) -> f32 {
        match self.subject.stream {
            Some(_) => self.subject.weight,
            None => self.weight() as f32,
        }
    }
}

impl OpenedFunction {
    /// Begins a call in the function's series, if it is counted.
    fn begin_series(&self) -> SeriesRef {
        let CallSeries { site, thread, .. } = self.of;
        match self.opened_as {
            OpenedAs::Late => SeriesRef::NONE,
            OpenedAs::OfPhase | OpenedAs::First => {
                let identity = self.of.identity(self.device);
                locked(&thread.recorder).series.begin_opened(site, identity)
            }
        }
    }
}

impl CallSeries {
    /// Returns the identity of the series.
    pub fn identity(&self, device: DeviceId) -> SeriesIdentity {
        let function = SeriesIdentity::function(device, self.cache, self.key);
        SeriesIdentity { launch: self.launch, ..function }
    }
}

impl OpenCall {
    pub fn enter(&mut self, subject: OpenedFunction) -> Option<FrameId> {
        if self.frames.len() >= MAX_FRAMES {
            return None;
        }
        let (at, nth) = (self.frames.len() as u32, self.entered);
        let series = subject.begin_series();
        let draw = self.draw(&subject);
        let around = self.at.and_then(|at| self.frames.get(at as usize));
        let takes_helpers =
            subject.of.site.spec.helpers && around.is_none_or(|of| of.takes_helpers);
        self.frames.push(Frame {
            nth,
            subject,
            parent: self.at,
            draw,
            is_launching: false,
            zero_times: 0,
            entered_ns: clock::now_ns(),
            left_ns: 0,
            captures_begun: cupti::captures_begun(),
            takes_helpers,
            context: 0,
            series,
            lost: None,
            launches: 0,
            is_over: false,
            goes_on: false,
            keeps_launches: false,
        });
        self.at = Some(at);
        self.entered += 1;
        Some(FrameId { call: self.number, nth, series })
    }

    /// Returns the position of a frame. `None` if the frame has been handed over.
    pub fn position(&self, nth: u64) -> Option<usize> {
        // Until a part is handed over, each frame's position is its number.
        let is_its = |frame: &Frame| frame.nth == nth;
        if self.frames.get(nth as usize).is_some_and(is_its) {
            return Some(nth as usize);
        }
        self.frames.binary_search_by_key(&nth, |frame| frame.nth).ok()
    }

    /// Returns the phase of a call that enters now. It may be a later one than that of the call around it.
    pub fn phase_of_entry(&self) -> Option<Phase> {
        current::phase().or(self.phase)
    }

    /// Returns the random choice by which a call is recorded that enters now: that of its phase, with all other calls in
    /// it, unless its root span was chosen in addition. A function is recorded in every phase, with the spans in it,
    /// whether or not the root span around it is chosen.
    fn draw(&self, subject: &OpenedFunction) -> OpeningDraw {
        let phase = self.phase_of_entry();
        let is_of_phase = subject.opened_as != OpenedAs::First;
        let by_phase = phase.filter(|_| is_of_phase).map_or(1.0, |phase| f64::from(phase.weight));
        let around = self.at.and_then(|at| self.frames.get(at as usize));
        let is_span = |of: &OpenedFunction| of.of.site.is_span();
        let is_by_root = is_span(subject) && around.is_none_or(|of| is_span(&of.subject));
        let by_root = self.span_weight.filter(|_| is_by_root).unwrap_or(1.0);
        let number = match phase {
            Some(phase) if by_root == 1.0 => phase.number.into(),
            _ => OUTSIDE_PHASES | self.number,
        };
        OpeningDraw { number, weight: by_phase * by_root }
    }

    /// Returns `true` if the call has taken too long since the end of its phase.
    pub fn is_over_time(&self) -> bool {
        let began = self.frames.first().map_or(u64::MAX, |outermost| outermost.entered_ns);
        let number = |phase: Phase| phase.number;
        current::phase().map(number) != self.phase.map(number)
            && clock::now_ns().saturating_sub(began) > LONGEST_NS
    }

    /// Returns the innermost frame, for other threads. `None` if their work does not belong to it.
    pub fn open_frame(&self) -> Option<OpenFrame> {
        let frame = self.frames.get(self.at? as usize).filter(|of| of.takes_helpers)?;
        Some(OpenFrame { call: self.number, nth: frame.nth })
    }

    /// Returns the id of the site of the innermost function.
    pub fn innermost_site(&self) -> Option<u32> {
        Some(self.frames.get(self.at? as usize)?.subject.of.site.id())
    }

    /// Notes a launch. Returns the frame that it belongs to, if that needs its records.
    pub fn note(&mut self, launched: &EnqueueCall) -> Option<LaunchOwner> {
        let frame = self.at?;
        let mut outer = Some(frame);
        while let Some(at) = outer.and_then(|at| self.frames.get_mut(at as usize)) {
            if at.context != 0 {
                break;
            }
            at.context = launched.context;
            outer = at.parent;
        }
        if let Some(capture) = launched.capture {
            self.lose_captured(frame, capture);
            return None;
        }
        if self.launches >= MAX_LAUNCHES {
            self.lose_around(frame, Lost::Long);
            return None;
        }
        if launched.lacks_records {
            self.lose_around(frame, Lost::Records);
            // A graph has records of its kernels. Another launch would be waited for in vain.
            if !launched.is_graph {
                return None;
            }
        }
        let of = self.frames.get_mut(frame as usize)?;
        self.launches += 1;
        of.launches += 1;
        Some(LaunchOwner {
            call: self.number,
            nth: of.nth,
            enqueued_ns: cuda::now_ns(),
            is_by_helper: false,
            is_after_stop: of.is_after_stop(),
        })
    }

    /// Returns where the frame with this number is. The call or a part of it must have ended.
    pub(in crate::record) fn find(&self, nth: u64) -> Whereabouts {
        match self.position(nth) {
            Some(at) if self.frames[at].keeps_launches => Whereabouts::Later,
            Some(at) => Whereabouts::Here(at as u32),
            None if nth >= self.entered => Whereabouts::Later,
            None => Whereabouts::Gone,
        }
    }

    /// Marks the innermost function and those around it as lost, because a launch cannot be kept.
    pub fn lose_launch(&mut self) {
        self.at.into_iter().for_each(|at| self.lose_around(at, Lost::Records));
    }

    /// Marks a frame and those around it as lost, unless they are already.
    fn lose_around(&mut self, frame: u32, lost: Lost) {
        let mut inner = Some(frame);
        while let Some(at) = inner.and_then(|at| self.frames.get_mut(at as usize)) {
            at.lost.get_or_insert(lost);
            inner = at.parent;
        }
    }

    /// Marks frames around a captured launch as lost if they were entered after the capture began.
    /// Frames entered earlier are kept: the captured launch is a part of them that does not run.
    fn lose_captured(&mut self, frame: u32, capture: u64) {
        let mut inner = Some(frame);
        while let Some(at) = inner.and_then(|at| self.frames.get_mut(at as usize)) {
            if at.captures_begun < capture {
                break;
            }
            at.lost = Some(Lost::Capture);
            inner = at.parent;
        }
    }

    /// Counts a record without times for a frame and those around it.
    pub fn count_zero_times(&mut self, frame: u32) {
        let mut inner = Some(frame);
        while let Some(frame) = inner.and_then(|at| self.frames.get_mut(at as usize)) {
            frame.zero_times += 1;
            inner = frame.parent;
        }
    }

    /// Ends the frame at a position. Returns `true` if the frame is the outermost one.
    pub fn leave(
        &mut self,
        position: usize,
        lost: Option<Lost>,
        device: impl FnOnce(usize) -> DeviceId,
    ) -> bool {
        let Some(frame) = self.frames.get_mut(position) else { return false };
        frame.left_ns = clock::now_ns();
        // Once timing is closed, launches are no longer noted.
        let unfinished = switches::is_closed().then_some(Lost::Unfinished);
        frame.lost = lost.or(frame.lost).or(unfinished);
        frame.is_over = !frame.subject.of.site.is_span();
        frame.count_on(device(frame.context));
        if self.at == Some(position as u32) {
            // A span may have been left before a span inside it.
            let left = |at: u32| self.frames.get(at as usize).filter(|of| of.left_ns > 0);
            while let Some(left) = self.at.and_then(left) {
                self.at = left.parent;
            }
        }
        position == 0
    }

    /// Continues the frame at a position, which was left, or whose function was suspended.
    pub fn go_on(&mut self, position: usize) {
        if let Some(of) = self.frames.get_mut(position) {
            of.left_ns = 0;
            self.at = Some(position as u32);
        }
    }

    /// Marks all functions that have not ended as lost.
    pub fn lose_unfinished(&mut self, reason: Lost) {
        for frame in self.frames.iter_mut().filter(|frame| frame.left_ns == 0) {
            frame.lost.get_or_insert(reason);
        }
    }

    /// Ends a call whose outermost function will not end. All functions that have not ended are lost.
    pub fn give_up(&mut self) {
        self.lose_unfinished(Lost::Unfinished);
        let now = clock::now_ns();
        for frame in &mut self.frames {
            // Counted on the device of the frame's first launch, if this thread used that context last.
            if let Some(context) = cuda::recent_current(frame.context) {
                frame.count_on(context.device_id());
            }
            if frame.left_ns == 0 {
                frame.left_ns = now;
            }
        }
    }

    /// Returns, for each frame, the time of helper threads that worked for it or for a frame inside it. `helped` has the
    /// frames that they worked for, and `figures` their work.
    pub fn helped_ns(&self, helped: &[u32], figures: &[CallFigures<'_>]) -> Vec<u64> {
        let mut helped_ns = vec![0; self.frames.len()];
        for (&frame, figures) in helped.iter().zip(figures) {
            let ns: u64 = figures.own_ns.values().sum();
            let mut inner = Some(frame as usize);
            while let Some(at) = inner
                && let Some(sum) = helped_ns.get_mut(at)
            {
                *sum += ns;
                inner = self.frames[at].parent.map(|outer| outer as usize);
            }
        }
        helped_ns
    }

    /// Returns the number of the call's frames and launches.
    pub fn work(&self) -> usize {
        self.frames.len() + self.launches
    }

    /// Returns the memory that the call has, in bytes.
    pub fn bytes(&self) -> usize {
        size_of::<OpenCall>() + self.frames.capacity() * size_of::<Frame>()
    }

    /// Gives back the memory that most calls do not need. The call must be empty.
    pub fn shrink(&mut self) {
        self.frames.shrink_to(IDLE_FRAMES);
    }

    /// Resets everything for another call, but keeps the memory.
    pub fn clear(&mut self) {
        self.frames.clear();
        (self.entered, self.kept, self.is_awaited) = (0, (0, 0), false);
        (self.around, self.phase, self.span_weight) = (None, None, None);
        self.cost_ns = 0;
        self.launches = 0;
        self.at = None;
        (self.is_incomplete, self.is_cut) = (false, false);
        self.switched_on = None;
    }
}
