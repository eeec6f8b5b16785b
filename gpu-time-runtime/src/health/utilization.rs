//! How far each device was in use, by NVML's performance monitoring (GPM) on Hopper and later. It covers all processes,
//! and costs launches nothing.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use nvml_wrapper::Nvml;
use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::gpm::{GpmSample, gpm_metrics_get};

use crate::base::lock::{Mutex, Rank, locked};
use crate::cuda::DeviceInfo;
use gpu_time_report::{Utilization, value};

/// What is read. The last four are in MiB a second, the others in percent.
const METRICS: [GpmMetricId; 8] = [
    GpmMetricId::GraphicsUtil,
    GpmMetricId::SmUtil,
    GpmMetricId::AnyTensorUtil,
    GpmMetricId::DramBwUtil,
    GpmMetricId::PcieTxPerSec,
    GpmMetricId::PcieRxPerSec,
    GpmMetricId::NvlinkTotalTxPerSec,
    GpmMetricId::NvlinkTotalRxPerSec,
];
const PERCENT: f64 = 0.01;
const MIB: f64 = 1_048_576.0;
/// The shortest time between two readings. The device's own figures change every 0.1 s.
const SHORTEST: Duration = Duration::from_millis(200);

/// The readings of one device.
struct DeviceUse {
    pci_bus_id: String,
    /// `None` while the device is being read.
    last: Option<(GpmSample<'static>, Instant)>,
    /// The time between the first reading and the last.
    seconds: f64,
    /// The sum of each metric over the times for which it was known, and these times.
    sums: [(f64, f64); METRICS.len()],
    /// The same over the time between the last two readings.
    recent: [Option<f64>; METRICS.len()],
}

/// The readings of each device, by its ordinal. Not locked while a device is read, because NVML may never return.
static USES: Mutex<BTreeMap<u32, DeviceUse>> = Mutex::new(Rank::Utilization, BTreeMap::new());

/// Takes the first reading of a device, if it can be read.
pub(super) fn begin(nvml: &'static Nvml, device: &DeviceInfo) {
    if let Some(last) = sample(nvml, &device.pci_bus_id) {
        let device_use = DeviceUse {
            pci_bus_id: device.pci_bus_id.clone(),
            last: Some((last, Instant::now())),
            seconds: 0.0,
            sums: [(0.0, 0.0); METRICS.len()],
            recent: [None; METRICS.len()],
        };
        locked(&USES).insert(device.ordinal, device_use);
    }
}

fn sample(nvml: &'static Nvml, pci_bus_id: &str) -> Option<GpmSample<'static>> {
    let device = nvml.device_by_pci_bus_id(pci_bus_id).ok()?;
    device.gpm_support().ok()?.then(|| device.gpm_sample().ok())?
}

/// Takes another reading of each device.
pub(super) fn read(nvml: &'static Nvml) {
    let ordinals: Vec<u32> = locked(&USES).keys().copied().collect();
    for ordinal in ordinals {
        let is_due = |last: &mut (_, Instant)| last.1.elapsed() >= SHORTEST;
        let taken = locked(&USES).get_mut(&ordinal).and_then(|device_use| {
            Some((device_use.last.take_if(is_due)?, device_use.pci_bus_id.clone()))
        });
        let Some(((last, at), pci_bus_id)) = taken else { continue };
        let now = sample(nvml, &pci_bus_id);
        let elapsed = at.elapsed();
        let values = now.as_ref().map(|now| between(nvml, &last, now));
        if let Some(device_use) = locked(&USES).get_mut(&ordinal) {
            values.iter().for_each(|values| device_use.add(*values, elapsed.as_secs_f64()));
            device_use.last = Some(now.map_or((last, at), |now| (now, Instant::now())));
        }
    }
}

/// Returns each metric over the time between two readings. `None` for one that the device does not have.
fn between(
    nvml: &'static Nvml,
    last: &GpmSample<'static>,
    now: &GpmSample<'static>,
) -> [Option<f64>; METRICS.len()] {
    let results = gpm_metrics_get(nvml, last, now, &METRICS).unwrap_or_default();
    std::array::from_fn(|at| {
        let value = results.get(at)?.as_ref().ok()?.value;
        value.is_finite().then_some(value)
    })
}

impl DeviceUse {
    fn add(&mut self, recent: [Option<f64>; METRICS.len()], seconds: f64) {
        self.seconds += seconds;
        self.recent = recent;
        for ((sum, known), value) in self.sums.iter_mut().zip(recent) {
            if let Some(value) = value {
                *sum += value * seconds;
                *known += seconds;
            }
        }
    }

    fn means(&self) -> [Option<f64>; METRICS.len()] {
        self.sums.map(|(sum, seconds)| (seconds > 0.0).then(|| sum / seconds))
    }
}

/// Returns how far the device with this ordinal was in use: over the whole run, or lately.
pub(super) fn of(ordinal: u32, is_recent: bool) -> Option<Utilization> {
    let uses = locked(&USES);
    let device_use = uses.get(&ordinal).filter(|device_use| device_use.seconds > 0.0)?;
    let values = if is_recent { device_use.recent } else { device_use.means() };
    let sum = |one: usize, other: usize| Some((values[one]? + values[other]?) * MIB);
    Some(value!(Utilization {
        covered_ns: device_use.seconds * 1e9,
        graphics: values[0].map(|value| value * PERCENT),
        sm: values[1].map(|value| value * PERCENT),
        tensor: values[2].map(|value| value * PERCENT),
        dram: values[3].map(|value| value * PERCENT),
        pcie_bytes_per_s: sum(4, 5),
        nvlink_bytes_per_s: sum(6, 7),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metric_that_is_known_late_has_the_mean_of_its_own_time() {
        let mut device_use = DeviceUse {
            pci_bus_id: String::new(),
            last: None,
            seconds: 0.0,
            sums: [(0.0, 0.0); METRICS.len()],
            recent: [None; METRICS.len()],
        };
        let only =
            |values: [Option<f64>; 2]| std::array::from_fn(|at| values.get(at).copied().flatten());
        device_use.add(only([Some(10.0), None]), 3.0);
        device_use.add(only([Some(50.0), Some(4.0)]), 1.0);
        assert_eq!(device_use.means(), only([Some(20.0), Some(4.0)]));
        assert_eq!((device_use.seconds, device_use.recent[1]), (4.0, Some(4.0)));
    }
}
