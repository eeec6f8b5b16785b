//! Reads the state of a device through NVML.

use std::path::Path;
use std::time::Instant;

use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, PerformancePolicy, TemperatureSensor};
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::sys_exports::field_id as field;
use nvml_wrapper::{Device, Nvml};

use crate::health::surroundings;
use gpu_time_report::{Clocks, value};

/// The state of a device at one moment. Values that NVML does not provide are `None`.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub at: Instant,
    pub sm_mhz: Option<u32>,
    pub sm_max_mhz: Option<u32>,
    pub mem_mhz: Option<u32>,
    pub mem_max_mhz: Option<u32>,
    /// No work was running, so the clocks may have been lowered.
    pub is_idle: bool,
    /// The clocks were read under load.
    pub is_at_work: bool,
    /// For each of [`REASONS`]: `true` if it currently lowers the clocks, and the nanoseconds for
    /// which it has done so since the driver was loaded.
    pub throttle: [(bool, Option<u64>); REASONS.len()],
    pub temperature_c: Option<u32>,
    pub power_w: Option<f64>,
    pub persistence: Option<bool>,
    pub mig: Option<bool>,
    pub mps: Option<bool>,
    /// Other processes with a compute context, each given by name and id.
    pub others: Option<Vec<String>>,
}

/// A reason for a device to lower its clocks.
pub(super) struct Reason {
    /// Its name in `nvidia-smi --query-gpu=clocks_event_reasons.…`.
    pub name: &'static str,
    flag: ThrottleReasons,
    /// The field that counts the nanoseconds for which the reason was active.
    counter: Option<u32>,
    /// The policy under which older drivers count this time.
    policy: Option<PerformancePolicy>,
    /// Advice for the user, if the reason makes times unreliable.
    pub advice: Option<&'static str>,
}

const HEAT: Option<&str> = Some("cool the GPU, or lock a lower clock with `lock_clocks`");
const POWER: Option<&str> = Some("lock a clock that the power limit allows with `lock_clocks`");

impl Reason {
    /// A reason that the driver does not count, and that leaves times reliable.
    const fn new(name: &'static str, flag: ThrottleReasons) -> Reason {
        Reason { name, flag, counter: None, policy: None, advice: None }
    }
}

/// All throttle reasons in NVML, except for an idle GPU.
pub(super) const REASONS: [Reason; 8] = [
    Reason {
        counter: Some(field::NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP),
        policy: Some(PerformancePolicy::Power),
        advice: POWER,
        ..Reason::new("sw_power_cap", ThrottleReasons::SW_POWER_CAP)
    },
    Reason {
        counter: Some(field::NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN),
        advice: HEAT,
        ..Reason::new("sw_thermal_slowdown", ThrottleReasons::SW_THERMAL_SLOWDOWN)
    },
    Reason {
        counter: Some(field::NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN),
        advice: HEAT,
        ..Reason::new("hw_thermal_slowdown", ThrottleReasons::HW_THERMAL_SLOWDOWN)
    },
    Reason {
        counter: Some(field::NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN),
        advice: Some("check the power supply"),
        ..Reason::new("hw_power_brake_slowdown", ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN)
    },
    Reason {
        advice: Some("check the temperature and the power supply"),
        ..Reason::new("hw_slowdown", ThrottleReasons::HW_SLOWDOWN)
    },
    Reason {
        counter: Some(field::NVML_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST),
        policy: Some(PerformancePolicy::SyncBoost),
        advice: Some("take the GPU out of its sync boost group"),
        ..Reason::new("sync_boost", ThrottleReasons::SYNC_BOOST)
    },
    Reason::new("applications_clocks_setting", ThrottleReasons::APPLICATIONS_CLOCKS_SETTING),
    Reason::new("display_clock_setting", ThrottleReasons::DISPLAY_CLOCK_SETTING),
];

impl Reading {
    /// Reads the device with this PCI bus id. A CUDA ordinal would not identify it, because NVML numbers
    /// devices differently. `has_context` is `true` if this process has a context on the device.
    pub fn take(nvml: &Nvml, pci_bus_id: &str, has_context: bool) -> Result<Reading, String> {
        let device = nvml.device_by_pci_bus_id(pci_bus_id).map_err(|error| error.to_string())?;
        let active = device.current_throttle_reasons().unwrap_or(ThrottleReasons::NONE);
        let processes = device.running_compute_processes();
        let pids = processes.map(|all| all.into_iter().map(|process| process.pid).collect());
        let mut others = pids.ok().map(|pids| others(nvml, pids, has_context));
        let mps = others.as_mut().map(|others| {
            let before = others.len();
            // The MPS server does no work itself, and there is a separate warning about MPS.
            others.retain(|name| !name.starts_with(MPS_SERVER));
            others.len() < before
                || surroundings::has_mps_pipe()
                || device.mps_running_compute_processes().is_ok_and(|all| !all.is_empty())
        });
        Ok(Reading {
            at: Instant::now(),
            sm_mhz: device.clock_info(Clock::SM).ok(),
            sm_max_mhz: device.max_clock_info(Clock::SM).ok(),
            mem_mhz: device.clock_info(Clock::Memory).ok(),
            mem_max_mhz: device.max_clock_info(Clock::Memory).ok(),
            is_idle: is_idle(active),
            is_at_work: !is_idle(active),
            throttle: REASONS
                .each_ref()
                .map(|reason| (active.contains(reason.flag), active_ns(&device, reason))),
            temperature_c: device.temperature(TemperatureSensor::Gpu).ok(),
            power_w: device.power_usage().ok().map(|mw| f64::from(mw) / 1e3),
            persistence: device.is_in_persistent_mode().ok(),
            mig: match device.mig_mode() {
                Ok(mode) => Some(mode.current == 1),
                // Devices without MIG do not support this query.
                Err(NvmlError::NotSupported) => Some(false),
                Err(_) => None,
            },
            mps,
            others,
        })
    }

    /// Returns the clocks from this first reading to the given SM clock and memory clock.
    pub fn clocks_until(&self, [sm_end_mhz, mem_end_mhz]: [Option<u32>; 2]) -> Clocks {
        value!(Clocks {
            sm_start_mhz: self.sm_mhz,
            sm_end_mhz,
            sm_max_mhz: self.sm_max_mhz,
            mem_start_mhz: self.mem_mhz,
            mem_end_mhz,
            mem_max_mhz: self.mem_max_mhz,
        })
    }
}

/// Returns the SM clock and the memory clock of the device with this PCI bus id, and `true` if it is at work.
pub(super) fn clocks(nvml: &Nvml, pci_bus_id: &str) -> ([Option<u32>; 2], bool) {
    let Ok(device) = nvml.device_by_pci_bus_id(pci_bus_id) else { return ([None; 2], false) };
    let clocks = [Clock::SM, Clock::Memory].map(|clock| device.clock_info(clock).ok());
    (clocks, device.current_throttle_reasons().is_ok_and(|active| !is_idle(active)))
}

fn is_idle(active: ThrottleReasons) -> bool {
    active.contains(ThrottleReasons::GPU_IDLE)
}

/// Returns the nanoseconds for which a reason has been active since the driver was loaded.
fn active_ns(device: &Device, reason: &Reason) -> Option<u64> {
    let values = device.field_values_for(&[FieldId(reason.counter?)]).ok();
    let value = values.and_then(|values| values.into_iter().next()?.ok()?.value.ok());
    match value {
        Some(SampleValue::U64(ns)) => Some(ns),
        Some(SampleValue::I64(ns)) => u64::try_from(ns).ok(),
        Some(SampleValue::U32(ns)) => Some(u64::from(ns)),
        _ => device.violation_status(reason.policy?).ok().map(|time| time.violation_time),
    }
}

/// The process through which MPS clients share a GPU.
const MPS_SERVER: &str = "nvidia-cuda-mps-server";

/// Returns the names and ids of all processes except this one. `has_context` is `true` if this process is
/// among them.
fn others(nvml: &Nvml, mut pids: Vec<u32>, has_context: bool) -> Vec<String> {
    pids.sort_unstable();
    pids.dedup();
    match pids.binary_search(&std::process::id()) {
        Ok(own) => drop(pids.remove(own)),
        // In a container, this process's own id may differ from the listed one. Drop any one
        // process in its place.
        Err(_) if has_context => drop(pids.pop()),
        Err(_) => {}
    }
    let named = |pid: u32| match nvml.sys_process_name(pid, 256) {
        Ok(path) if !path.is_empty() => {
            let name =
                Path::new(&path).file_name().map_or(path.clone().into(), |n| n.to_string_lossy());
            format!("{name} {pid}")
        }
        _ => pid.to_string(),
    };
    pids.into_iter().map(named).collect()
}
