//! What there is to measure with, before anything is measured. Not a public interface: it changes without
//! notice.

use crate::cuda;
use crate::health;
use gpu_time_report::Device;

/// What there is to measure with.
pub struct Checkup {
    /// The version of CUDA that the driver implements, or why there is no GPU to time.
    pub driver: Result<String, String>,
    /// Why NVML tells nothing, if so.
    pub no_nvml: Option<String>,
    /// Each with what NVML knows of it and a warning for each finding, and whether it was idle, where that
    /// is known.
    pub devices: Vec<(Device, Option<bool>)>,
    /// That the CPU has more to do than it can.
    pub cpu_overload: Option<String>,
}

/// Looks at the driver and every GPU, and leaves all as it is.
pub fn examine() -> Checkup {
    let found = cuda::all_devices();
    let driver = found.clone().map(|_| cuda::driver_version().unwrap_or_default());
    let cpu_overload = health::cpu_overload();
    let named = found.unwrap_or_default().into_iter().enumerate();
    let mut devices: Vec<(String, Device)> = named
        .map(|(ordinal, (name, pci_bus_id))| {
            (pci_bus_id, Device::new(format!("cuda:{ordinal}"), name))
        })
        .collect();
    let idle = health::examine(&mut devices);
    let no_nvml = idle.as_ref().err().map(|why| (*why).to_owned());
    let idle = idle.into_iter().flatten().map(Some).chain(std::iter::repeat(None));
    let devices = devices.into_iter().map(|(_, device)| device).zip(idle).collect();
    Checkup { driver, no_nvml, devices, cpu_overload }
}
