//! The gauges of each device: its clocks, and how busy it was in phases.

use metrics::{Label, gauge};

use crate::collect::devices::live;
use crate::export::names;
use gpu_time_report::{Clocks, Device};

/// Publishes the known values of every device.
pub(super) fn publish() {
    live().iter().for_each(publish_one);
}

fn publish_one(device: &Device) {
    let mut labels =
        vec![Label::new("device", device.id.clone()), Label::new("gpu", device.name.clone())];
    labels.extend(device.uuid.clone().map(|uuid| Label::new("uuid", uuid)));
    let coverage = device.coverage.as_ref().filter(|coverage| coverage.windows > 0);
    let hertz = |mhz: fn(&Clocks) -> Option<u32>| {
        device.clocks.as_ref().and_then(mhz).map(|mhz| 1e6 * f64::from(mhz))
    };
    let used = device.utilization.unwrap_or_default();
    for (name, value) in [
        (names::ANY_WORK, used.graphics),
        (names::SM_SHARE, used.sm),
        (names::TENSOR_SHARE, used.tensor),
        (names::DRAM_SHARE, used.dram),
        (names::PCIE, used.pcie_bytes_per_s),
        (names::NVLINK, used.nvlink_bytes_per_s),
        (names::BUSY_SHARE, coverage.map(|coverage| coverage.busy)),
        (names::ATTRIBUTED_SHARE, coverage.map(|coverage| coverage.attributed)),
        (names::SM_CLOCK, hertz(|clocks| clocks.sm_end_mhz)),
        (names::MEMORY_CLOCK, hertz(|clocks| clocks.mem_end_mhz)),
    ] {
        if let Some(value) = value {
            gauge!(name, labels.clone()).set(value);
        }
    }
}
