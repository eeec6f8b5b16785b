//! Which clocks are locked, and giving them back exactly once.

use std::sync::TryLockError;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::Clock;
use nvml_wrapper::enums::device::GpuLockedClocksSetting;
use nvml_wrapper::error::NvmlError;

use crate::base::background;
use crate::base::console;
use crate::base::fork;
use crate::base::lock::{Mutex, Rank, locked, locked_by};
use crate::base::signals;
use crate::cuda;
use crate::health::nvml::nvml;

/// Clocks come in steps of this size.
const STEP_MHZ: u32 = 15;
/// A clock needs so long at most to come to where it was locked.
const PATIENCE: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_millis(10);
/// NVML answers within milliseconds, or is stuck. Nobody waits longer for it who makes a report or ends.
const PATIENCE_FOR_NVML: Duration = Duration::from_secs(2);

/// The clocks that this process has locked.
///
/// Invariant: a device is in it from before its clock is locked until it is given back.
struct Locks {
    /// A forked child has a copy, and must not give back what is its parent's.
    process: u32,
    devices: Vec<Lock>,
}

struct Lock {
    ordinal: u32,
    pci_bus_id: String,
    mhz: u32,
}

static LOCKS: Mutex<Option<Locks>> = Mutex::new(Rank::LockedClocks, None);

/// Locks the SM clock of the devices in use, after `arm` has seen to it that they are given back.
/// Answers with their ids and the clock that was measured.
pub(crate) fn lock(
    mhz: u32,
    arm: impl FnOnce() -> Result<(), String>,
) -> Result<Vec<(String, Option<u32>)>, String> {
    if fork::is_forked() {
        return Err(format!("the process was {}", fork::FORKED));
    }
    let nvml = nvml().map_err(|why| format!("no NVML ({why}), through which clocks are locked"))?;
    let in_use = cuda::in_use()?;
    let mut devices = Vec::new();
    for (ordinal, pci_bus_id) in in_use {
        let device = nvml
            .device_by_pci_bus_id(pci_bus_id.as_str())
            .map_err(|error| format!("NVML does not know cuda:{ordinal}, {pci_bus_id}: {error}"))?;
        check_range(&device, ordinal, mhz)?;
        devices.push((Lock { ordinal, pci_bus_id, mhz }, device));
    }
    set(&mut devices, arm)?;
    Ok(devices
        .iter()
        .map(|(lock, device)| (format!("cuda:{}", lock.ordinal), settled(device, mhz)))
        .collect())
}

/// Locks all or none.
fn set(
    devices: &mut [(Lock, Device)],
    arm: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let process = std::process::id();
    let mut locks = locked(&LOCKS);
    if locks.as_ref().is_some_and(Locks::are_ours) {
        return Err("clocks are locked already: drop the guard that holds them first".to_owned());
    }
    arm()?;
    let mut done = Locks { process, devices: Vec::new() };
    for (Lock { ordinal, pci_bus_id, mhz }, device) in devices {
        let (ordinal, mhz) = (*ordinal, *mhz);
        done.devices.push(Lock { ordinal, pci_bus_id: pci_bus_id.clone(), mhz });
        let setting = GpuLockedClocksSetting::Numeric { min_clock_mhz: mhz, max_clock_mhz: mhz };
        if let Err(error) = device.set_gpu_locked_clocks(setting) {
            done.devices.pop();
            give(done);
            return Err(match error {
                NvmlError::NoPermission => format!(
                    "cuda:{ordinal}: no permission to lock clocks: run `nvidia-smi -i {pci_bus_id} \
                     -lgc {mhz},{mhz}` as root, outside of any container, before, and `nvidia-smi -i \
                     {pci_bus_id} -rgc` after"
                ),
                error => format!("cuda:{ordinal}: its clock cannot be locked: {error}"),
            });
        }
    }
    *locks = Some(done);
    Ok(())
}

/// Refuses a clock that the device does not have.
fn check_range(device: &Device, ordinal: u32, mhz: u32) -> Result<(), String> {
    let memory = device.max_clock_info(Clock::Memory);
    let known = memory.and_then(|memory| device.supported_graphics_clocks(memory));
    let known = known.unwrap_or_default();
    let most = known.iter().copied().max().or_else(|| device.max_clock_info(Clock::SM).ok());
    let least = known.into_iter().min().unwrap_or(1);
    match most {
        Some(most) if mhz < least || mhz > most => Err(format!(
            "cuda:{ordinal} has no SM clock of {mhz} MHz; accepted are {least} to {most}"
        )),
        _ => Ok(()),
    }
}

/// The clock that is measured once it has come to where it was locked, or has had the time to.
fn settled(device: &Device, mhz: u32) -> Option<u32> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let measured = device.clock_info(Clock::SM).ok()?;
        if measured.abs_diff(mhz) < STEP_MHZ || Instant::now() >= deadline {
            return Some(measured);
        }
        thread::sleep(PAUSE);
    }
}

/// The clock that a device is locked at.
pub(super) fn asked_mhz(ordinal: u32) -> Option<u32> {
    let locks = locked_by(&LOCKS, Instant::now() + PATIENCE_FOR_NVML)?;
    let ours = locks.as_ref().filter(|locks| locks.are_ours())?;
    ours.devices.iter().find_map(|lock| (lock.ordinal == ordinal).then_some(lock.mhz))
}

/// Gives back all that are locked, to the driver's default. Where NVML does not answer, that is said and
/// not waited for.
pub(crate) fn give_back() {
    /// Somebody has waited in vain for the thread below.
    static IS_STUCK: AtomicBool = AtomicBool::new(false);
    match LOCKS.try_lock() {
        Ok(locks) if !locks.as_ref().is_some_and(Locks::are_ours) => return,
        Err(TryLockError::WouldBlock) if IS_STUCK.load(Relaxed) => return,
        _ => {}
    }
    let (done, is_done) = mpsc::channel();
    let on_thread = done.clone();
    if background::spawn("gpu-time-clocks", move || give_all(&on_thread)).is_err() {
        give_all(&done);
    }
    drop(done);
    if is_done.recv_timeout(PATIENCE_FOR_NVML).is_err() {
        IS_STUCK.store(true, Relaxed);
        console::say(
            "NVML does not answer, and clocks may be locked still: run `nvidia-smi -rgc` as root",
        );
    }
}

fn give_all(done: &Sender<()>) {
    // Held to the end: whoever comes second may end the process.
    let mut locks = locked(&LOCKS);
    if let Some(locks) = locks.take() {
        give(locks);
    }
    // Nobody may wait any more.
    _ = done.send(());
}

impl Locks {
    fn are_ours(&self) -> bool {
        self.process == std::process::id()
    }
}

fn give(locks: Locks) {
    if !locks.are_ours() {
        return;
    }
    for Lock { ordinal, pci_bus_id, .. } in locks.devices {
        let reset = nvml().map_err(str::to_owned).and_then(|nvml| {
            let device = nvml.device_by_pci_bus_id(pci_bus_id.as_str());
            let reset = device.and_then(|mut device| device.reset_gpu_locked_clocks());
            reset.map_err(|error| error.to_string())
        });
        if let Err(why) = reset {
            console::say(&format!(
                "cuda:{ordinal}: its clock was not given back ({why}): run `nvidia-smi -i \
                 {pci_bus_id} -rgc` as root"
            ));
        }
    }
    signals::unwatch();
}
