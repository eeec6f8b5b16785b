//! What `health` offers, where the feature `nvml` is off: nothing is known.

use crate::cuda::DeviceInfo;
use gpu_time_report as report;

pub(crate) fn meet(_: &DeviceInfo) {}

pub(crate) fn meet_at_work(_: &DeviceInfo) {}

pub(crate) fn describe(_: &mut report::Device, _: &DeviceInfo) {}

pub(crate) fn warnings() -> Vec<String> {
    Vec::new()
}

pub(crate) fn lock_clocks(
    _: u32,
    _: impl FnOnce() -> Result<(), String>,
) -> Result<Vec<(String, Option<u32>)>, String> {
    Err("clocks are locked through NVML: build gpu-time with its feature `nvml`".to_owned())
}

pub(crate) fn give_clocks_back() {}
