//! Opens and closes the brackets for a call on a stream.

use crate::base::lock::locked;
use crate::base::thread_id;
use crate::call::call_state::{CallState, later};
use crate::call::host_start::HostStart;
use crate::call::stream::Life;
use crate::control::cold_override;
use crate::cuda::{self, Context};
use crate::gpu::{Gpu, HoldPlan, Preparation};
use crate::record::bracket::{Bracket, BracketSubject};
use crate::record::graph::{self, OpenNode};
use crate::record::opened::{self, FrameId};
use crate::record::recorder::{self, Recorder};
use crate::record::series_counters::SeriesRef;
use crate::record::stream_state::{StreamKey, StreamState};
use crate::record::threads::{StreamCall, ThreadRecorder};
use crate::record::{open_brackets, open_brackets::RunningCall, pool};
use crate::site::{cost, series_id::SeriesIdentity};
use crate::types::attribute::{Clock, Hold};
use crate::types::sample::{CacheState, Lost, Sample};
use crate::types::{handles::Stream, settings::Settings, workload::Workload};

/// An open bracket on a real GPU.
pub(crate) type GpuBracket = Box<Bracket<Context>>;

/// A started launch: in a stream, as a graph node, or in an opened call.
pub(crate) enum OpenLaunch {
    Bracket {
        thread: &'static ThreadRecorder,
        /// The call that makes the launch.
        running: RunningCall,
        bracket: GpuBracket,
    },
    Node(Box<OpenNode>),
    /// In an opened call.
    Opened(FrameId),
}

/// The preparation of a bracket.
struct BracketPlan {
    prepare: Preparation,
    /// The state of the cache after the preparation.
    cache: CacheState,
    /// The host clock is read as well: the site has `sleep`, or a series of long times.
    by_host: bool,
}

impl StreamCall {
    /// Opens the bracket around a body, or counts it as lost.
    pub fn open_body(&self, life: Life<'_>) -> Option<GpuBracket> {
        self.open(None, self.obstacle(life))
    }

    /// Opens the bracket around a launch or, in a capture, a graph node if the site wants nodes. On
    /// failure, counts the launch and its call's sum as lost.
    pub fn open_launch(
        &self,
        launch: u32,
        state: &CallState,
        life: Life<'_>,
    ) -> Option<OpenLaunch> {
        let obstacle = self.obstacle(life);
        if obstacle == Some(Lost::Capture)
            && let Some(opened) = self.open_node(launch, state)
        {
            return opened.ok().map(OpenLaunch::Node);
        }
        let bracket = self.open(Some((launch, state)), obstacle)?;
        Some(OpenLaunch::Bracket { thread: self.thread, running: self.running, bracket })
    }

    /// Turns a captured launch into a graph node. Returns `None` if the site does not want nodes. An
    /// `Err` has already been counted as lost.
    #[cold]
    fn open_node(&self, launch: u32, state: &CallState) -> Option<Result<Box<OpenNode>, Lost>> {
        let opened = if self.site.spec.graph { graph::open(self, launch)? } else { return None };
        state.leave_to_graph(self);
        Some(opened)
    }

    /// Returns the state of the call's stream.
    pub fn stream_state(&self) -> &'static StreamState {
        let StreamCall { thread, context, stream, .. } = *self;
        locked(&thread.recorder).stream_state(context, StreamKey::new(stream, thread))
    }

    /// Returns the reason why nothing can be recorded now, if any.
    #[inline]
    pub fn obstacle(&self, life: Life<'_>) -> Option<Lost> {
        life.obstacle().or_else(|| obstacle(self.context, self.stream))
    }

    #[inline(always)] // its two callers are not inlined
    fn open(
        &self,
        launch: Option<(u32, &CallState)>,
        obstacle: Option<Lost>,
    ) -> Option<GpuBracket> {
        let mut plan = self.plan(launch, obstacle.is_some());
        let mut bracket = self.claim(&mut plan, launch, obstacle)?;
        let BracketPlan { prepare, by_host, .. } = plan;
        let StreamCall { site, context, stream, running, .. } = self;
        let thread_id = stream.is_per_thread().then(thread_id::current);
        match bracket.start(prepare, by_host, thread_id) {
            Ok(()) => {
                open_brackets::set(*running, Some(bracket.subject.stream_state));
                if cost::is_on() {
                    site.cost.count_pair(context.pair_cost_ns());
                    site.cost.count_preparation(context.preparation_cost_ns(prepare));
                }
                Some(bracket)
            }
            Err(fault) => {
                abandon(self.thread, bracket, fault.into());
                None
            }
        }
    }

    /// Takes a bracket from the pool, or counts it as lost.
    // Without optimisation, inlining would add this frame to the caller's, which stays on the stack
    // while the driver runs.
    #[cfg_attr(not(debug_assertions), inline(always))]
    #[cfg_attr(debug_assertions, inline(never))]
    fn claim(
        &self,
        plan: &mut BracketPlan,
        launch: Option<(u32, &CallState)>,
        obstacle: Option<Lost>,
    ) -> Option<GpuBracket> {
        let StreamCall { site, thread, context, stream, tracked, call_id, work, weight, .. } =
            *self;
        let stream_key = StreamKey::new(stream, thread);
        let mut recorder = locked(&thread.recorder);
        let stream_state = recorder.stream_state(context, stream_key);
        let function = self.function(plan.cache);
        let series = self.begin_series(&mut recorder, function, launch);
        let place = self.running.place(stream_state);
        let call =
            launch.and_then(|(_, state)| state.begin(site, function, &mut recorder, work, place));
        // If the call has a sum, the workload is attributed to the sum.
        let is_whole = launch.is_none() || site.spec.is_single;
        let workload = if is_whole { work } else { Workload::UNKNOWN };
        // A closure, so that the subject is constructed in place.
        let subject = || BracketSubject {
            site,
            stream,
            stream_state,
            series,
            call,
            call_id,
            tracked,
            weight,
            workload,
            place,
        };
        let opened = match obstacle {
            Some(reason) => Err(reason),
            None => match recorder.open(context, stream_key, subject) {
                Some(bracket) => Ok(bracket),
                None => {
                    drop(recorder);
                    let opened = self.open_new(subject());
                    recorder = locked(&thread.recorder);
                    opened
                }
            },
        };
        match opened {
            Ok(bracket) => {
                plan.by_host |= recorder.series.is_long(series);
                Some(bracket)
            }
            Err(reason) => {
                recorder.lose_unopened(subject(), reason);
                None
            }
        }
    }

    /// Decides what to enqueue before the bracket. Must be called without the recorder's lock, because the
    /// driver may be called if the attribute asks for anything.
    #[inline(always)]
    fn plan(&self, launch: Option<(u32, &CallState)>, is_lost: bool) -> BracketPlan {
        let first = launch.and_then(|(_, state)| state.first_cache());
        let is_plain = self.site.is_plain() && cold_override::is_none();
        let settings = if is_plain { Settings::default() } else { self.site.settings() };
        let (prepare, cache) = if is_plain || is_lost {
            (Preparation::default(), later(first))
        } else {
            self.preparation(settings, self.stream_state().is_busy(), first)
        };
        BracketPlan { prepare, cache, by_host: settings.hold.is_some() }
    }

    /// Returns the identity of the function's own series in this cache state.
    #[inline(always)]
    pub fn function(&self, cache: CacheState) -> SeriesIdentity {
        let on_default = self.site.spec.clock == Clock::Kernels;
        let function = SeriesIdentity::function(self.context.device_id(), cache, self.key);
        SeriesIdentity { on_default, ..function }
    }

    /// Counts the bracket as begun, in the series of the launch, or else of the function.
    #[inline(always)]
    fn begin_series(
        &self,
        recorder: &mut Recorder<Context>,
        function: SeriesIdentity,
        launch: Option<(u32, &CallState)>,
    ) -> SeriesRef {
        let (launch, state) = launch.unzip();
        let series = recorder.series.begin(self.site, SeriesIdentity { launch, ..function });
        if self.weight != 1.0
            && let Some((launch, state)) = launch.zip(state)
            && state.makes_again(launch)
            && let Some(id) = recorder.series.id(series)
        {
            id.repeat();
        }
        series
    }

    /// Opens a bracket when the pool has no idle one. Must be called without the recorder's lock, because the
    /// driver creates events.
    #[cold]
    fn open_new(&self, subject: BracketSubject) -> Result<GpuBracket, Lost> {
        let StreamCall { thread, context, .. } = *self;
        let ordered = locked(&thread.recorder).pools.order(context);
        let made = pool::make(context, ordered, subject);
        let fault = made.as_ref().err().copied();
        let mut recorder = locked(&thread.recorder);
        recorder.pools.supply(context, ordered, made.unwrap_or_default());
        let opened = recorder.open(context, StreamKey::new(subject.stream, thread), || subject);
        opened.ok_or(fault.map_or(Lost::Events, Lost::from))
    }

    /// Records the stop event and queues the bracket until the GPU has passed it. If the bracket is
    /// around the whole call, `started` is when the call began.
    pub fn close(&self, mut bracket: GpuBracket, life: Life<'_>, started: Option<HostStart>) {
        open_brackets::set(self.running, None);
        let thread = self.thread;
        let obstacle = if let Some(reason) = life.obstacle() {
            Some(reason)
        } else if bracket.thread_id().is_some_and(|id| id != thread_id::current()) {
            Some(Lost::Thread)
        } else if self.stream.is_implicit() {
            // A record in the NULL stream invalidates a capture in another stream.
            obstacle(self.context, self.stream)
        } else {
            // A record in any other stream does not invalidate a capture. The events then have no
            // time, which is detected when they are read.
            self.context.is_gone().then_some(Lost::Context)
        };
        if let Some(reason) = obstacle {
            return abandon(thread, bracket, reason);
        }
        let stopped = bracket.stop();
        if cost::is_on() {
            self.site.cost.count_preparation(bracket.held_ns());
        }
        let mut recorder = locked(&thread.recorder);
        let is_due = match stopped {
            Ok(()) => {
                if let Some(started) = started {
                    let (series, path) = (bracket.subject.series, self.running.path());
                    let time = started.until(bracket.stopped_ns, series, path);
                    time.into_iter().for_each(|time| recorder.queue_host_time(time));
                }
                recorder.pending.push(bracket)
            }
            Err(fault) => {
                recorder.lose(bracket, fault.into());
                false
            }
        };
        drop(recorder);
        if is_due {
            recorder::drain(&thread.recorder);
            if graph::has_nodes() {
                // Makes the thread's next call poll for graph replays before it enqueues anything.
                cuda::forget_recent();
            }
        }
    }

    /// Ends a call whose launches are timed individually. `lost` is the reason if the call did not return.
    pub fn end_launches(&self, state: &CallState, lost: Option<Lost>, started: Option<HostStart>) {
        if lost.is_none()
            && let Some(started) = started
        {
            self.queue_host_time(state, started);
        }
        match state.sum() {
            Some(sum) => locked(&self.thread.recorder).end_call(sum, lost),
            None if state.first_cache().is_none() => {
                // The call did not launch anything.
                let outcome = lost.map_or(Ok(Sample::nothing()), Err);
                locked(&self.thread.recorder).count(
                    self.site,
                    self.context.device_id(),
                    self.key,
                    outcome,
                    self.running.outside(),
                );
            }
            // There is no sum: it could not be started, the launch itself is the sum, or a launch
            // became a graph node.
            None => {}
        }
    }

    /// Queues a call's host time for its path and for the series of its sum, or of its launch if the call
    /// makes only one.
    #[cold]
    fn queue_host_time(&self, state: &CallState, started: HostStart) {
        let ended_ns = self.context.now_ns();
        let is_single = self.site.spec.is_single;
        let Some(cache) = state.first_cache().filter(|_| is_single || state.sum().is_some()) else {
            return;
        };
        let identity = SeriesIdentity { launch: is_single.then_some(0), ..self.function(cache) };
        let mut recorder = locked(&self.thread.recorder);
        let series = recorder.series.find(self.site, identity);
        let time = series.and_then(|series| started.until(ended_ns, series, self.running.path()));
        time.into_iter().for_each(|time| recorder.queue_host_time(time));
    }

    /// Returns the flush and hold to enqueue before a bracket, and the cache state that the bracket then
    /// has. `is_inside` is `true` if another bracket is open on the stream. `first` is the cache state of
    /// the call's first launch, if this is a later one.
    #[cold]
    pub fn preparation(
        &self,
        settings: Settings,
        is_inside: bool,
        first: Option<CacheState>,
    ) -> (Preparation, CacheState) {
        let context = self.context;
        // Setting up flushes and holds enqueues work, which must not end up in an open bracket.
        let is_free = |is_ready: bool| is_ready || !locked(&self.thread.recorder).has_open();
        let cold = cold_override::apply(settings.cold)
            .filter(|_| first.is_none() && !is_inside)
            .filter(|cold| context.can_flush(*cold, is_free(context.flushes.is_ready_for(*cold))));
        let cache = match cold {
            Some(cold) => self.context.flushed_state(self.stream, cold),
            None => later(first),
        };
        let hold = match settings.hold {
            Some(Hold::UntilEnqueued) => {
                self.site.hold_deadline().deadline_ns().map(HoldPlan::Until)
            }
            Some(Hold::For(ns)) => Some(HoldPlan::For(ns)),
            None => None,
        };
        let hold =
            hold.filter(|_| !is_inside && context.can_hold(is_free(context.is_ready_to_hold())));
        (Preparation { cold, hold }, cache)
    }
}

/// Returns the reason why nothing can currently be recorded on the stream, if any.
#[inline(always)]
fn obstacle(context: &Context, stream: Stream) -> Option<Lost> {
    if context.is_gone() {
        return Some(Lost::Context);
    }
    match context.is_capturing(stream) {
        Ok(false) => None,
        Ok(true) => Some(Lost::Capture),
        Err(fault) => Some(fault.into()),
    }
}

/// Abandons a bracket. If it belongs to a launch, the call's sum is lost too.
pub(crate) fn abandon(thread: &'static ThreadRecorder, mut bracket: GpuBracket, reason: Lost) {
    bracket.close();
    locked(&thread.recorder).lose(bracket, reason);
}

impl OpenLaunch {
    /// Stops the launch.
    pub fn close(self, call: &StreamCall, life: Life<'_>) {
        match self {
            OpenLaunch::Bracket { bracket, .. } => call.close(bracket, life, None),
            OpenLaunch::Node(node) => node.close(life.obstacle().is_none()),
            OpenLaunch::Opened(frame) => opened::set_launching(frame, false),
        }
    }

    /// Ends the launch, and counts it as lost unless it is in an opened call.
    pub fn abandon(self, reason: Lost) {
        match self {
            OpenLaunch::Bracket { thread, running, bracket } => {
                open_brackets::set(running, None);
                abandon(thread, bracket, reason);
            }
            OpenLaunch::Node(node) => node.lose(reason),
            OpenLaunch::Opened(frame) => opened::set_launching(frame, false),
        }
    }
}
