//! The devices and what has become of them.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::script::{Script, ScriptedDevice, VARIABLE, Values};

/// An error code of NVML.
pub type Code = u32;
pub const INVALID_ARGUMENT: Code = 2;
pub const NOT_SUPPORTED: Code = 3;
pub const NOT_FOUND: Code = 6;
pub const INSUFFICIENT_SIZE: Code = 7;
pub const DRIVER_NOT_LOADED: Code = 9;

/// The library in this process.
pub struct Library {
    pub script: Script,
    /// How often each value of each device was read.
    reads: BTreeMap<(usize, String), usize>,
    /// The locked clock of each device.
    locked: BTreeMap<usize, u32>,
}

/// The library, if a test wants it.
pub fn library() -> Result<MutexGuard<'static, Library>, Code> {
    static LIBRARY: OnceLock<Option<Mutex<Library>>> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| {
        let script = std::env::var(VARIABLE).ok()?;
        let script = serde_json::from_str(&script).unwrap_or_else(|error| {
            eprintln!("{VARIABLE}: {error}");
            std::process::abort()
        });
        Some(Mutex::new(Library { script, reads: BTreeMap::new(), locked: BTreeMap::new() }))
    });
    let library = library.as_ref().ok_or(DRIVER_NOT_LOADED)?;
    Ok(library.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Library {
    /// The device of a handle, which is its index and one.
    pub fn device(&self, handle: usize) -> Result<&ScriptedDevice, Code> {
        self.script.devices.get(handle.wrapping_sub(1)).ok_or(INVALID_ARGUMENT)
    }

    /// The handle of a device, by a bus id in any of the usual spellings.
    pub fn find(&self, pci_bus_id: &str) -> Result<usize, Code> {
        let numbers = |id: &str| -> Option<Vec<u32>> {
            id.split([':', '.']).map(|part| u32::from_str_radix(part, 16).ok()).collect()
        };
        let wanted = numbers(pci_bus_id).ok_or(INVALID_ARGUMENT)?;
        let same = |device: &ScriptedDevice| numbers(&device.pci_bus_id).as_ref() == Some(&wanted);
        self.script.devices.iter().position(same).map(|index| index + 1).ok_or(NOT_FOUND)
    }

    /// The next of a device's values, if it has any.
    pub fn next<T: Copy>(
        &mut self,
        handle: usize,
        what: &str,
        values: impl FnOnce(&ScriptedDevice) -> Option<&Values<T>>,
    ) -> Result<T, Code> {
        let n = self.reads.get(&(handle, what.to_owned())).copied().unwrap_or(0);
        let value = values(self.device(handle)?).and_then(|values| values.get(n));
        self.reads.insert((handle, what.to_owned()), n + 1);
        value.ok_or(NOT_SUPPORTED)
    }

    /// The SM clock, locked or not.
    pub fn sm_mhz(&mut self, handle: usize) -> Result<u32, Code> {
        let cap = self.device(handle)?.sm_cap_mhz;
        match self.locked.get(&handle) {
            Some(&mhz) => Ok(mhz.min(cap)),
            None => self.next(handle, "sm", |device| Some(&device.sm_mhz)),
        }
    }

    /// Locks the SM clock.
    pub fn lock(&mut self, handle: usize, least: u32, most: u32) -> Result<(), Code> {
        let device = self.device(handle)?;
        if let Some(code) = device.lock_fails {
            return Err(code);
        }
        trace(&format!("lock {} {least} {most}", device.pci_bus_id));
        self.locked.insert(handle, most);
        Ok(())
    }

    /// Gives the SM clock back.
    pub fn reset(&mut self, handle: usize) -> Result<(), Code> {
        trace(&format!("reset {}", self.device(handle)?.pci_bus_id));
        self.locked.remove(&handle);
        Ok(())
    }
}

/// Appends a line to the trace.
pub fn trace(line: &str) {
    let Some(path) = std::env::var_os(crate::harness::TRACE) else { return };
    let file = OpenOptions::new().create(true).append(true).open(path);
    let written = file.and_then(|mut file| writeln!(file, "{line}"));
    if let Err(error) = written {
        eprintln!("the trace of NVML: {error}");
        std::process::abort();
    }
}
