//! The `health` module of builds without the `nvml` feature. It reads nothing.

use crate::cuda::DeviceInfo;
use gpu_time_report as report;

pub(crate) fn observe(_: &DeviceInfo) {}

pub(crate) fn observe_at_work(_: &DeviceInfo) {}

pub(crate) fn describe(_: &mut report::Device, _: &DeviceInfo) {}

#[cfg(feature = "metrics")]
pub(crate) fn describe_now(_: &mut report::Device, _: &DeviceInfo) {}

pub(crate) fn warnings() -> Vec<String> {
    Vec::new()
}

pub(crate) fn lock_clocks(
    _: u32,
    _: impl FnOnce() -> Result<(), String>,
) -> Result<Vec<(String, Option<u32>)>, String> {
    Err("locking clocks requires NVML: build gpu-time with the feature `nvml`".to_owned())
}

pub(crate) fn give_clocks_back() {}
