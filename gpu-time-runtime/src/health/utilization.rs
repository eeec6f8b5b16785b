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
    last: GpmSample<'static>,
    at: Instant,
    /// The time between the first reading and the last, and the mean of each metric over it. `None` before the second
    /// reading, and for a metric that the device does not have.
    seconds: f64,
    means: [Option<f64>; METRICS.len()],
    /// The same over the time between the last two readings.
    recent: [Option<f64>; METRICS.len()],
}

/// The readings of each device, by its ordinal. Those of a device that is being read are taken out, because NVML may
/// never return.
static USES: Mutex<BTreeMap<u32, DeviceUse>> = Mutex::new(Rank::Utilization, BTreeMap::new());

/// Takes the first reading of a device, if it can be read.
pub(super) fn begin(nvml: &'static Nvml, device: &DeviceInfo) {
    if let Some(last) = sample(nvml, &device.pci_bus_id) {
        let device_use = DeviceUse {
            pci_bus_id: device.pci_bus_id.clone(),
            last,
            at: Instant::now(),
            seconds: 0.0,
            means: [None; METRICS.len()],
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
        let device_use = locked(&USES).remove(&ordinal);
        if let Some(mut device_use) = device_use {
            device_use.read(nvml);
            locked(&USES).insert(ordinal, device_use);
        }
    }
}

impl DeviceUse {
    fn read(&mut self, nvml: &'static Nvml) {
        let elapsed = self.at.elapsed();
        if elapsed < SHORTEST {
            return;
        }
        let Some(now) = sample(nvml, &self.pci_bus_id) else { return };
        if let Ok(results) = gpm_metrics_get(nvml, &self.last, &now, &METRICS) {
            let of = |at: usize| {
                let value = results.get(at)?.as_ref().ok()?.value;
                value.is_finite().then_some(value)
            };
            let elapsed = elapsed.as_secs_f64();
            self.seconds += elapsed;
            for at in 0..METRICS.len() {
                let recent = of(at);
                self.recent[at] = recent;
                if let Some(value) = recent {
                    let mean = self.means[at].get_or_insert(value);
                    *mean += (value - *mean) * elapsed / self.seconds;
                }
            }
        }
        (self.last, self.at) = (now, Instant::now());
    }
}

/// Returns how far the device with this ordinal was in use: over the whole run, or lately.
pub(super) fn of(ordinal: u32, is_recent: bool) -> Option<Utilization> {
    let uses = locked(&USES);
    let device_use = uses.get(&ordinal).filter(|device_use| device_use.seconds > 0.0)?;
    let values = if is_recent { device_use.recent } else { device_use.means };
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
