//! The library's state: the script, read counts for scripted values, locked clocks and the trace.
//! Clocks change from read to read, not with time: each read returns the next scripted value.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::script::{SCRIPT_VARIABLE, Script, ScriptedDevice, TRACE_VARIABLE, Values};

/// An NVML error code.
pub type Code = u32;
pub const INVALID_ARGUMENT: Code = 2;
pub const NOT_SUPPORTED: Code = 3;
pub const NOT_FOUND: Code = 6;
pub const INSUFFICIENT_SIZE: Code = 7;
pub const DRIVER_NOT_LOADED: Code = 9;

/// The library's state in this process.
pub struct Library {
    pub script: Script,
    /// The number of reads for each value of each device.
    reads: BTreeMap<(usize, String), usize>,
    /// The locked clock of each device, if any.
    locked: BTreeMap<usize, u32>,
}

/// Locks the library. Fails unless a test has set a script.
pub fn library() -> Result<MutexGuard<'static, Library>, Code> {
    static LIBRARY: OnceLock<Option<Mutex<Library>>> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| {
        let script = std::env::var(SCRIPT_VARIABLE).ok()?;
        let script = serde_json::from_str(&script).unwrap_or_else(|error| {
            eprintln!("invalid script in `{SCRIPT_VARIABLE}`: {error}");
            std::process::abort()
        });
        Some(Mutex::new(Library { script, reads: BTreeMap::new(), locked: BTreeMap::new() }))
    });
    let library = library.as_ref().ok_or(DRIVER_NOT_LOADED)?;
    Ok(library.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Library {
    /// Returns the device for a handle, which is the device's index plus one.
    pub fn device(&self, handle: usize) -> Result<&ScriptedDevice, Code> {
        self.script.devices.get(handle.wrapping_sub(1)).ok_or(INVALID_ARGUMENT)
    }

    /// Returns a device's handle by bus id, with any number of leading zeros and in either case.
    pub fn find(&self, pci_bus_id: &str) -> Result<usize, Code> {
        let numbers = |id: &str| -> Option<Vec<u32>> {
            id.split([':', '.']).map(|part| u32::from_str_radix(part, 16).ok()).collect()
        };
        let wanted = numbers(pci_bus_id).ok_or(INVALID_ARGUMENT)?;
        let same = |device: &ScriptedDevice| numbers(&device.pci_bus_id).as_ref() == Some(&wanted);
        self.script.devices.iter().position(same).map(|index| index + 1).ok_or(NOT_FOUND)
    }

    /// Returns the next value in one of a device's lists. Fails if the device does not have it.
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

    /// Returns the SM clock, locked or not.
    pub fn sm_mhz(&mut self, handle: usize) -> Result<u32, Code> {
        let cap = self.device(handle)?.sm_cap_mhz;
        match self.locked.get(&handle) {
            Some(&mhz) => Ok(mhz.min(cap)),
            None => self.next(handle, "sm", |device| Some(&device.sm_mhz)),
        }
    }

    /// Locks the SM clock.
    pub fn lock(&mut self, handle: usize, min: u32, max: u32) -> Result<(), Code> {
        let device = self.device(handle)?;
        if let Some(code) = device.lock_fails {
            return Err(code);
        }
        trace(&format!("lock {} {min} {max}", device.pci_bus_id));
        self.locked.insert(handle, max);
        Ok(())
    }

    /// Unlocks the SM clock.
    pub fn reset(&mut self, handle: usize) -> Result<(), Code> {
        trace(&format!("reset {}", self.device(handle)?.pci_bus_id));
        self.locked.remove(&handle);
        Ok(())
    }
}

/// Appends a line to the trace.
pub fn trace(line: &str) {
    let Some(path) = std::env::var_os(TRACE_VARIABLE) else { return };
    let file = OpenOptions::new().create(true).append(true).open(path);
    let written = file.and_then(|mut file| writeln!(file, "{line}"));
    if let Err(error) = written {
        eprintln!("cannot write the NVML trace: {error}");
        std::process::abort();
    }
}
