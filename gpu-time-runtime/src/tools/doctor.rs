//! The checks made by `gpu-time doctor`: driver, GPUs, NVML and CPU.

use crate::base::inside;
use crate::cuda;
use crate::health;
pub use crate::health::CpuOverload;
use gpu_time_report::Device;

/// The result returned by [`examine`].
pub struct Checkup {
    /// The driver's CUDA version, or the reason why there is no GPU to time.
    pub driver: Result<String, String>,
    /// The reason why NVML cannot be used, if it cannot.
    pub no_nvml: Option<String>,
    /// Every GPU, with its NVML values and a warning for each problem found. The second value is
    /// `true` if the GPU was idle, and `None` if this is unknown.
    pub devices: Vec<(Device, Option<bool>)>,
    /// Set if the CPU is overloaded.
    pub cpu_overload: Option<CpuOverload>,
}

/// Examines the driver and every GPU without changing anything.
pub fn examine() -> Checkup {
    let _inside = inside::enter();
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
