//! A CUDA context as the runtime knows it: its device, its events, its kernels.

mod gpu;

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use cudarc::driver::sys::{self, CUcontext, CUresult, CUstreamCaptureStatus};

use crate::base::fork;
use crate::cuda::blocking::launches_block;
use crate::cuda::calibration::{Calibrator, Equipment, Obstacle};
use crate::cuda::clock::DeviceClock;
use crate::cuda::context_guard::{relaxed, with_current};
use crate::cuda::device::DeviceInfo;
use crate::cuda::floor::FloorProbe;
use crate::cuda::flush::{Flushes, Means};
use crate::cuda::hold::Holds;
use crate::cuda::module::Module;
use crate::cuda::persisting::{L2, Persisting};
use crate::cuda::private_stream;
use crate::cuda::result::check;
use crate::cuda::result::raw;
use crate::cuda::retain::Retain;
use crate::cuda::symbols::{Symbols, symbols};
use crate::gpu::{Fault, Gpu};
use crate::stats::bias::{Bias, Calibration, ConfiguredBias};
use crate::stats::pair_constant::Floor;
use crate::types::attribute::Cold;
use crate::types::device::DeviceId;
use crate::types::handles::{Event, EventPair, Stream};
use crate::types::sample::CacheState;
use gpu_time_report::FlushProof;

/// One context, from the first call that came with it to the end of the process.
///
/// Invariant: the primary context of a device is retained, so that its events can still be read after
/// the application dropped its own handle. A context is never revived: one that turns up at the
/// address of a dead one is another `Context`.
#[repr(C, align(64))] // what every timed call looks at comes first, together
pub(crate) struct Context {
    pub(super) symbols: &'static Symbols,
    handle: usize,
    id: Option<u64>,
    dead: AtomicBool,
    ordinal: u32,
    pub device: DeviceInfo,
    retain: Retain,
    events: AtomicU32,
    /// Our own stream.
    pub(super) side: Result<Stream, Fault>,
    module: Module,
    flush: Flushes,
    persisting: Persisting,
    holds: Holds,
    floor: FloorProbe,
    clock: DeviceClock,
    /// What the times of graphs are counted from, once there was one.
    pub(super) origin: OnceLock<Option<Event>>,
    pub(super) blank: OnceLock<Result<EventPair, Fault>>,
    calibrator: Calibrator,
}

impl Context {
    pub(super) fn new(handle: usize, id: Option<u64>) -> Result<Context, Fault> {
        let symbols = symbols().map_err(|_| Fault::ContextGone)?;
        with_current(handle as CUcontext, || {
            relaxed(|| {
                let device = DeviceInfo::of_current()?;
                let retain = Retain::if_primary(handle, &device);
                let side = private_stream::create();
                Ok(Context {
                    symbols,
                    handle,
                    id,
                    dead: AtomicBool::new(false),
                    ordinal: device.ordinal,
                    retain,
                    events: AtomicU32::new(0),
                    module: Module::new(&device),
                    flush: Flushes::default(),
                    persisting: Persisting::default(),
                    holds: Holds::default(),
                    floor: FloorProbe::enqueue(symbols, side),
                    clock: DeviceClock::start(symbols, side),
                    origin: OnceLock::new(),
                    blank: OnceLock::new(),
                    calibrator: Calibrator::default(),
                    side,
                    device,
                })
            })
        })
    }

    #[inline]
    pub(super) fn is_still_the_same(&self) -> bool {
        let Some(context_id) = self.symbols.context_id else { return !self.is_dead() };
        let mut id = 0;
        // SAFETY: the caller's stream belongs to this context; writes one integer.
        let result = unsafe { context_id(self.handle as CUcontext, &raw mut id) };
        result == CUresult::CUDA_SUCCESS && Some(id) == self.id
    }

    pub(super) fn is(&self, handle: usize, id: Option<u64>) -> bool {
        self.handle == handle && self.id == id
    }

    /// The `CUcontext`.
    pub fn handle(&self) -> usize {
        self.handle
    }

    /// Another context has its handle.
    pub(super) fn give_up(&self) {
        self.dead.store(true, Relaxed);
    }

    /// Whether nothing can be measured in it any more.
    pub fn is_dead(&self) -> bool {
        self.dead.load(Relaxed) || fork::is_forked()
    }

    /// Whether it is there until the process ends or its device is reset.
    pub fn is_retained(&self) -> bool {
        self.retain.is_held()
    }

    /// The row of its device.
    pub fn device_id(&self) -> DeviceId {
        DeviceId::Cuda(self.ordinal)
    }

    /// Returns `true` if flushes of this kind can be enqueued, after preparing them if `is_free` allows
    /// it: preparing enqueues work, which must not end up inside a bracket. If flushes stay impossible,
    /// the report says why.
    pub fn can_flush(&self, cold: Cold, is_free: bool) -> bool {
        let can = self.is_ready_to_flush(cold) || (is_free && self.find_flush(cold).is_ok());
        if !can && self.side.is_ok() {
            self.flush.leave_out(cold);
        }
        can
    }

    /// Prepares flushes of this kind. To be called while no bracket is open.
    pub fn prepare_flush(&self, cold: Cold) {
        if !self.is_ready_to_flush(cold) {
            _ = self.find_flush(cold);
        }
    }

    /// Returns `true` if flushes of this kind were prepared.
    pub fn is_ready_to_flush(&self, cold: Cold) -> bool {
        self.flush.is_ready_for(cold)
    }

    fn find_flush(&self, cold: Cold) -> Result<(), Fault> {
        self.inside(|| {
            let Context { symbols, device, module, .. } = self;
            self.flush.prepare(cold, &Means { symbols, device, module, side: self.side? })
        })
    }

    /// Looks again for a flush of which nothing could be seen, a few times in all.
    fn prove_flush(&self, cold: Cold) {
        let Ok(side) = self.side else { return };
        if self.flush.is_in_doubt(cold) && self.has_done_all(side) {
            _ = self.inside(|| {
                let Context { symbols, device, module, .. } = self;
                self.flush.search_again(cold, &Means { symbols, device, module, side });
                Ok(())
            });
        }
    }

    /// Whether nothing is left on a stream of what was enqueued. It is not being captured.
    fn has_done_all(&self, stream: Stream) -> bool {
        // SAFETY: the stream is live.
        relaxed(|| self.on_stream(stream, || unsafe { sys::cuStreamQuery(raw(stream)) })).is_ok()
    }

    /// Returns `true` if streams can be held, after preparing that if `is_free` allows it, as for
    /// [`Context::can_flush`].
    pub fn can_hold(&self, is_free: bool) -> bool {
        self.is_ready_to_hold()
            || (is_free && self.inside(|| self.holds.prepare(&self.module, self.side?)).is_ok())
    }

    /// Returns `true` if holds were prepared.
    pub fn is_ready_to_hold(&self) -> bool {
        self.holds.is_ready()
    }

    /// Lets every held stream go; with `for_ever`, also those that are held from now on.
    pub fn release_holds(&self, for_ever: bool) {
        self.holds.release_all(for_ever);
    }

    /// The state in which a flush enqueued on the stream now leaves the L2.
    pub fn flushed_state(&self, stream: Stream, cold: Cold) -> CacheState {
        match cold {
            _ if self.persisting.may_be_there(&self.l2(), stream) => CacheState::Partial,
            _ if !self.flush.is_proved(cold) => CacheState::Partial,
            Cold::Clean => CacheState::Cold,
            Cold::Dirty => CacheState::ColdDirty,
        }
    }

    fn l2(&self) -> L2<'_> {
        L2 { symbols: self.symbols, handle: self.handle, l2_bytes: self.device.l2_bytes }
    }

    /// How much a flush reads or writes, if one was prepared.
    pub fn flush_bytes(&self) -> Option<u64> {
        self.flush.bytes()
    }

    /// What flushes were seen to evict.
    pub fn flush_proof(&self) -> Option<FlushProof> {
        self.flush.proof()
    }

    /// What a pair of events reads with nothing between, once that is known.
    pub fn floor(&self) -> Option<Floor> {
        if self.check_alive().is_ok() { self.floor.get() } else { self.floor.known() }
    }

    /// The same without asking for it.
    pub(super) fn known_floor(&self) -> Option<Floor> {
        self.floor.known()
    }

    /// How much later than at best the GPU must reach a start for the sample to count as fed, once the
    /// clocks are aligned.
    pub fn fed_margin_ns(&self) -> Option<f64> {
        Some(self.clock.known()?.margin_ns)
    }

    /// Whether the event bias was calibrated, or that was tried in vain.
    pub fn is_calibrated(&self) -> bool {
        self.calibrator.is_tried()
    }

    /// Calibrates the event bias, once, unless `stream` is being captured. Takes some milliseconds, and
    /// must stand in no bracket.
    pub fn calibrate(&self, stream: Stream) {
        if !self.is_calibrated() && self.is_capturing(stream) == Ok(false) {
            let step_ns = self.step_ns();
            _ = self.inside(|| self.calibrator.calibrate(step_ns, self.equipment()));
            self.refine_floor();
        }
    }

    /// Looks whether the event bias has moved, and again for a flush of which nothing could be seen, to be
    /// called with the GPU idle and no bracket open.
    pub fn check_calibration(&self) {
        if self.check_alive().is_ok() {
            let step_ns = self.step_ns();
            _ = self.inside(|| self.calibrator.check(step_ns, self.equipment()));
            self.refine_floor();
            [Cold::Clean, Cold::Dirty].into_iter().for_each(|cold| self.prove_flush(cold));
        }
    }

    fn refine_floor(&self) {
        if let Some(Calibration { pair_ns: Some(pair_ns), .. }) = self.calibration() {
            self.floor.refine(pair_ns);
        }
    }

    fn equipment(&self) -> Result<Equipment<'_>, Obstacle> {
        if launches_block() {
            return Err(Obstacle::Blocking);
        }
        self.holds.prepare(&self.module, self.side?)?;
        let empty = self.module.kernels()?.empty;
        Ok(Equipment { symbols: self.symbols, holds: &self.holds, empty })
    }

    fn step_ns(&self) -> Option<f64> {
        self.floor().and_then(|floor| floor.step_ns)
    }

    /// What a pair of events reads around a kernel that does nothing, once that is known.
    pub fn calibration(&self) -> Option<Calibration> {
        self.calibrator.get()
    }

    /// What a pair of events takes longer where much is behind it, as far as that is known.
    #[inline]
    pub(super) fn queued_extra_ns(&self) -> f64 {
        self.calibrator.queued_extra_ns()
    }

    /// What is to be subtracted from a raw time for each bracket, if it is known.
    pub fn bias(&self, given: Option<ConfiguredBias>) -> Option<Bias> {
        Bias::of(given, self.calibration(), &self.device.name, self.floor())
    }

    /// What went wrong while preparing, for the report.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Err(fault) = self.side {
            warnings.push(format!(
                "no stream of our own could be created ({fault}): `cold` and `sleep` were left out"
            ));
        }
        warnings.extend(self.module.warning());
        warnings.extend(self.flush.warnings());
        warnings.extend(self.persisting.warning());
        warnings.extend(self.holds.warning());
        warnings.extend(self.calibrator.warning(self.step_ns()));
        if self.is_dead() {
            warnings.push("a context was destroyed, reset, or failed for good".to_owned());
        }
        warnings
    }

    /// Runs driver calls in this context, without a trace on the calling thread.
    pub(super) fn inside<R>(&self, f: impl FnOnce() -> Result<R, Fault>) -> Result<R, Fault> {
        if self.is_dead() {
            return Err(Fault::ContextGone);
        }
        self.noting(with_current(self.handle as CUcontext, || relaxed(f)))
    }

    /// Calls the driver about `stream`; one that names its context needs none to be current.
    #[inline]
    pub(super) fn on_stream(
        &self,
        stream: Stream,
        call: impl Fn() -> CUresult,
    ) -> Result<(), Fault> {
        let in_context = || with_current(self.handle as CUcontext, || check(call()));
        let result = if stream.is_implicit() {
            in_context()
        } else {
            match call() {
                CUresult::CUDA_SUCCESS => return Ok(()),
                CUresult::CUDA_ERROR_INVALID_CONTEXT => in_context(),
                result => check(result),
            }
        };
        self.noting(result)
    }

    #[inline]
    pub(super) fn capture_status(&self, stream: Stream) -> Result<CUstreamCaptureStatus, Fault> {
        let status = Cell::new(CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE);
        self.on_stream(stream, || {
            // SAFETY: writes the status of a live stream.
            unsafe { (self.symbols.is_capturing)(raw(stream), status.as_ptr()) }
        })?;
        Ok(status.get())
    }

    /// Waits until the GPU has done all that was enqueued on the stream. What that finds to have failed,
    /// the application's next call finds too: such an error stays with the context.
    pub fn synchronize(&self, stream: Stream) -> Result<(), Fault> {
        relaxed(|| {
            // SAFETY: the stream is live.
            self.on_stream(stream, || unsafe { sys::cuStreamSynchronize(raw(stream)) })
        })
    }

    /// Remembers a context that is no more, and gives its retain back if it failed for good.
    fn noting<R>(&self, result: Result<R, Fault>) -> Result<R, Fault> {
        match result {
            Err(Fault::ContextGone) => self.dead.store(true, Relaxed),
            Err(Fault::Sticky) => {
                self.dead.store(true, Relaxed);
                self.retain.give_back(&self.device);
            }
            _ => {}
        }
        result
    }
}
