//! The `cupti` module of builds without the `kernels` feature. It records nothing.

mod api;

use std::time::Instant;

use crate::base::stubs::stubs;
use crate::types::activity::Activity;
pub(crate) use api::{DrainKind, DrainOutcome, LaunchObserver};

pub(crate) enum RecordingGuard {}

pub(crate) fn why_unavailable() -> Option<String> {
    Some("recording kernels requires CUPTI: build gpu-time with the feature `kernels`".to_owned())
}

stubs! {
    fn is_available() -> bool;
    fn is_in_use() -> bool;
    fn is_given_up() -> bool;
    fn version() -> Option<u32>;
    fn retry();
    fn first_failure() -> Option<String>;
    fn end(Instant);
    fn leave(Instant);
    fn is_recording() -> bool;
    fn never_stops() -> bool;
    fn stop_unused();
    fn observe_launches(LaunchObserver);
    fn switch_on() -> Option<RecordingGuard>;
    fn drain(DrainKind, &mut dyn FnMut(&Activity)) -> DrainOutcome;
    fn wake_when_buffers_fill();
    fn are_buffers_filling() -> bool;
    fn captures_begun() -> u64;
    fn cost_ns(usize) -> u64;
    fn now_ns() -> u64;
    fn has_recorded() -> bool;
}
