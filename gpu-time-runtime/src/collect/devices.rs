//! Devices in the report.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::config::kernel_bases::{self, GpuIdentity, KernelBases};
use crate::cuda::{self, Context, DeviceInfo};
use crate::cupti;
use crate::health;
use crate::record::disturbance;
use crate::record::opened::devices;
use crate::record::phase::controller;
use crate::stats::bias::{Bias, ConfiguredBias, KernelBase};
use crate::types::device::DeviceId;
use gpu_time_report as report;

/// The maximum time that CUPTI adds to event times while it records. Measured on an H200 with CUDA
/// 12.4 and 12.9.
const RECORDING_ERROR_NS: f64 = 300.0;

/// Returns the resolution of event times on the device with this id, once it has been measured.
pub(crate) fn event_step_ns(id: &str) -> Option<f64> {
    let mut contexts = cuda::contexts().into_iter().filter(|c| c.device_id().to_string() == id);
    contexts.find_map(Context::floor)?.step_ns
}

/// The bias of a bracket on each device.
pub(crate) struct Biases(Vec<(DeviceId, Option<Bias>)>);

impl Biases {
    /// Returns the biases based on the configured one, if any, and the calibrations so far.
    pub fn new(configured: Option<ConfiguredBias>) -> Self {
        let of_context = |context: &Context| (context.device_id(), bias(context, configured).0);
        Biases(cuda::contexts().into_iter().map(of_context).collect())
    }

    /// Returns a bias that applies to one device only.
    #[cfg(test)]
    pub fn fixed(device: DeviceId, bias: Bias) -> Self {
        Biases(vec![(device, Some(bias))])
    }

    /// Returns the bias of a bracket on the device, or `None` if it is unknown.
    pub fn of(&self, device: DeviceId) -> Option<Bias> {
        match device {
            DeviceId::Host => Some(Bias::NONE),
            _ => self.0.iter().filter(|(d, _)| *d == device).find_map(|(_, bias)| *bias),
        }
    }
}

/// Returns the bias of a context's brackets, and a warning if the stored calibration is needed but cannot be read.
fn bias(context: &Context, configured: Option<ConfiguredBias>) -> (Option<Bias>, Option<String>) {
    let is_unmeasured = configured.is_none() && context.kernel_base.get().is_none();
    let needs_stored = is_unmeasured && context.calibration().is_some();
    let stored = if needs_stored { stored_base(context) } else { None };
    let (stored, warning) = match stored.transpose() {
        Ok(stored) => (stored, None),
        Err(warning) => (None, Some(warning)),
    };
    let mut bias = context.bias(configured, stored);
    if let Some(error_ns) = bias.as_mut().and_then(|bias| bias.error_ns.as_mut())
        && (cupti::never_stops() || disturbance::is_in_samples())
    {
        // CUPTI recorded while brackets were open.
        *error_ns += RECORDING_ERROR_NS;
    }
    (bias, warning)
}

/// Returns CUPTI's stored duration of an empty kernel on the context's device, or a warning if it cannot be
/// used. Returns `None` if nothing is stored.
fn stored_base(context: &Context) -> Option<Result<KernelBase, String>> {
    type Stored = Option<(PathBuf, Result<KernelBases, String>)>;
    static STORED: OnceLock<Stored> = OnceLock::new();
    let stored = STORED.get_or_init(|| {
        let path = kernel_bases::path()?;
        let bases = KernelBases::read(&path).transpose()?;
        Some((path, bases))
    });
    let (path, bases) = stored.as_ref()?;
    match bases {
        Ok(bases) => bases.find(&identity(context)).map(Ok),
        Err(why) => Some(Err(format!(
            "the calibration in `{}` is ignored ({why}): run `gpu-time calibrate` again",
            path.display()
        ))),
    }
}

/// Returns `true` if `gpu-time calibrate` or an earlier run has stored a duration that can be used.
#[cfg(feature = "kernels")]
pub(super) fn has_stored_base(context: &Context) -> bool {
    matches!(stored_base(context), Some(Ok(_)))
}

/// Returns the identity under which `gpu-time calibrate` stores the context's device.
pub(crate) fn identity(context: &Context) -> GpuIdentity {
    let (major, minor) = context.device.capability;
    GpuIdentity {
        name: context.device.name.clone(),
        capability: format!("{major}.{minor}"),
        uuid: context.device.uuid.clone(),
        driver: driver_release().or_else(cuda::driver_version).unwrap_or_default(),
    }
}

/// Returns the release of the driver's kernel module, such as `580.159.04`. The driver API only
/// reports the CUDA version, which many releases share.
fn driver_release() -> Option<String> {
    let release = fs::read_to_string("/sys/module/nvidia/version").ok()?;
    Some(release.trim().to_owned()).filter(|release| !release.is_empty())
}

/// Returns the devices for all of the process's contexts and phases, and the host if its clock timed any call.
pub(super) fn all(configured: Option<ConfiguredBias>, has_host_times: bool) -> Vec<report::Device> {
    let known = known();
    let driver = (!known.is_empty()).then(cuda::driver_version).flatten();
    let mut devices = Vec::new();
    for info in known {
        let mut device = report::value!(Device {
            driver: driver.clone(),
            driver_release: driver_release(),
            l2_bytes: (info.l2_bytes > 0).then_some(info.l2_bytes),
            peak_gb_per_s: info.peak_bandwidth.map(|peak| peak as f64 / 1e9),
            ..described(&info, health::describe)
        });
        for context in cuda::contexts() {
            if context.device.ordinal == info.ordinal {
                add_measurements(&mut device, context, configured);
            }
        }
        devices.push(device);
    }
    if has_host_times {
        devices.push(report::Device::host());
    }
    devices
}

/// Returns the devices of all contexts, of opened calls, and those that were active during a window.
fn known() -> Vec<DeviceInfo> {
    let contexts = cuda::contexts().into_iter();
    let mut known: Vec<_> = contexts.map(|context| context.device.clone()).collect();
    known.extend(devices::recorded());
    known.sort_by_key(|device| device.ordinal);
    known.dedup_by_key(|device| device.ordinal);
    known
}

/// Returns the devices for live metrics: their names, how busy they were and their current clocks.
#[cfg(feature = "metrics")]
pub(crate) fn live() -> Vec<report::Device> {
    known().iter().map(|info| described(info, health::describe_now)).collect()
}

/// Returns a device with its names, how busy it was, and what NVML knows, which `add_health` adds.
fn described(
    info: &DeviceInfo,
    add_health: impl Fn(&mut report::Device, &DeviceInfo),
) -> report::Device {
    let id = DeviceId::Cuda(info.ordinal).to_string();
    let mut device = report::Device::new(id, info.name.clone());
    device.coverage = controller::coverage(info.ordinal);
    add_health(&mut device, info);
    device.uuid = info.uuid.as_deref().map(|hex| uuid(hex, device.mig));
    device
}

/// Formats a UUID as `nvidia-smi -L` does.
fn uuid(hex: &str, mig: Option<bool>) -> String {
    let kind = if mig == Some(true) { "MIG" } else { "GPU" };
    let ends = [8, 12, 16, 20, 32];
    let parts = ends.iter().scan(0, |from, &to| hex.get(std::mem::replace(from, to)..to));
    parts.fold(kind.to_owned(), |uuid, part| uuid + "-" + part)
}

/// Adds a context's measurements to its device. Most figures come from the first context that has
/// them, as in [`Biases::of`]. `flush_bytes` is the largest of all contexts.
fn add_measurements(
    device: &mut report::Device,
    context: &Context,
    configured: Option<ConfiguredBias>,
) {
    if device.event_floor_ns.is_none()
        && let Some(floor) = context.floor()
    {
        device.event_step_ns = floor.step_ns;
        device.event_floor_ns = Some(floor.pair_ns);
    }
    let (bias, of_stored) = bias(context, configured);
    if device.event_bias_ns.is_none()
        && let Some(bias) = bias
    {
        device.event_bias_ns = Some(bias.ns);
        device.event_bias_source = Some(bias.source.to_owned());
        device.event_bias_error_ns = bias.error_ns;
        let calibration = context.calibration();
        device.event_held_empty_ns = calibration.map(|measured| measured.held.ns);
        let inner = calibration.and_then(|measured| measured.inner);
        device.event_inner_ns = inner.map(|cost| cost.near_ns);
        device.event_queued_inner_ns = inner.map(|cost| cost.far_ns);
        device.event_inner_error_ns = inner.map(|cost| cost.error_ns);
        device.event_queued_empty_ns = calibration.and_then(|measured| measured.queued_empty_ns);
    }
    device.fed_margin_ns = device.fed_margin_ns.or(context.fed_margin_ns());
    device.flush_bytes = device.flush_bytes.max(context.flushes.bytes());
    device.flush_proof = device.flush_proof.take().or_else(|| context.flushes.proof());
    let of_bias = configured.and_then(|configured| configured.warning(context.calibration()));
    for warning in context.warnings().into_iter().chain(of_bias).chain(of_stored) {
        if !device.warnings.contains(&warning) {
            device.warnings.push(warning);
        }
    }
}
