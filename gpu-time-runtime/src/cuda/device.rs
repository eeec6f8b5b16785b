//! Device properties, as reported by the driver.

use std::ffi::{CStr, c_char, c_int};

#[cfg(feature = "nvml")]
use cudarc::driver::result;
use cudarc::driver::result::device;
use cudarc::driver::sys::{self, CUdevice, CUdevice_attribute, CUresult};

use crate::cuda::context_guard::relaxed;
use crate::cuda::driver;
use crate::cuda::result::check;
use crate::cuda::symbols::{is_loaded, symbols};
use crate::gpu::Fault;

/// The device properties that the report shows and the runtime needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceInfo {
    pub ordinal: u32,
    /// Empty if the driver does not report it.
    pub name: String,
    /// For example `0000:01:00.0`. NVML identifies the device by it. Empty if the driver does not
    /// report it.
    #[cfg(feature = "nvml")]
    pub pci_bus_id: String,
    /// 0 if the driver does not report it.
    pub l2_bytes: u64,
    pub multiprocessors: u32,
    pub threads_per_multiprocessor: u32,
    /// Compute capability, major and minor; (0, 0) if the driver does not report it.
    pub capability: (u32, u32),
    /// In hexadecimal digits. `None` if the driver does not report it.
    pub uuid: Option<String>,
    /// Peak memory bandwidth in bytes per second. `None` if the driver's figures are implausible.
    pub peak_bandwidth: Option<u64>,
}

impl DeviceInfo {
    /// Returns the properties of the current context's device.
    pub(super) fn of_current() -> Result<DeviceInfo, Fault> {
        let mut ordinal: c_int = 0;
        // SAFETY: writes one integer.
        check(unsafe { sys::cuCtxGetDevice(&raw mut ordinal) })?;
        Ok(DeviceInfo::of(u32::try_from(ordinal).unwrap_or(0)))
    }

    /// Returns the properties of the device with this ordinal. Must be called only if the driver can be
    /// used.
    pub fn of(device: u32) -> DeviceInfo {
        let ordinal = device as c_int;
        let attribute = |attribute| {
            // SAFETY: the driver returns an error for an ordinal that it has not given.
            let value = unsafe { device::get_attribute(ordinal, attribute) };
            value.map_or(0, |value| u32::try_from(value).unwrap_or(0))
        };
        use CUdevice_attribute as A;
        DeviceInfo {
            ordinal: device,
            name: text(sys::cuDeviceGetName, ordinal),
            #[cfg(feature = "nvml")]
            pci_bus_id: text(sys::cuDeviceGetPCIBusId, ordinal),
            l2_bytes: u64::from(attribute(A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)),
            multiprocessors: attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
            threads_per_multiprocessor: attribute(
                A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
            ),
            capability: (
                attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
            ),
            uuid: uuid(ordinal),
            peak_bandwidth: peak_bandwidth(
                attribute(A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
                attribute(A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH),
            ),
        }
    }
}

/// Returns the ordinals of the devices whose primary context exists. Does not create a context, initialize
/// CUDA or load the driver.
pub(crate) fn active() -> Vec<u32> {
    if !is_loaded() || symbols().is_err() {
        return Vec::new();
    }
    let active = relaxed(|| {
        let ordinals = 0..u32::try_from(device::get_count()?).unwrap_or(0);
        Ok(ordinals.filter(|ordinal| driver::is_active(*ordinal)).collect())
    });
    active.unwrap_or_default()
}

fn uuid(ordinal: c_int) -> Option<String> {
    let query = symbols().ok()?.device_uuid?;
    let mut uuid = [0; 16];
    // SAFETY: writes the bytes of the array.
    check(unsafe { query(&raw mut uuid, ordinal) }).ok()?;
    Some(uuid.map(|byte| format!("{byte:02x}")).concat())
}

/// Returns a string that describes a device, or an empty string if the driver fails. `query` is a
/// driver function that writes a NUL-terminated string of at most the given length.
fn text(query: unsafe fn(*mut c_char, c_int, CUdevice) -> CUresult, ordinal: c_int) -> String {
    let mut text = [0 as c_char; 256];
    // SAFETY: the driver writes within the buffer.
    match check(unsafe { query(text.as_mut_ptr(), text.len() as c_int, ordinal) }) {
        // SAFETY: the driver has NUL-terminated the string within the buffer.
        Ok(()) => unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned(),
        Err(_) => String::new(),
    }
}

/// Returns the name and PCI bus id of every device. Each is empty if the driver does not report it.
/// Initializes CUDA but does not create a context.
#[cfg(feature = "nvml")]
pub(crate) fn all() -> Result<Vec<(String, String)>, String> {
    initialize()?;
    let count = device::get_count().map_err(Fault::from);
    let count = count
        .map_err(|fault| format!("the CUDA driver does not report the number of GPUs ({fault})"))?;
    let [name, pci_bus_id] = [sys::cuDeviceGetName, sys::cuDeviceGetPCIBusId];
    Ok((0..count).map(|ordinal| (text(name, ordinal), text(pci_bus_id, ordinal))).collect())
}

/// Loads the driver and initializes CUDA, unless this has already been done.
#[cfg(feature = "nvml")]
fn initialize() -> Result<(), String> {
    symbols()?;
    result::init().map_err(|error| format!("CUDA found no GPU ({})", Fault::from(error)))
}

/// Returns the ordinals and PCI bus ids of the devices in use: the devices in `ordinals`, on which
/// calls were timed, and the device of the calling thread's current context. If there are none,
/// returns device 0. Initializes CUDA.
#[cfg(feature = "nvml")]
pub(crate) fn in_use(mut ordinals: Vec<u32>) -> Result<Vec<(u32, String)>, String> {
    initialize()?;
    let mut current: c_int = 0;
    // SAFETY: writes one integer, or fails because no context is current.
    if check(unsafe { sys::cuCtxGetDevice(&raw mut current) }).is_ok() {
        ordinals.push(u32::try_from(current).unwrap_or(0));
    }
    if ordinals.is_empty() {
        ordinals.push(0);
    }
    ordinals.sort_unstable();
    ordinals.dedup();
    let with_id = |ordinal: u32| match text(sys::cuDeviceGetPCIBusId, ordinal as c_int) {
        id if id.is_empty() => {
            Err(format!("the CUDA driver does not report the PCI bus id of cuda:{ordinal}"))
        }
        id => Ok((ordinal, id)),
    };
    ordinals.into_iter().map(with_id).collect()
}

/// Returns the peak bandwidth in bytes per second: two transfers per cycle over the full bus width.
/// Returns `None` if this is less than a gigabyte or more than a hundred terabytes. No GPU memory
/// is that slow or that fast, so the driver's figures must be wrong.
fn peak_bandwidth(clock_khz: u32, bus_bits: u32) -> Option<u64> {
    let peak = (2_000 * u64::from(clock_khz)).saturating_mul(u64::from(bus_bits)) / 8;
    (1_000_000_000..=100_000_000_000_000).contains(&peak).then_some(peak)
}

#[cfg(test)]
mod tests {
    use super::peak_bandwidth;

    #[test]
    fn implausible_peak_bandwidth_is_unknown() {
        // An H200, and a part with one 64-bit channel.
        assert_eq!(peak_bandwidth(3_201_000, 6_144), Some(4_916_736_000_000));
        assert_eq!(peak_bandwidth(1_600_000, 64), Some(25_600_000_000));
        for (khz, bits) in [(0, 6_144), (3_201_000, 0), (1_000, 64), (u32::MAX, u32::MAX)] {
            assert_eq!(peak_bandwidth(khz, bits), None, "{khz} kHz, {bits} bits");
        }
    }
}
