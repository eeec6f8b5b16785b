//! Locks clocks, and releases them exactly once.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::Clock;
use nvml_wrapper::enums::device::GpuLockedClocksSetting;
use nvml_wrapper::error::NvmlError;

use crate::base::lock::{Mutex, Rank, locked, locked_by, try_locked};
use crate::base::{background, console, signals};
use crate::cuda;
use crate::health::library::nvml;

/// The step between adjacent clocks that a device supports.
const STEP_MHZ: u32 = 15;
/// The maximum time to wait until a clock has reached its locked value.
const PATIENCE: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_millis(10);
/// The maximum time that a report or the exit waits for NVML, which answers within milliseconds
/// unless it is stuck.
const PATIENCE_FOR_NVML: Duration = Duration::from_secs(2);

/// The clocks locked by this process.
///
/// Invariant: a device is added to the list before its clock is locked, and stays until it is
/// released.
struct ClockLocks {
    /// The owning process. A forked child has a copy and must not release its parent's clocks.
    process: u32,
    mhz: u32,
    /// The ordinals and PCI bus ids of the devices.
    devices: Vec<(u32, String)>,
}

static LOCKS: Mutex<Option<ClockLocks>> = Mutex::new(Rank::LockedClocks, None);

/// Locks the SM clock of the devices in use, after `arm` has registered the release. Returns the
/// devices' ids and their measured clocks.
pub(crate) fn lock(
    mhz: u32,
    arm: impl FnOnce() -> Result<(), String>,
) -> Result<Vec<(String, Option<u32>)>, String> {
    let nvml = nvml().map_err(|why| format!("no NVML ({why}), which locking clocks requires"))?;
    let in_use = cuda::in_use(cuda::contexts().iter().map(|c| c.device.ordinal).collect())?;
    let mut devices = Vec::new();
    for (ordinal, pci_bus_id) in &in_use {
        let device = nvml
            .device_by_pci_bus_id(pci_bus_id.as_str())
            .map_err(|error| format!("NVML cannot find cuda:{ordinal} ({pci_bus_id}): {error}"))?;
        check_range(&device, *ordinal, mhz)?;
        devices.push(device);
    }
    let ids = in_use.iter().map(|(ordinal, _)| format!("cuda:{ordinal}")).collect::<Vec<_>>();
    lock_all(mhz, in_use, &mut devices, arm)?;
    Ok(ids.into_iter().zip(devices.iter().map(|device| wait_for_clock(device, mhz))).collect())
}

/// Locks all devices, or none if one fails.
fn lock_all(
    mhz: u32,
    in_use: Vec<(u32, String)>,
    devices: &mut [Device],
    arm: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let process = std::process::id();
    let mut locks = locked(&LOCKS);
    if locks.as_ref().is_some_and(ClockLocks::are_own) {
        return Err("clocks are already locked: drop the guard that holds them first".to_owned());
    }
    arm()?;
    let mut done = ClockLocks { process, mhz, devices: Vec::new() };
    for ((ordinal, pci_bus_id), device) in in_use.into_iter().zip(devices) {
        done.devices.push((ordinal, pci_bus_id.clone()));
        let setting = GpuLockedClocksSetting::Numeric { min_clock_mhz: mhz, max_clock_mhz: mhz };
        if let Err(error) = device.set_gpu_locked_clocks(setting) {
            done.devices.pop();
            release(done);
            return Err(match error {
                NvmlError::NoPermission => format!(
                    "cuda:{ordinal}: no permission to lock clocks: run `nvidia-smi -i {pci_bus_id} \
                     -lgc {mhz},{mhz}` as root, outside of any container, before the program, and \
                     `nvidia-smi -i {pci_bus_id} -rgc` after it"
                ),
                error => format!("cuda:{ordinal}: cannot lock its clock: {error}"),
            });
        }
    }
    *locks = Some(done);
    Ok(())
}

/// Rejects a clock that the device does not support.
fn check_range(device: &Device, ordinal: u32, mhz: u32) -> Result<(), String> {
    let memory = device.max_clock_info(Clock::Memory);
    let known = memory.and_then(|memory| device.supported_graphics_clocks(memory));
    let known = known.unwrap_or_default();
    let most = known.iter().copied().max().or_else(|| device.max_clock_info(Clock::SM).ok());
    let least = known.into_iter().min().unwrap_or(1);
    match most {
        Some(most) if mhz < least || mhz > most => Err(format!(
            "cuda:{ordinal} has no SM clock of {mhz} MHz: expected {least} to {most} MHz"
        )),
        _ => Ok(()),
    }
}

/// Waits for a bounded time until a clock has reached its locked value. Returns the last reading.
fn wait_for_clock(device: &Device, mhz: u32) -> Option<u32> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let measured = device.clock_info(Clock::SM).ok()?;
        if measured.abs_diff(mhz) < STEP_MHZ || Instant::now() >= deadline {
            return Some(measured);
        }
        thread::sleep(PAUSE);
    }
}

/// Returns the clock to which a device is locked.
pub(super) fn locked_mhz(ordinal: u32) -> Option<u32> {
    let locks = locked_by(&LOCKS, Instant::now() + PATIENCE_FOR_NVML)?;
    let own = locks.as_ref().filter(|locks| locks.are_own())?;
    own.devices.iter().any(|(locked, _)| *locked == ordinal).then_some(own.mhz)
}

/// Resets all clocks to the driver's default. If NVML does not answer, prints a message and stops
/// waiting.
pub(crate) fn give_back() {
    /// Set once a call has waited in vain for the thread below.
    static IS_STUCK: AtomicBool = AtomicBool::new(false);
    match try_locked(&LOCKS) {
        Some(locks) if !locks.as_ref().is_some_and(ClockLocks::are_own) => return,
        None if IS_STUCK.load(Relaxed) => return,
        _ => {}
    }
    let (done, is_done) = mpsc::channel();
    let on_thread = done.clone();
    if background::spawn("gpu-time-clocks", move || release_all(&on_thread)).is_err() {
        release_all(&done);
    }
    drop(done);
    if is_done.recv_timeout(PATIENCE_FOR_NVML).is_err() {
        IS_STUCK.store(true, Relaxed);
        console::say(
            "NVML does not answer, and clocks may still be locked: run `nvidia-smi -rgc` as root",
        );
    }
}

fn release_all(done: &Sender<()>) {
    // The lock is held until the end, because a second caller may end the process once it gets the
    // lock.
    let mut locks = locked(&LOCKS);
    if let Some(locks) = locks.take() {
        release(locks);
    }
    // The receiver may have stopped waiting.
    _ = done.send(());
}

impl ClockLocks {
    fn are_own(&self) -> bool {
        self.process == std::process::id()
    }
}

fn release(locks: ClockLocks) {
    if !locks.are_own() {
        return;
    }
    for (ordinal, pci_bus_id) in locks.devices {
        let reset = nvml().map_err(str::to_owned).and_then(|nvml| {
            let device = nvml.device_by_pci_bus_id(pci_bus_id.as_str());
            let reset = device.and_then(|mut device| device.reset_gpu_locked_clocks());
            reset.map_err(|error| error.to_string())
        });
        if let Err(why) = reset {
            console::say(&format!(
                "cuda:{ordinal}: cannot release its clock ({why}): run `nvidia-smi -i {pci_bus_id} \
                 -rgc` as root"
            ));
        }
    }
    signals::unwatch();
}
