//! Devices in the report.

use crate::control::active;
use crate::cuda::{self, Context};
use crate::health;
use crate::record::window::matching;
use crate::stats::bias::Bias;
use crate::types::device::DeviceId;
use gpu_time_report as report;

/// Returns the resolution of event times on the device with this id, once it has been measured.
pub(crate) fn event_step_ns(id: &str) -> Option<f64> {
    let mut contexts = cuda::contexts().into_iter().filter(|c| c.device_id().to_string() == id);
    contexts.find_map(Context::floor)?.step_ns
}

/// The bias of a bracket on each device.
pub(crate) struct Biases(Vec<(DeviceId, Option<Bias>)>);

impl Biases {
    /// Returns the biases based on the current configuration and the calibrations so far.
    pub fn new() -> Self {
        let contexts = cuda::contexts();
        Biases(contexts.iter().map(|c| (c.device_id(), c.bias(active::config().bias))).collect())
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

/// Returns the devices for all of the process's contexts, and the host if its clock timed any call.
pub(super) fn all(has_host_times: bool) -> Vec<report::Device> {
    let mut devices: Vec<report::Device> = Vec::new();
    let mut contexts = cuda::contexts();
    let driver = (!contexts.is_empty()).then(cuda::driver_version).flatten();
    contexts.sort_by_key(|context| context.device.ordinal);
    for context in contexts {
        let id = context.device_id().to_string();
        let at = devices.iter().position(|d| d.id == id).unwrap_or_else(|| {
            let l2 = context.device.l2_bytes;
            let mut device = report::Device {
                driver: driver.clone(),
                l2_bytes: (l2 > 0).then_some(l2),
                peak_gb_per_s: context.device.peak_bandwidth.map(|peak| peak as f64 / 1e9),
                coverage: matching::coverage(context.device.ordinal),
                ..report::Device::new(id, context.device.name.clone())
            };
            health::describe(&mut device, &context.device);
            devices.push(device);
            devices.len() - 1
        });
        if let Some(device) = devices.get_mut(at) {
            add_measurements(device, context);
        }
    }
    if has_host_times {
        devices.push(report::Device::host());
    }
    devices
}

/// Adds a context's measurements to its device. For each figure, the first context that has it
/// wins, as in [`Biases::of`].
fn add_measurements(device: &mut report::Device, context: &Context) {
    let configured = active::config().bias;
    if device.event_floor_ns.is_none()
        && let Some(floor) = context.floor()
    {
        device.event_step_ns = floor.step_ns;
        device.event_floor_ns = Some(floor.pair_ns);
    }
    if device.event_bias_ns.is_none()
        && let Some(bias) = context.bias(configured)
    {
        device.event_bias_ns = Some(bias.ns);
        device.event_bias_source = Some(bias.source.to_owned());
        device.event_bias_error_ns = bias.error_ns;
        let calibration = context.calibration();
        device.event_held_empty_ns = calibration.map(|measured| measured.held.ns);
        device.event_queued_empty_ns = calibration.and_then(|measured| measured.queued_empty_ns);
    }
    device.fed_margin_ns = device.fed_margin_ns.or(context.fed_margin_ns());
    device.flush_bytes = device.flush_bytes.max(context.flush_bytes());
    device.flush_proof = device.flush_proof.take().or_else(|| context.flush_proof());
    let of_bias = configured.and_then(|configured| configured.warning(context.calibration()));
    for warning in context.warnings().into_iter().chain(of_bias) {
        if !device.warnings.contains(&warning) {
            device.warnings.push(warning);
        }
    }
}
