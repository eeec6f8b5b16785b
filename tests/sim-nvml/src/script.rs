//! What the stand-in is to answer.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The variable that holds it.
pub const VARIABLE: &str = "GPU_TIME_TEST_SIM_NVML";

/// What the library is to answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Script {
    /// The driver's version.
    pub driver: String,
    /// In the order in which an index names them.
    pub devices: Vec<ScriptedDevice>,
    /// Functions that fail, each with its error code.
    pub failing: BTreeMap<String, u32>,
    /// Functions that never return. The trace says when one is called.
    pub hanging: BTreeSet<String>,
}

/// Values of one kind, each for one call, the last one for all that follow.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Values<T>(pub Vec<T>);

impl<T> From<T> for Values<T> {
    fn from(value: T) -> Self {
        Values(vec![value])
    }
}

impl<T: Copy> Values<T> {
    /// The value of the `n`th call, counted from 0.
    pub(crate) fn get(&self, n: usize) -> Option<T> {
        self.0.get(n).or(self.0.last()).copied()
    }
}

/// A device as it is to look.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScriptedDevice {
    /// As `0000:01:00.0`.
    pub pci_bus_id: String,
    /// The SM clock while it is not locked.
    pub sm_mhz: Values<u32>,
    /// What there is at most.
    pub sm_max_mhz: u32,
    /// What a locked clock comes to at most.
    pub sm_cap_mhz: u32,
    /// With which code locking its clock fails, if it does.
    pub lock_fails: Option<u32>,
    /// The memory clock.
    pub mem_mhz: Values<u32>,
    /// What there is at most.
    pub mem_max_mhz: u32,
    /// The bits of the clocks' event reasons.
    pub reasons: Values<u64>,
    /// Counters by their field, in nanoseconds.
    pub fields: BTreeMap<u32, Values<u64>>,
    /// Counters by their performance policy, in nanoseconds.
    pub policies: BTreeMap<u32, Values<u64>>,
    /// In degrees.
    pub temperature_c: u32,
    /// In milliwatts.
    pub power_mw: u32,
    /// Whether it is on.
    pub persistence: bool,
    /// Whether it is on; `None` for a part without it.
    pub mig: Option<bool>,
    /// Those with a compute context.
    pub processes: Vec<Process>,
    /// Those that are there through MPS.
    pub mps_processes: Vec<Process>,
}

/// A process as the library lists it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Process {
    /// `None` is the process that asks.
    pub id: Option<u32>,
    /// The path of its program.
    pub name: String,
}

impl Process {
    /// The process that asks.
    pub fn ours() -> Process {
        Process { id: None, name: "/usr/bin/ours".to_owned() }
    }

    /// Another one.
    pub fn other(id: u32, name: &str) -> Process {
        Process { id: Some(id), name: name.to_owned() }
    }

    pub(crate) fn id(&self) -> u32 {
        self.id.unwrap_or_else(std::process::id)
    }
}

impl ScriptedDevice {
    /// A device that nothing is wrong with.
    pub fn calm(pci_bus_id: &str) -> ScriptedDevice {
        let none_held = |keys: &[u32]| keys.iter().map(|&key| (key, 0.into())).collect();
        ScriptedDevice {
            pci_bus_id: pci_bus_id.to_owned(),
            sm_mhz: 1980.into(),
            sm_max_mhz: 1980,
            sm_cap_mhz: 1980,
            lock_fails: None,
            mem_mhz: 3201.into(),
            mem_max_mhz: 3201,
            reasons: 0.into(),
            // The power cap, the sync boost, the two thermal slowdowns and the power brake.
            fields: none_held(&[74, 76, 251, 252, 253]),
            policies: none_held(&[0, 2]),
            temperature_c: 41,
            power_mw: 123_400,
            persistence: true,
            mig: Some(false),
            processes: vec![Process::ours()],
            mps_processes: Vec::new(),
        }
    }
}

impl Script {
    /// Devices that nothing is wrong with, where the simulated driver has its own.
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

    /// Lets a function never return.
    pub fn hanging(mut self, function: &str) -> Script {
        self.hanging.insert(function.to_owned());
        self
    }

    /// Lets a function fail with this code.
    pub fn failing(mut self, function: &str, code: u32) -> Script {
        self.failing.insert(function.to_owned(), code);
        self
    }

    /// Changes the first device.
    pub fn with(mut self, change: impl FnOnce(&mut ScriptedDevice)) -> Script {
        change(&mut self.devices[0]);
        self
    }
}
