//! The devices of a report, and what is known of each.

use crate::collect::state::SiteState;
use crate::control::active;
use crate::cuda::{self, Context};
use crate::health;
use crate::stats::bias::Bias;
use crate::types::device::DeviceId;
use gpu_time_report as report;

/// The name of a device in the reports.
pub(crate) fn device_id(device: DeviceId) -> String {
    match device {
        DeviceId::Cuda(ordinal) => format!("cuda:{ordinal}"),
        DeviceId::Unknown => "cuda:?".to_owned(),
        DeviceId::Host => "host".to_owned(),
    }
}

/// The step in which event times of the device of this id advance, once that is known.
pub(crate) fn event_step_ns(id: &str) -> Option<f64> {
    let contexts = cuda::contexts().into_iter();
    let mut same = contexts.filter(|c| device_id(DeviceId::Cuda(c.device.ordinal)) == id);
    same.find_map(Context::floor)?.step_ns
}

/// What is subtracted from each bracket, by device.
pub(crate) struct Biases(Vec<(DeviceId, Option<Bias>)>);

impl Biases {
    pub fn new() -> Self {
        let contexts = cuda::contexts();
        Biases(contexts.iter().map(|c| (c.device_id(), c.bias(active::config().bias()))).collect())
    }

    pub fn of(&self, device: DeviceId) -> Option<Bias> {
        match device {
            DeviceId::Host => Some(Bias::NONE),
            _ => self.0.iter().filter(|(d, _)| *d == device).find_map(|(_, bias)| *bias),
        }
    }
}

/// The devices that contexts were seen of, and the host where its clock told the time.
pub(super) fn seen(states: &[SiteState]) -> Vec<report::Device> {
    let driver = cuda::has_contexts().then(cuda::driver_version).flatten();
    let mut devices: Vec<report::Device> = Vec::new();
    let mut contexts = cuda::contexts();
    contexts.sort_by_key(|context| context.device.ordinal);
    for context in contexts {
        let id = device_id(DeviceId::Cuda(context.device.ordinal));
        let at = devices.iter().position(|d| d.id == id).unwrap_or_else(|| {
            let l2 = context.device.l2_bytes;
            let mut device = report::Device {
                driver: driver.clone(),
                l2_bytes: (l2 > 0).then_some(l2),
                peak_gb_per_s: context.device.peak_bandwidth.map(|peak| peak as f64 / 1e9),
                ..report::Device::new(id, context.device.name.clone())
            };
            health::describe(&mut device, &context.device);
            devices.push(device);
            devices.len() - 1
        });
        let Some(device) = devices.get_mut(at) else { continue };
        if device.event_floor_ns.is_none()
            && let Some(floor) = context.floor()
        {
            device.event_step_ns = floor.step_ns;
            device.event_floor_ns = Some(floor.pair_ns);
        }
        // The same context's as that of `Biases`.
        if device.event_bias_ns.is_none()
            && let Some(bias) = context.bias(active::config().bias())
        {
            device.event_bias_ns = Some(bias.ns);
            device.event_bias_source = Some(bias.source.to_owned());
            device.event_bias_error_ns = bias.error_ns;
            let calibration = context.calibration();
            device.event_held_empty_ns = calibration.map(|measured| measured.held.ns);
            device.event_queued_empty_ns =
                calibration.and_then(|measured| measured.queued_empty_ns);
        }
        device.fed_margin_ns = device.fed_margin_ns.or(context.fed_margin_ns());
        device.flush_bytes = device.flush_bytes.max(context.flush_bytes());
        device.flush_proof = device.flush_proof.take().or_else(|| context.flush_proof());
        let given = active::config().bias();
        let of_bias = given.and_then(|given| given.warning(context.calibration()));
        for warning in context.warnings().into_iter().chain(of_bias) {
            if !device.warnings.contains(&warning) {
                device.warnings.push(warning);
            }
        }
    }
    if states.iter().any(|state| state.rows.iter().any(|row| row.info.device == "host")) {
        devices.push(report::Device::host());
    }
    devices
}
