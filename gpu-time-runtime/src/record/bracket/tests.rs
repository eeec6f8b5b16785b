//! Tests for the order of a bracket's steps.

use crate::gpu::fake::FakeGpu;
use crate::record::bracket::*;
use crate::types::attribute::Cold;

const STREAM: Stream = Stream(64);
const COLD_AND_HELD: Preparation =
    Preparation { cold: Some(Cold::Clean), hold: Some(HoldPlan::Until(1_000)) };

fn pair(gpu: &FakeGpu) -> EventPair {
    let pair = EventPair { start: gpu.create_event().unwrap(), stop: gpu.create_event().unwrap() };
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
