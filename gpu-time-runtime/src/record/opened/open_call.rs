//! An opened call: its functions, and the launches that each of them made.

use crate::base::{clock, lock::locked};
use crate::cupti::{self, SwitchedOn};
use crate::record::series_counters::SeriesRef;
use crate::record::threads::ThreadRecorder;
use crate::record::timeline::CallId;
use crate::site::{callsite::CallSite, series_id::SeriesIdentity};
use crate::types::activity::Launched;
use crate::types::sample::{CacheState, Lost};
use crate::types::{device::DeviceId, handles::Stream, key::SeriesKey, workload::Workload};

/// The most functions of one opened call. Calls beyond it are counted as lost, and their work
/// belongs to the function around them.
const MAX_FRAMES: usize = 4_096;
/// The most launches of one opened call. Beyond it, the call is counted as lost.
const MAX_LAUNCHES: usize = 65_536;

/// The series that a call is counted in, once its device is known.
#[derive(Clone, Copy)]
pub(crate) struct CallSeries {
    pub site: &'static CallSite,
    pub thread: &'static ThreadRecorder,
    /// The launch that a function of a single one is shown as.
    pub launch: Option<u32>,
    pub cache: CacheState,
    pub key: SeriesKey,
}

/// The properties of one function of an opened call.
#[derive(Clone, Copy)]
pub(crate) struct Subject {
    pub of: CallSeries,
    /// The stream that the function names.
    pub stream: Option<Stream>,
    /// The number of calls that this call represents.
    pub weight: f32,
    pub workload: Workload,
    pub call_id: CallId,
}

/// An annotated function inside an opened call.
pub(crate) struct Frame {
    pub subject: Subject,
    pub parent: Option<u32>,
    pub entered_ns: u64,
    pub left_ns: u64,
    /// The number of captures that had begun before it was entered.
    pub captures_begun: u64,
    /// The context of its first launch, or of the first one inside it; 0 without a launch.
    pub context: usize,
    /// Set when the function has ended, and has been counted.
    pub series: Option<SeriesRef>,
    pub lost: Option<Lost>,
}

/// A call that enqueued work.
#[derive(Clone, Copy)]
pub(crate) struct Launch {
    pub correlation: u32,
    pub frame: u32,
    /// The stream that the caller gave, which is that of all the work unless it is a graph.
    pub stream: Option<Stream>,
    pub elsewhere: bool,
    pub is_graph: bool,
    pub has_record: bool,
}

/// A call with its frames and launches.
///
/// Invariant: while it is the thread's open call, `at` is the innermost frame that has not ended.
#[derive(Default)]
pub(crate) struct OpenCall {
    /// No other call of the process has it.
    pub number: u64,
    pub frames: Vec<Frame>,
    pub launches: Vec<Launch>,
    pub at: Option<u32>,
    pub has_overflowed: bool,
    /// Keeps the recording on.
    pub switched_on: Option<SwitchedOn>,
}

/// A frame of an opened call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameId {
    pub call: u64,
    pub index: u32,
}

impl CallSeries {
    /// Returns the identity of the series.
    pub fn identity(&self, device: DeviceId) -> SeriesIdentity {
        let function = SeriesIdentity::function(device, self.cache, self.key);
        SeriesIdentity { launch: self.launch, ..function }
    }
}

impl OpenCall {
    pub fn enter(&mut self, subject: Subject) -> Option<FrameId> {
        if self.frames.len() >= MAX_FRAMES {
            return None;
        }
        let id = self.frames.len() as u32;
        self.frames.push(Frame {
            subject,
            parent: self.at,
            entered_ns: clock::now_ns(),
            left_ns: 0,
            captures_begun: cupti::captures_begun(),
            context: 0,
            series: None,
            lost: None,
        });
        self.at = Some(id);
        Some(FrameId { call: self.number, index: id })
    }

    pub fn note(&mut self, launched: &Launched) {
        let Some(frame) = self.at else { return };
        if self.launches.len() >= MAX_LAUNCHES {
            self.has_overflowed = true;
            return;
        }
        let mut outer = Some(frame);
        while let Some(at) = outer.and_then(|at| self.frames.get_mut(at as usize)) {
            if at.context != 0 {
                break;
            }
            at.context = launched.context;
            outer = at.parent;
        }
        if let Some(capture) = launched.capture {
            return self.lose_captured(frame, capture);
        }
        let named = self.frames.get(frame as usize).and_then(|frame| frame.subject.stream);
        let stream = launched.stream.map(Stream);
        let elsewhere = named.zip(stream).is_some_and(|(named, stream)| {
            named != stream && !(named.is_legacy() && stream.is_legacy())
        });
        let &Launched { correlation, is_graph, .. } = launched;
        let has_record = false;
        self.launches.push(Launch { correlation, frame, stream, elsewhere, is_graph, has_record });
    }

    /// Counts the calls around a captured launch as lost that a capture is around. Those around the
    /// capture are not: it is a part of them that does not run.
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

    /// Ends a frame and counts its call. Returns `true` if it was the outermost one.
    pub fn leave(
        &mut self,
        id: FrameId,
        lost: Option<Lost>,
        device: impl FnOnce(usize) -> DeviceId,
    ) -> bool {
        let Some(frame) = self.frames.get_mut(id.index as usize) else { return false };
        frame.left_ns = clock::now_ns();
        frame.lost = lost.or(frame.lost);
        let device = device(frame.context);
        let CallSeries { site, thread, .. } = frame.subject.of;
        let mut recorder = locked(&thread.recorder);
        let series = recorder.series.begin(site, frame.subject.of.identity(device));
        drop(recorder);
        frame.series = Some(series);
        if self.at == Some(id.index) {
            self.at = frame.parent;
        }
        id.index == 0
    }

    pub fn parent(&self, frame: u32) -> Option<u32> {
        self.frames.get(frame as usize)?.parent
    }

    /// Makes it ready for another call, and keeps its memory.
    pub fn clear(&mut self) {
        self.frames.clear();
        self.launches.clear();
        self.at = None;
        self.has_overflowed = false;
        self.switched_on = None;
    }
}
