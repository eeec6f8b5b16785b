//! The order of a bracket: flush, hold, start, the user's work, stop, release.
//!
//! This file defines the order of every bracket, and releases the hold when a later step fails.

use crate::gpu::{Fault, Gpu, HoldPlan, HoldResult, Preparation, StreamHold};
use crate::types::handles::{EventPair, Stream};

/// Flushes, holds and records the start. Returns the hold that [`stop`] must release.
#[inline]
pub(crate) fn start<G: Gpu>(
    gpu: &G,
    stream: Stream,
    pair: &EventPair,
    prepare: Preparation,
) -> Result<Option<StreamHold>, Fault> {
    let held =
        if prepare == Preparation::default() { None } else { enqueue(gpu, stream, prepare)? };
    match gpu.record_start(pair, stream) {
        Ok(()) => Ok(held),
        Err(fault) => {
            held.map(|held| gpu.release(held));
            Err(fault)
        }
    }
}

/// Enqueues the flush and the hold. Without a free hold, the bracket runs unheld.
#[cold]
fn enqueue<G: Gpu>(
    gpu: &G,
    stream: Stream,
    prepare: Preparation,
) -> Result<Option<StreamHold>, Fault> {
    if let Some(cold) = prepare.cold {
        gpu.flush(stream, cold)?;
    }
    match prepare.hold {
        None => Ok(None),
        Some(HoldPlan::For(ns)) => gpu.delay(stream, ns).map(|()| None),
        Some(HoldPlan::Until(deadline_ns)) => match gpu.hold(stream, deadline_ns) {
            Ok(held) => Ok(Some(held)),
            Err(Fault::Exhausted) => Ok(None),
            Err(fault) => Err(fault),
        },
    }
}

/// Records the stop and releases the hold, whether or not the stop was recorded.
#[inline]
pub(crate) fn stop<G: Gpu>(
    gpu: &G,
    stream: Stream,
    pair: &EventPair,
    held: Option<StreamHold>,
) -> Result<Option<HoldResult>, Fault> {
    let stopped = gpu.record_stop(pair, stream);
    let released = held.map(|held| gpu.release(held));
    stopped.map(|()| released)
}

/// Releases the hold of a bracket that gets no stop.
pub(crate) fn release<G: Gpu>(gpu: &G, held: Option<StreamHold>) {
    held.map(|held| gpu.release(held));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::fake::FakeGpu;
    use crate::types::attribute::Cold;

    const STREAM: Stream = Stream(64);
    const COLD_AND_HELD: Preparation =
        Preparation { cold: Some(Cold::Clean), hold: Some(HoldPlan::Until(1_000)) };

    fn pair(gpu: &FakeGpu) -> EventPair {
        let pair =
            EventPair { start: gpu.create_event().unwrap(), stop: gpu.create_event().unwrap() };
        gpu.take_log();
        pair
    }

    #[test]
    fn bracket_order_is_flush_hold_start_stop_release() {
        let gpu = FakeGpu::default();
        let pair = pair(&gpu);
        let held = start(&gpu, STREAM, &pair, COLD_AND_HELD).unwrap();
        assert_eq!(gpu.take_log(), ["flush", "hold", "start"]);
        assert!(stop(&gpu, STREAM, &pair, held).unwrap().is_some());
        assert_eq!(gpu.take_log(), ["stop", "release"]);
    }

    #[test]
    fn delay_needs_no_release() {
        let gpu = FakeGpu::default();
        let pair = pair(&gpu);
        let prepare = Preparation { cold: None, hold: Some(HoldPlan::For(50_000)) };
        let held = start(&gpu, STREAM, &pair, prepare).unwrap();
        assert_eq!(stop(&gpu, STREAM, &pair, held).unwrap(), None);
        assert_eq!(gpu.take_log(), ["delay", "start", "stop"]);
    }

    #[test]
    fn failed_step_releases_the_stream() {
        let fault = Fault::Code(999);
        for (step, steps) in [
            ("flush", &["flush"][..]),
            ("hold", &["flush", "hold"]),
            ("start", &["flush", "hold", "start", "release"]),
        ] {
            let gpu = FakeGpu::default();
            let pair = pair(&gpu);
            gpu.fail(step, fault);
            assert_eq!(start(&gpu, STREAM, &pair, COLD_AND_HELD), Err(fault), "{step}");
            assert_eq!(gpu.take_log(), steps);
        }
        let gpu = FakeGpu::default();
        let pair = pair(&gpu);
        let held = start(&gpu, STREAM, &pair, COLD_AND_HELD).unwrap();
        gpu.fail("stop", fault);
        assert_eq!(stop(&gpu, STREAM, &pair, held), Err(fault));
        assert_eq!(gpu.take_log().last(), Some(&"release"));
    }

    #[test]
    fn exhausted_holds_leave_the_bracket_unheld() {
        let gpu = FakeGpu::default();
        let pair = pair(&gpu);
        gpu.fail("hold", Fault::Exhausted);
        assert_eq!(start(&gpu, STREAM, &pair, COLD_AND_HELD), Ok(None));
        assert_eq!(gpu.take_log(), ["flush", "hold", "start"]);
    }

    #[test]
    fn bracket_without_stop_only_releases() {
        let gpu = FakeGpu::default();
        let pair = pair(&gpu);
        let held = start(&gpu, STREAM, &pair, COLD_AND_HELD).unwrap();
        gpu.take_log();
        release(&gpu, held);
        assert_eq!(gpu.take_log(), ["release"]);
    }
}
