//! Devices that CUPTI's records name, or whose primary context existed during a phase.

use crate::base::lock::{Mutex, Rank, locked};
use crate::cuda::{self, DeviceInfo};

/// The devices, whose contexts may be gone by the time of a report.
static DEVICES: Mutex<Vec<DeviceInfo>> = Mutex::new(Rank::RecordedDevices, Vec::new());

/// Returns the devices noted so far.
pub(crate) fn recorded() -> Vec<DeviceInfo> {
    locked(&DEVICES).clone()
}

/// Notes a device for the report.
pub(crate) fn note(ordinal: u32) {
    let is_known = locked(&DEVICES).iter().any(|device| device.ordinal == ordinal);
    if !is_known && cuda::why_unusable().is_none() {
        // Asks the driver without the lock.
        let device = DeviceInfo::of(ordinal);
        locked(&DEVICES).push(device);
    }
}
