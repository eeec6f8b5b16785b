//! The script: the driver version, devices and processes reported by the simulated NVML, and
//! functions that fail or hang.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Environment variable with the path of the trace file.
pub const TRACE_VARIABLE: &str = "GPU_TIME_TEST_SIM_NVML_TRACE";
/// Environment variable with the script as JSON.
pub const SCRIPT_VARIABLE: &str = "GPU_TIME_TEST_SIM_NVML";

/// The results that the library returns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Script {
    /// Version of the driver.
    pub driver: String,
    /// Devices in index order.
    pub devices: Vec<ScriptedDevice>,
    /// Functions that fail, with their error codes.
    pub failing: BTreeMap<String, u32>,
    /// Functions that never return. Each call is written to the trace.
    pub hanging: BTreeSet<String>,
}

/// The values returned by successive calls. The last one is repeated.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Values<T>(pub Vec<T>);

impl<T> From<T> for Values<T> {
    fn from(value: T) -> Self {
        Values(vec![value])
    }
}

impl<T: Copy> Values<T> {
    /// Returns the value of call `n`, counted from 0.
    pub(crate) fn get(&self, n: usize) -> Option<T> {
        self.0.get(n).or(self.0.last()).copied()
    }
}

/// The reported state of a device.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScriptedDevice {
    /// PCI bus id, such as `0000:01:00.0`.
    pub pci_bus_id: String,
    /// SM clock while it is not locked.
    pub sm_mhz: Values<u32>,
    /// Maximum SM clock.
    pub sm_max_mhz: u32,
    /// Upper limit of a locked SM clock.
    pub sm_cap_mhz: u32,
    /// The error code returned when locking the clock, if that fails.
    pub lock_fails: Option<u32>,
    /// Memory clock.
    pub mem_mhz: Values<u32>,
    /// Maximum memory clock.
    pub mem_max_mhz: u32,
    /// The bits of the clock event reasons.
    pub reasons: Values<u64>,
    /// Counters by field, in nanoseconds.
    pub fields: BTreeMap<u32, Values<u64>>,
    /// Counters by performance policy, in nanoseconds.
    pub policies: BTreeMap<u32, Values<u64>>,
    /// Temperature in degrees Celsius.
    pub temperature_c: u32,
    /// Power in milliwatts.
    pub power_mw: u32,
    /// Persistence mode is on.
    pub persistence: bool,
    /// MIG mode is on; `None` if the device does not support MIG.
    pub mig: Option<bool>,
    /// The metrics of performance monitoring by their numbers; `None` if the device has none.
    pub gpm: Option<BTreeMap<u32, f64>>,
    /// Processes with a compute context.
    pub processes: Vec<Process>,
    /// Processes that use the device through MPS.
    pub mps_processes: Vec<Process>,
}

/// A process listed by the library.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Process {
    /// Process id; `None` for the calling process.
    pub id: Option<u32>,
    /// Path of the executable.
    pub name: String,
}

impl Process {
    /// Returns the calling process.
    pub fn ours() -> Process {
        Process { id: None, name: "/usr/bin/ours".to_owned() }
    }

    /// Returns another process.
    pub fn other(id: u32, name: &str) -> Process {
        Process { id: Some(id), name: name.to_owned() }
    }

    pub(crate) fn id(&self) -> u32 {
        self.id.unwrap_or_else(std::process::id)
    }
}

impl ScriptedDevice {
    /// Returns a device without any throttling or other problem.
    pub fn calm(pci_bus_id: &str) -> ScriptedDevice {
        let zero = |keys: &[u32]| keys.iter().map(|&key| (key, 0.into())).collect();
        ScriptedDevice {
            pci_bus_id: pci_bus_id.to_owned(),
            sm_mhz: 1980.into(),
            sm_max_mhz: 1980,
            sm_cap_mhz: 1980,
            lock_fails: None,
            mem_mhz: 3201.into(),
            mem_max_mhz: 3201,
            reasons: 0.into(),
            // Power cap, sync boost, the two thermal slowdowns and power brake.
            fields: zero(&[74, 76, 251, 252, 253]),
            policies: zero(&[0, 2]),
            temperature_c: 41,
            power_mw: 123_400,
            persistence: true,
            mig: Some(false),
            gpm: None,
            processes: vec![Process::ours()],
            mps_processes: Vec::new(),
        }
    }
}

impl Script {
    /// Returns devices without any problem, on the PCI buses of the simulated driver's devices.
    pub fn calm(devices: usize) -> Script {
        Script {
            driver: "570.86".to_owned(),
            devices: (1..=devices)
                .map(|bus| ScriptedDevice::calm(&format!("0000:{bus:02X}:00.0")))
                .collect(),
            failing: BTreeMap::new(),
            hanging: BTreeSet::new(),
        }
    }

    /// Makes a function hang.
    pub fn hanging(mut self, function: &str) -> Script {
        self.hanging.insert(function.to_owned());
        self
    }

    /// Makes a function fail with this code.
    pub fn failing(mut self, function: &str, code: u32) -> Script {
        self.failing.insert(function.to_owned(), code);
        self
    }

    /// Modifies the first device.
    pub fn with(mut self, change: impl FnOnce(&mut ScriptedDevice)) -> Script {
        change(&mut self.devices[0]);
        self
    }
}
