//! The `cupti` module of builds without the `kernels` feature. It records nothing.

mod api;

use std::time::Instant;

pub(crate) use api::{DrainKind, LaunchObserver};

use crate::types::activity::Activity;
use api::DrainOutcome;

pub(crate) fn is_available() -> bool {
    false
}

pub(crate) fn is_in_use() -> bool {
    false
}

pub(crate) fn why_unavailable() -> Option<String> {
    Some("recording kernels requires CUPTI: build gpu-time with the feature `kernels`".to_owned())
}

pub(crate) fn version() -> Option<u32> {
    None
}

pub(crate) fn retry() {}

pub(crate) fn first_failure() -> Option<String> {
    None
}

pub(crate) fn end(_: Instant) {}

pub(crate) fn leave(_: Instant) {}

pub(crate) fn is_recording() -> bool {
    false
}

pub(crate) fn never_stops() -> bool {
    false
}

pub(crate) fn stop_unused() {}

pub(crate) fn observe_launches(_: LaunchObserver) {}

pub(crate) enum RecordingGuard {}

pub(crate) fn switch_on() -> Option<RecordingGuard> {
    None
}

pub(crate) fn drain(_: DrainKind, _: &mut dyn FnMut(&Activity)) -> DrainOutcome {
    DrainOutcome::default()
}

pub(crate) fn wake_when_buffers_fill() {}

pub(crate) fn are_buffers_filling() -> bool {
    false
}

pub(crate) fn captures_begun() -> u64 {
    0
}

pub(crate) fn cost_ns(_: usize) -> u64 {
    0
}

pub(crate) fn now_ns() -> u64 {
    0
}

pub(crate) fn has_recorded() -> bool {
    false
}
