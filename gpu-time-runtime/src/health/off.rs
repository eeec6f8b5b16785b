//! The `health` module of builds without the `nvml` feature. It reads nothing.

use crate::base::stubs::stubs;
use crate::cuda::DeviceInfo;
use gpu_time_report as report;

stubs! {
    fn observe(&DeviceInfo);
    fn observe_at_work(&DeviceInfo);
    fn describe(&mut report::Device, &DeviceInfo);
    fn warnings() -> Vec<String>;
    fn give_clocks_back();
}

#[cfg(feature = "metrics")]
pub(crate) fn describe_now(_: &mut report::Device, _: &DeviceInfo) {}

pub(crate) fn lock_clocks(
    _: u32,
    _: impl FnOnce() -> Result<(), String>,
) -> Result<Vec<(String, Option<u32>)>, String> {
    Err("locking clocks requires NVML: build gpu-time with the feature `nvml`".to_owned())
}
