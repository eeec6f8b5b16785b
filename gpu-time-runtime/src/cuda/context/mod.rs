//! A CUDA context and the runtime's resources in it: events, kernels, a stream, calibration.

mod gpu;

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use cudarc::driver::sys::{self, CUcontext, CUresult, CUstreamCaptureStatus};

use crate::base::background;
use crate::cuda::calibration::{Calibrator, Equipment};
use crate::cuda::context_guard::{inside, relaxed, with_current};
use crate::cuda::flush::{Flushes, Resources};
use crate::cuda::persisting::PersistingLines;
use crate::cuda::result::{check, raw};
use crate::cuda::symbols::{Symbols, symbols};
use crate::cuda::{clock::DeviceClock, device::DeviceInfo, driver, floor::FloorProbe};
use crate::cuda::{hold::Holds, module::Module, no_result::NoResult, objects::create_stream};
use crate::gpu::{Fault, Gpu};
use crate::stats::bias::{Bias, Calibration, ConfiguredBias, KernelBase, KnownBases};
use crate::stats::pair_constant::Floor;
use crate::types::handles::{Event, EventPair, Stream};
use crate::types::stream_id::StreamId;
use crate::types::{attribute::Cold, device::DeviceId, sample::CacheState};

/// A CUDA context, from the first call that uses it until the process ends.
///
/// A primary context is retained, so that its events can still be read after the application has
/// released it. Brackets and threads keep references, so a `Context` is never freed, even after the
/// driver's context has been destroyed. [`Context::retire`] frees everything except the `Context`
/// itself.
///
/// Invariant: a context is never revived. A new context at the address of a dead one gets another
/// `Context`.
#[repr(C, align(64))] // the fields that every timed call reads come first, together
pub(crate) struct Context {
    pub(super) symbols: &'static Symbols,
    /// The `CUcontext`.
    pub(super) handle: usize,
    pub(super) id: Option<u64>,
    dead: AtomicBool,
    ordinal: u32,
    pub device: DeviceInfo,
    /// `true` while this is the device's primary context and the runtime retains it.
    is_retained: AtomicBool,
    events: AtomicU32,
    pub(super) own_stream: Result<Stream, Fault>,
    module: Module,
    pub flushes: Flushes,
    persisting: PersistingLines,
    holds: Holds,
    pub(super) floor: FloorProbe,
    clock: DeviceClock,
    /// The event from which graph times are counted, set when a graph is first timed.
    pub(super) origin: OnceLock<Option<Event>>,
    pub(super) blank: OnceLock<Result<EventPair, Fault>>,
    pub(super) calibrator: Calibrator,
    /// CUPTI's time of an empty kernel, if this process has measured it.
    pub kernel_base: OnceLock<KernelBase>,
}

impl Context {
    pub(super) fn new(handle: usize, id: Option<u64>) -> Result<Context, Fault> {
        let symbols = symbols().map_err(|_| Fault::ContextGone)?;
        inside(handle, || {
            let device = DeviceInfo::of_current()?;
            let is_retained = AtomicBool::new(driver::retain_if_primary(handle, device.ordinal));
            let own_stream = create_stream();
            Ok(Context {
                symbols,
                handle,
                id,
                dead: AtomicBool::new(false),
                ordinal: device.ordinal,
                is_retained,
                events: AtomicU32::new(0),
                module: Module::new(&device),
                flushes: Flushes::default(),
                persisting: PersistingLines::new(symbols, handle, device.l2_bytes),
                holds: Holds::default(),
                floor: FloorProbe::enqueue(symbols, own_stream),
                clock: DeviceClock::start(symbols, own_stream),
                origin: OnceLock::new(),
                blank: OnceLock::new(),
                calibrator: Calibrator::default(),
                kernel_base: OnceLock::new(),
                own_stream,
                device,
            })
        })
    }

    #[inline]
    pub(super) fn is_still_the_same(&self) -> bool {
        let Some(context_id) = self.symbols.context_id else { return !self.is_gone() };
        let mut id = 0;
        // SAFETY: the caller's stream belongs to this context; writes one integer.
        let result = unsafe { context_id(self.handle as CUcontext, &raw mut id) };
        result == CUresult::CUDA_SUCCESS && Some(id) == self.id
    }

    /// Marks the context as dead, because another context now has its handle.
    pub(super) fn give_up(&self) {
        self.dead.store(true, Relaxed);
    }

    /// Returns `true` if the driver reports that the context has been destroyed. A context that
    /// failed permanently still exists. Drivers without ids cannot tell, so a dead context then
    /// counts as destroyed.
    pub(super) fn is_destroyed(&self) -> bool {
        match self.id {
            None => self.is_gone(),
            id => driver::id_of(self.handle)
                .map_or_else(|fault| fault == Fault::ContextGone, |now| now != id),
        }
    }

    /// Frees a destroyed context's resources in host memory: the pages that the GPU writes to, and
    /// the lists of events. Returns `false` if another thread is still using some of them.
    pub(super) fn retire(&self) -> bool {
        self.dead.store(true, Relaxed);
        self.holds.retire();
        self.floor.retire();
        let done = [self.clock.retire(), self.flushes.retire(), self.calibrator.retire()];
        done.into_iter().all(|is_done| is_done)
    }

    /// Returns `true` if the context exists until the process ends or the device is reset.
    pub fn is_retained(&self) -> bool {
        self.is_retained.load(Relaxed)
    }

    /// Identifies a stream of this context by the handle that the calling thread uses.
    pub fn stream_id(&self, stream: Stream) -> StreamId {
        StreamId::new(stream, self.handle)
    }

    /// Returns the device's id for the report.
    pub fn device_id(&self) -> DeviceId {
        DeviceId::Cuda(self.ordinal)
    }

    /// Returns `true` if flushes of this kind can be enqueued. If `is_free`, that is, if no bracket
    /// is open, prepares them if necessary: this enqueues work, which a bracket would time. If
    /// flushes remain impossible, the report says why.
    pub fn can_flush(&self, cold: Cold, is_free: bool) -> bool {
        let can = self.flushes.is_ready_for(cold) || (is_free && self.prepare_flush(cold).is_ok());
        if !can && self.own_stream.is_ok() {
            self.flushes.leave_out(cold);
        }
        can
    }

    /// Prepares flushes of this kind. Must be called while no bracket is open.
    pub fn prepare_flush(&self, cold: Cold) -> Result<(), Fault> {
        let resources = self.resources(self.own_stream?);
        let prepare = || self.inside(|| self.flushes.prepare(cold, &resources));
        if self.flushes.has_searched(cold) { prepare() } else { background::aside(prepare) }
    }

    /// Searches again for a flush whose effect could not be measured, up to a few times.
    fn prove_flush(&self, cold: Cold) {
        let Ok(own_stream) = self.own_stream else { return };
        if self.flushes.is_in_doubt(cold) && self.is_idle(own_stream) {
            _ = self.inside(|| {
                self.flushes.search_again(cold, &self.resources(own_stream));
                Ok(())
            });
        }
    }

    fn resources(&self, own_stream: Stream) -> Resources<'_> {
        let Context { symbols, device, module, .. } = self;
        Resources { symbols, device, module, own_stream }
    }

    /// Returns `true` if the GPU has finished all work on a stream, which must not be capturing.
    fn is_idle(&self, stream: Stream) -> bool {
        // SAFETY: the stream is live.
        relaxed(|| self.on_stream(stream, || unsafe { sys::cuStreamQuery(raw(stream)) })).is_ok()
    }

    /// Returns `true` if streams can be held, which is impossible if every launch waits for its
    /// kernel. If `is_free`, prepares holds if necessary, as in [`Context::can_flush`].
    pub fn can_hold(&self, is_free: bool) -> bool {
        if !self.holds.has_tried() && is_free && !self.symbols.launches_block {
            _ = background::aside(|| {
                self.inside(|| self.holds.prepare(&self.module, self.own_stream?))
            });
        }
        !self.symbols.launches_block && self.is_ready_to_hold()
    }

    /// Returns `true` if holds have been prepared.
    pub fn is_ready_to_hold(&self) -> bool {
        self.holds.is_ready()
    }

    /// Releases every held stream. With `forever`, later holds are released as well.
    pub fn release_holds(&self, forever: bool) {
        self.holds.release_all(forever);
    }

    /// Returns the L2 state that a flush enqueued now on this stream will leave.
    pub fn flushed_state(&self, stream: Stream, cold: Cold) -> CacheState {
        match cold {
            _ if self.persisting.may_exist(stream) => CacheState::Partial,
            _ if !self.flushes.is_proved(cold) => CacheState::Partial,
            Cold::Clean => CacheState::Cold,
            Cold::Dirty => CacheState::ColdDirty,
        }
    }

    /// Returns the time of an empty event pair, once it is known.
    pub fn floor(&self) -> Option<Floor> {
        if self.check_alive().is_ok() { self.floor.get() } else { self.floor.known() }
    }

    /// Returns the margin by which the GPU must reach a bracket's start after the host has enqueued its stop,
    /// for the sample to count as fed. Returns `None` until the clocks are aligned.
    pub fn fed_margin_ns(&self) -> Option<f64> {
        Some(self.clock.known()?.margin_ns)
    }

    /// Returns `true` if calibration has been tried, even if it failed.
    pub fn is_calibrated(&self) -> bool {
        self.calibrator.tried.load(Relaxed)
    }

    /// Calibrates the event bias, unless that has been tried before. Takes some milliseconds. Must
    /// be called while no bracket is open.
    pub fn calibrate(&self) {
        if !self.is_calibrated() {
            self.run_calibration(false);
        }
    }

    /// Checks whether the event bias has moved, and searches again for flushes whose effect could
    /// not be measured. Must be called while the GPU is idle and no bracket is open.
    pub fn check_calibration(&self) {
        if self.check_alive().is_ok() {
            self.run_calibration(true);
            [Cold::Clean, Cold::Dirty].into_iter().for_each(|cold| self.prove_flush(cold));
        }
    }

    fn run_calibration(&self, checks: bool) {
        let step_ns = self.step_ns();
        _ = self.inside(|| self.calibrator.calibrate(checks, self.equipment(step_ns)));
        if let Some(Calibration { pair_ns: Some(pair_ns), .. }) = self.calibration() {
            self.floor.refine(pair_ns);
        }
    }

    fn equipment(&self, step_ns: Option<f64>) -> Result<Equipment<'_>, NoResult> {
        if self.symbols.launches_block {
            return Err(NoResult::Blocking);
        }
        self.holds.prepare(&self.module, self.own_stream?)?;
        let empty = self.module.kernels()?.empty;
        Ok(Equipment { symbols: self.symbols, holds: &self.holds, empty, step_ns })
    }

    fn step_ns(&self) -> Option<f64> {
        self.floor().and_then(|floor| floor.step_ns)
    }

    /// Returns the calibration of the event bias, once it has succeeded.
    pub fn calibration(&self) -> Option<Calibration> {
        self.calibrator.calibration.get().copied()
    }

    /// Returns `true` if the bias is calibrated, but CUPTI has not measured an empty kernel.
    #[cfg(feature = "kernels")]
    pub fn lacks_kernel_base(&self) -> bool {
        self.kernel_base.get().is_none() && self.calibration().is_some()
    }

    /// Runs the empty kernel `count` times behind holds, on the stream used for calibration, and
    /// waits until the GPU is done. Returns `false` on failure. Must be called while no bracket is
    /// open.
    pub fn run_empty_kernels(&self, count: usize) -> bool {
        let step_ns = self.step_ns();
        let run = || Ok(self.calibrator.run_empty_kernels(count, self.equipment(step_ns)).is_ok());
        self.inside(run).unwrap_or(false)
    }

    /// Returns the bias to subtract from each bracket's raw time, if it is known. `given` is the
    /// user's value. `stored` is the time of an empty kernel, as measured by another process.
    pub fn bias(&self, given: Option<ConfiguredBias>, stored: Option<KernelBase>) -> Option<Bias> {
        let bases = KnownBases {
            measured: self.kernel_base.get().copied(),
            stored,
            device: &self.device.name,
        };
        Bias::of(given, self.calibration(), bases, self.floor())
    }

    /// Returns the problems in this context, for the report.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Err(fault) = self.own_stream {
            warnings.push(format!(
                "gpu-time could not create a stream ({fault}): `cold` and `sleep` were left out"
            ));
        }
        warnings.extend(self.module.warning());
        warnings.extend(self.flushes.warnings());
        warnings.extend(self.persisting.warning());
        warnings.extend(self.holds.warning());
        warnings.extend(self.calibrator.warning(self.step_ns()));
        if self.is_gone() {
            warnings.push("a context was destroyed, reset, or failed permanently".to_owned());
        }
        warnings
    }

    /// Runs driver calls in this context, then restores the calling thread's context and capture
    /// mode.
    pub(super) fn inside<R>(&self, f: impl FnOnce() -> Result<R, Fault>) -> Result<R, Fault> {
        if self.is_gone() {
            return Err(Fault::ContextGone);
        }
        self.noting(inside(self.handle, f))
    }

    /// Makes a driver call for `stream`. Only implicit streams need their context to be current.
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

    /// Waits until the GPU has finished all work on the stream. An error of that work is not
    /// consumed: it stays with the context, so the application's next call returns it too.
    pub fn synchronize(&self, stream: Stream) -> Result<(), Fault> {
        relaxed(|| {
            // SAFETY: the stream is live.
            self.on_stream(stream, || unsafe { sys::cuStreamSynchronize(raw(stream)) })
        })
    }

    /// Marks the context dead if the result says so, and releases the retained primary context
    /// after a permanent failure.
    fn noting<R>(&self, result: Result<R, Fault>) -> Result<R, Fault> {
        match result {
            Err(Fault::ContextGone) => self.dead.store(true, Relaxed),
            Err(Fault::Sticky) => {
                self.dead.store(true, Relaxed);
                if self.is_retained.swap(false, Relaxed) {
                    driver::release(self.ordinal);
                }
            }
            _ => {}
        }
        result
    }
}
