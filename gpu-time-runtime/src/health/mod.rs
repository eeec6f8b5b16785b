//! The conditions of the measurement, read through NVML: clocks, throttling and other processes.
//! Also locks clocks.
//!
//! A device is read when it is first seen, outside any bracket, and when a report is made. If it was
//! idle when first seen, its clocks are read again after calibration has put it under load, still
//! before the first bracket. Between these readings, only the worker reads: the clocks for live metrics, and once a second
//! how far the device is in use. Nothing here runs on the path of a timed call.

mod findings;
mod library;
mod locked_clocks;
mod reading;
mod surroundings;
mod utilization;

use std::collections::BTreeMap;
use std::time::Duration;

use nvml_wrapper::Nvml;

use crate::base::lock::{Mutex, Rank, locked};
use crate::base::{background, fork};
use crate::cuda::DeviceInfo;
use gpu_time_report as report;
use library::nvml;
pub(crate) use locked_clocks::{give_back as give_clocks_back, lock as lock_clocks};
use reading::Reading;
pub use surroundings::CpuOverload;
pub(crate) use surroundings::cpu_overload;

/// The time between the two readings in [`examine`], during which throttle counters advance.
const BETWEEN: Duration = Duration::from_millis(100);

/// The first reading of each device, by its ordinal.
static FIRST_READINGS: Mutex<BTreeMap<u32, Result<Reading, String>>> =
    Mutex::new(Rank::Devices, BTreeMap::new());

/// Takes the first reading of a device, unless there is one.
pub(crate) fn observe(device: &DeviceInfo) {
    if locked(&FIRST_READINGS).contains_key(&device.ordinal) {
        return;
    }
    let Ok(nvml) = nvml() else { return };
    let reading = background::aside(|| {
        utilization::begin(nvml, device);
        read(nvml, device)
    });
    locked(&FIRST_READINGS).entry(device.ordinal).or_insert(reading);
}

/// Reads how far the devices are in use. For the worker.
pub(crate) fn read_utilization() {
    if let Ok(nvml) = nvml() {
        utilization::read(nvml);
    }
}

/// Reads a device's clocks immediately after it has worked, if its first reading found it idle.
pub(crate) fn observe_at_work(device: &DeviceInfo) {
    let is_idle =
        |start: &&mut Result<Reading, String>| matches!(start, Ok(start) if !start.is_at_work);
    if locked(&FIRST_READINGS).get_mut(&device.ordinal).filter(is_idle).is_none() {
        return;
    }
    let Ok(nvml) = nvml() else { return };
    // NVML may be slow, so the lock is not held during the reading.
    let ([sm_mhz, mem_mhz], is_at_work) = reading::clocks(nvml, &device.pci_bus_id);
    if is_at_work
        && let Some(Ok(start)) = locked(&FIRST_READINGS).get_mut(&device.ordinal).filter(is_idle)
    {
        (start.sm_mhz, start.mem_mhz, start.is_at_work) = (sm_mhz, mem_mhz, true);
    }
}

fn read(nvml: &Nvml, device: &DeviceInfo) -> Result<Reading, String> {
    match device.pci_bus_id.as_str() {
        "" => Err("the CUDA driver does not report its PCI bus id".to_owned()),
        pci_bus_id => Reading::take(nvml, pci_bus_id, true),
    }
}

/// Takes two readings of each of these devices, without running anything on them, and adds the results to the
/// report entries. Each device is given with its PCI bus id. The results are `true` for the devices that were
/// idle.
pub(crate) fn examine(devices: &mut [(String, report::Device)]) -> Result<Vec<bool>, &'static str> {
    let nvml = nvml()?;
    let read = |(pci_bus_id, _): &(String, _)| Reading::take(nvml, pci_bus_id, false);
    let starts: Vec<_> = devices.iter().map(read).collect();
    std::thread::sleep(BETWEEN);
    let mut idle = Vec::new();
    for (entry, start) in devices.iter_mut().zip(starts) {
        let readings = start.and_then(|start| Ok((start, read(entry)?)));
        idle.push(matches!(&readings, Ok((start, end)) if start.is_idle && end.is_idle));
        add(&mut entry.1, readings, None);
    }
    Ok(idle)
}

/// Adds a device's current clocks for live metrics. Also whether it is in MIG mode, by its first
/// reading, because that cannot change while a process uses it. Without that reading, adds nothing.
#[cfg(feature = "metrics")]
pub(crate) fn describe_now(to: &mut report::Device, device: &DeviceInfo) {
    if fork::is_forked() {
        return;
    }
    let Ok(nvml) = nvml() else { return };
    let start = locked(&FIRST_READINGS).get(&device.ordinal).cloned();
    let Some(Ok(start)) = start else { return };
    to.mig = start.mig;
    to.utilization = utilization::of(device.ordinal, true);
    to.clocks = Some(start.clocks_until(reading::clocks(nvml, &device.pci_bus_id).0));
}

/// Adds the results of two readings to the report, or a warning that NVML cannot read the device.
fn add(
    to: &mut report::Device,
    readings: Result<(Reading, Reading), String>,
    locked_mhz: Option<u32>,
) {
    match readings {
        Ok((start, end)) => findings::describe(to, &start, &end, locked_mhz),
        Err(why) => to.warnings.push(format!(
            "NVML cannot read it ({why}): its clocks and other processes are unknown"
        )),
    }
}

/// Takes a second reading of a device and adds the results of both to the report.
pub(crate) fn describe(to: &mut report::Device, device: &DeviceInfo) {
    // A forked child must not use the parent's NVML library.
    if fork::is_forked() {
        return;
    }
    let Ok(nvml) = nvml() else { return };
    let Some(start) = locked(&FIRST_READINGS).get(&device.ordinal).cloned() else { return };
    let readings = start.and_then(|start| Ok((start, read(nvml, device)?)));
    utilization::read(nvml);
    to.utilization = utilization::of(device.ordinal, false);
    add(to, readings, locked_clocks::locked_mhz(device.ordinal));
}

/// Returns warnings about the whole machine, if any device was used.
pub(crate) fn warnings() -> Vec<String> {
    if fork::is_forked() || crate::cuda::contexts().is_empty() {
        return Vec::new();
    }
    let missing = nvml().err().map(|why| {
        format!(
            "no NVML ({why}): clocks, throttling and other processes are unknown; install \
             libnvidia-ml.so.1, which comes with the driver"
        )
    });
    missing.into_iter().chain(cpu_overload().map(|overload| overload.to_string())).collect()
}
