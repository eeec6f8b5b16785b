//! Implements [`Gpu`] for a context.

use std::sync::atomic::Ordering::Relaxed;

use cudarc::driver::result::event;
use cudarc::driver::sys::{CUcontext, CUevent, CUresult, CUstreamCaptureStatus};

use crate::base::{fork, switches::SWITCHES};
use crate::cuda::objects::{create_event, elapsed};
use crate::cuda::{context::Context, context_guard::with_current, driver::id_of, result::raw};
use crate::gpu::{Fault, Gpu, HoldResult, StreamHold};
use crate::stats::clock_fit::ClockFit;
use crate::types::attribute::Cold;
use crate::types::handles::{Event, EventPair, Stream};

/// The maximum number of events that the runtime creates in one context.
const MAX_EVENTS: u32 = 1 << 16;

/// The driver's errors if the time of a captured event is read: the first during the capture, the
/// second after it.
const CAPTURED_EVENT: u32 = CUresult::CUDA_ERROR_CAPTURED_EVENT as u32;
const INVALID_VALUE: u32 = CUresult::CUDA_ERROR_INVALID_VALUE as u32;

impl Context {
    #[inline]
    fn record(&self, event: &Event, stream: Stream) -> Result<(), Fault> {
        // SAFETY: the event was created in this context and is never destroyed; the stream is live.
        self.on_stream(stream, || unsafe {
            (self.symbols.event_record)(event.handle() as CUevent, raw(stream))
        })
    }
}

impl Gpu for Context {
    #[inline]
    fn is_capturing(&self, stream: Stream) -> Result<bool, Fault> {
        match self.capture_status(stream) {
            Ok(status) => Ok(status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE),
            // The stream is the NULL stream, and a stream that synchronizes with it is being
            // captured.
            Err(Fault::Code(code))
                if code == CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT as u32 =>
            {
                Ok(true)
            }
            Err(fault) => Err(fault),
        }
    }

    fn create_event(&self) -> Result<Event, Fault> {
        if self.events.load(Relaxed) >= MAX_EVENTS {
            return Err(Fault::Exhausted);
        }
        self.inside(|| {
            let event = create_event()?;
            self.events.fetch_add(1, Relaxed);
            Ok(event)
        })
    }

    fn discard(&self, events: &[Event]) {
        _ = self.inside(|| {
            for event in events {
                // SAFETY: `create_event` made the event in this context, which exists; the caller
                // gives up the event.
                unsafe { event::destroy(event.handle() as CUevent) }?;
                self.events.fetch_sub(1, Relaxed);
            }
            Ok(())
        });
    }

    #[inline]
    fn record_start(&self, pair: &EventPair, stream: Stream) -> Result<(), Fault> {
        self.record(&pair.start, stream)
    }

    #[inline]
    fn record_stop(&self, pair: &EventPair, stream: Stream) -> Result<(), Fault> {
        self.record(&pair.stop, stream)
    }

    fn check_alive(&self) -> Result<(), Fault> {
        if self.is_gone() {
            return Err(Fault::ContextGone);
        }
        // Without ids, the check is impossible, and both ids are `None`.
        let id = self.noting(id_of(self.handle))?;
        if id == self.id { Ok(()) } else { self.noting(Err(Fault::ContextGone)) }
    }

    fn is_gone(&self) -> bool {
        self.dead.load(Relaxed) || fork::is_forked()
    }

    #[inline]
    fn elapsed(&self, pair: &EventPair) -> Result<Option<f64>, Fault> {
        if self.is_gone() {
            return Err(Fault::ContextGone);
        }
        match elapsed(self.symbols, &pair.start, &pair.stop) {
            Ok(Some(ns)) => {
                self.floor.learn(ns);
                Ok(Some(ns))
            }
            Ok(None) => Ok(None),
            Err(Fault::Code(CAPTURED_EVENT | INVALID_VALUE)) => Err(Fault::Captured),
            fault => self.noting(fault),
        }
    }

    fn since(&self, pair: &EventPair) -> Option<f64> {
        elapsed(self.symbols, &pair.start, &pair.stop).ok().flatten()
    }

    fn clock(&self) -> Option<ClockFit> {
        self.clock.fit()
    }

    #[inline]
    fn now_ns(&self) -> u64 {
        self.symbols.now_ns()
    }

    fn flush(&self, stream: Stream, cold: Cold) -> Result<(), Fault> {
        self.noting(with_current(self.handle as CUcontext, || self.flushes.enqueue(stream, cold)))
    }

    fn hold(&self, stream: Stream, deadline_ns: u64) -> Result<StreamHold, Fault> {
        self.noting(with_current(self.handle as CUcontext, || self.holds.hold(stream, deadline_ns)))
    }

    fn delay(&self, stream: Stream, ns: u64) -> Result<(), Fault> {
        self.noting(with_current(self.handle as CUcontext, || self.holds.delay(stream, ns)))
    }

    fn release(&self, hold: StreamHold) -> HoldResult {
        self.holds.release(hold)
    }

    fn has_expired(&self, hold: HoldResult) -> bool {
        self.holds.has_expired(hold)
    }

    #[inline]
    fn is_at_floor(&self, raw_ns: f64) -> bool {
        self.floor.covers(raw_ns)
    }

    fn added_ns(&self, inner: u16, queued: bool) -> Option<f64> {
        if SWITCHES.has_given_bias.load(Relaxed) {
            // It is the same for all brackets, whatever is inside.
            return (inner == 0).then_some(0.0);
        }
        self.calibration()?.added_ns(inner, queued)
    }
}
