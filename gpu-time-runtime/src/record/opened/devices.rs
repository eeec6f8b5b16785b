//! Devices that only the records of opened calls name.

use crate::base::lock::{Mutex, Rank, locked};
use crate::cuda::{self, DeviceInfo};

/// The devices of calls whose contexts may have been destroyed before they ended.
static DEVICES: Mutex<Vec<DeviceInfo>> = Mutex::new(Rank::RecordedDevices, Vec::new());

/// Returns the devices noted so far.
pub(crate) fn recorded() -> Vec<DeviceInfo> {
    locked(&DEVICES).clone()
}

/// Notes a device for the report. Must be called only by the collector.
pub(super) fn note(ordinal: u32) {
    let is_known = locked(&DEVICES).iter().any(|device| device.ordinal == ordinal);
    if !is_known && cuda::why_unusable().is_none() {
        let device = DeviceInfo::of(ordinal);
        locked(&DEVICES).push(device);
    }
}
