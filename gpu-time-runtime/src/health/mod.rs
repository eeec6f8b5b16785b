//! What NVML knows of the devices and their surroundings.
//!
//! A device is looked at when it is first met, outside any bracket, and when a report is made. One that was
//! idle when it was met is looked at once more when our calibration has made it work, which is before the
//! first bracket too. Nothing here runs in between or on the path of a timed call.

mod findings;
mod locks;
mod nvml;
mod reading;
mod surroundings;

use std::time::Duration;

use nvml_wrapper::Nvml;

use crate::base::fork;
use crate::base::lock::{Mutex, Rank, locked};
use crate::cuda::DeviceInfo;
use gpu_time_report as report;
pub(crate) use locks::{give_back as give_clocks_back, lock as lock_clocks};
use nvml::nvml;
use reading::{ClocksAtWork, Reading};
pub(crate) use surroundings::cpu_overload;

/// Counters of throttling move in between.
const BETWEEN: Duration = Duration::from_millis(100);

/// The first look at each device, by its ordinal.
static STARTS: Mutex<Vec<(u32, Result<Reading, String>)>> = Mutex::new(Rank::Devices, Vec::new());

/// Takes the first look at a device, unless it was met before.
pub(crate) fn meet(device: &DeviceInfo) {
    let is_known = || locked(&STARTS).iter().any(|(known, _)| *known == device.ordinal);
    if is_known() {
        return;
    }
    let Ok(nvml) = nvml() else { return };
    let reading = look(nvml, device);
    if !is_known() {
        locked(&STARTS).push((device.ordinal, reading));
    }
}

/// Looks what the clocks of a device are at work, right after it has worked, if it was idle when it was met.
pub(crate) fn meet_at_work(device: &DeviceInfo) {
    let was_idle = |starts: &[(u32, Result<Reading, String>)]| {
        let mut starts = starts.iter().filter(|(known, _)| *known == device.ordinal);
        starts.any(|(_, start)| matches!(start, Ok(start) if !start.is_at_work))
    };
    if !was_idle(&locked(&STARTS)) {
        return;
    }
    let Ok(nvml) = nvml() else { return };
    // Nobody waits for NVML with the lock.
    let Some(clocks) = ClocksAtWork::take(nvml, &device.pci_bus_id) else { return };
    let mut starts = locked(&STARTS);
    let start = starts.iter_mut().find(|(known, _)| *known == device.ordinal);
    if let Some((_, Ok(start))) = start {
        start.see_at_work(clocks);
    }
}

fn look(nvml: &Nvml, device: &DeviceInfo) -> Result<Reading, String> {
    match device.pci_bus_id.as_str() {
        "" => Err("the CUDA driver does not say where it is".to_owned()),
        pci_bus_id => Reading::take(nvml, pci_bus_id, true),
    }
}

/// Two looks at devices on which nothing of ours runs, by their PCI bus ids: what is known goes into the
/// device of the same place. Answers which of them were idle.
pub(crate) fn examine(devices: &mut [(String, report::Device)]) -> Result<Vec<bool>, &'static str> {
    let nvml = nvml()?;
    let look = |(pci_bus_id, _): &(String, _)| Reading::take(nvml, pci_bus_id, false);
    let starts: Vec<_> = devices.iter().map(look).collect();
    std::thread::sleep(BETWEEN);
    let mut idle = Vec::new();
    for (entry, start) in devices.iter_mut().zip(starts) {
        let looks = start.and_then(|start| Ok((start, look(entry)?)));
        idle.push(matches!(&looks, Ok((start, end)) if start.is_idle && end.is_idle));
        match looks {
            Ok((start, end)) => findings::describe(&mut entry.1, &start, &end, None),
            Err(why) => entry.1.warnings.push(unknown(&why)),
        }
    }
    Ok(idle)
}

/// That the library answers, and nothing of this device.
fn unknown(why: &str) -> String {
    format!("NVML does not tell of it ({why}): nothing is known of its clocks and neighbours")
}

/// Takes another look at a device, and writes what both say into the report.
pub(crate) fn describe(to: &mut report::Device, device: &DeviceInfo) {
    // The library of a forked child is its parent's.
    if fork::is_forked() {
        return;
    }
    let Ok(nvml) = nvml() else { return };
    let is_it = |(known, _): &&(u32, _)| *known == device.ordinal;
    let Some((_, start)) = locked(&STARTS).iter().find(is_it).cloned() else { return };
    let looks = start.and_then(|start| Ok((start, look(nvml, device)?)));
    match looks {
        Ok((start, end)) => {
            findings::describe(to, &start, &end, locks::asked_mhz(device.ordinal));
        }
        Err(why) => to.warnings.push(unknown(&why)),
    }
}

/// What is wrong with the process's surroundings, if any device was met.
pub(crate) fn warnings() -> Vec<String> {
    if fork::is_forked() || crate::cuda::contexts().is_empty() {
        return Vec::new();
    }
    let missing = nvml().err().map(|why| {
        format!(
            "no NVML ({why}): nothing is known of clocks, throttling and neighbours; it comes with the \
             driver, as libnvidia-ml.so.1"
        )
    });
    missing.into_iter().chain(cpu_overload()).collect()
}
