//! A checkup of the driver and the GPUs, for `gpu-time doctor`. Not a public interface: it changes
//! without notice.

use crate::cuda;
use crate::health;
use gpu_time_report::Device;

/// The state of the driver, the GPUs and the CPU.
pub struct Checkup {
    /// The version of CUDA that the driver implements, or why no GPU can be timed.
    pub driver: Result<String, String>,
    /// Why NVML cannot be used, if that is so.
    pub no_nvml: Option<String>,
    /// The GPUs with NVML's readings and warnings. The second value is `true` if the GPU was idle,
    /// and `None` if that is not known.
    pub devices: Vec<(Device, Option<bool>)>,
    /// A warning if the CPU is overloaded.
    pub cpu_overload: Option<String>,
}

/// Examines the driver and every GPU, without changing any state.
pub fn examine() -> Checkup {
    let all = cuda::all_devices();
    let driver = all.clone().map(|_| cuda::driver_version().unwrap_or_default());
    let cpu_overload = health::cpu_overload();
    let named = all.unwrap_or_default().into_iter().enumerate();
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
