//! The order of a bracket: flush, sleep, start, the user's work, stop, release.
//!
//! This is the only place that knows it, and the place that undoes what was armed when a step fails.

use crate::gpu::{Fault, Gpu, HoldResult, StreamHold};
use crate::gpu::{HoldPlan, Preparation};
use crate::types::handles::{EventPair, Stream};

/// Everything before the user's work. The answer is the hold that [`end`] must release.
#[inline]
pub(crate) fn begin<G: Gpu>(
    gpu: &G,
    stream: Stream,
    pair: &EventPair,
    prepare: Preparation,
) -> Result<Option<StreamHold>, Fault> {
    let held = if prepare == Preparation::default() { None } else { arm(gpu, stream, prepare)? };
    match gpu.record_start(pair, stream) {
        Ok(()) => Ok(held),
        Err(fault) => {
            held.map(|held| gpu.release(held));
            Err(fault)
        }
    }
}

/// Flush and hold. A device that has no hold left to give runs the bracket without.
#[cold]
fn arm<G: Gpu>(gpu: &G, stream: Stream, prepare: Preparation) -> Result<Option<StreamHold>, Fault> {
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

/// Everything after the user's work. The stream is let go whether or not the stop was recorded.
#[inline]
pub(crate) fn end<G: Gpu>(
    gpu: &G,
    stream: Stream,
    pair: &EventPair,
    held: Option<StreamHold>,
) -> Result<Option<HoldResult>, Fault> {
    let stopped = gpu.record_stop(pair, stream);
    let released = held.map(|held| gpu.release(held));
    stopped.map(|()| released)
}

/// Lets go of a bracket whose work failed: nothing is recorded any more.
pub(crate) fn abandon<G: Gpu>(gpu: &G, held: Option<StreamHold>) {
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
    fn a_bracket_goes_flush_hold_start_stop_release() {
        let gpu = FakeGpu::default();
        let pair = pair(&gpu);
        let held = begin(&gpu, STREAM, &pair, COLD_AND_HELD).unwrap();
        assert_eq!(gpu.take_log(), ["flush", "hold", "start"]);
        assert!(end(&gpu, STREAM, &pair, held).unwrap().is_some());
        assert_eq!(gpu.take_log(), ["stop", "release"]);
    }

    #[test]
    fn a_delay_needs_no_release() {
        let gpu = FakeGpu::default();
        let pair = pair(&gpu);
        let prepare = Preparation { cold: None, hold: Some(HoldPlan::For(50_000)) };
        let held = begin(&gpu, STREAM, &pair, prepare).unwrap();
        assert_eq!(end(&gpu, STREAM, &pair, held).unwrap(), None);
        assert_eq!(gpu.take_log(), ["delay", "start", "stop"]);
    }

    #[test]
    fn whatever_fails_the_stream_is_let_go() {
        let fault = Fault::Code(999);
        for (step, steps) in [
            ("flush", &["flush"][..]),
            ("hold", &["flush", "hold"]),
            ("start", &["flush", "hold", "start", "release"]),
        ] {
            let gpu = FakeGpu::default();
            let pair = pair(&gpu);
            gpu.fail(step, fault);
            assert_eq!(begin(&gpu, STREAM, &pair, COLD_AND_HELD), Err(fault), "{step}");
            assert_eq!(gpu.take_log(), steps);
        }
        let gpu = FakeGpu::default();
        let pair = pair(&gpu);
        let held = begin(&gpu, STREAM, &pair, COLD_AND_HELD).unwrap();
        gpu.fail("stop", fault);
        assert_eq!(end(&gpu, STREAM, &pair, held), Err(fault));
        assert_eq!(gpu.take_log().last(), Some(&"release"));
    }

    #[test]
    fn without_a_free_hold_the_bracket_runs_without() {
        let gpu = FakeGpu::default();
        let pair = pair(&gpu);
        gpu.fail("hold", Fault::Exhausted);
        assert_eq!(begin(&gpu, STREAM, &pair, COLD_AND_HELD), Ok(None));
        assert_eq!(gpu.take_log(), ["flush", "hold", "start"]);
    }

    #[test]
    fn an_abandoned_bracket_is_let_go_and_not_recorded() {
        let gpu = FakeGpu::default();
        let pair = pair(&gpu);
        let held = begin(&gpu, STREAM, &pair, COLD_AND_HELD).unwrap();
        gpu.take_log();
        abandon(&gpu, held);
        assert_eq!(gpu.take_log(), ["release"]);
    }
}
