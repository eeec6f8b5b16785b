//! `lock_clocks`: a guard that fixes the SM clock.

use std::fmt;

use crate::base::fork;
use crate::health;

/// Fixes the SM clock at `mhz` MHz until the returned guard is dropped, so that times repeat from
/// run to run.
///
/// Call it before the first timed call, so that the event bias is measured at this clock too. The
/// driver rounds to a clock that the device supports, and power or heat can still lower it:
/// [`LockedClocks::sm_mhz`] returns the measured clock. Only one guard can exist at a time.
///
/// # Devices
///
/// The clock is fixed on every device on which something was timed so far, and on the device of the
/// calling thread's current context. If there are none, CUDA is initialized and device 0 is used.
/// Devices that are first used later keep their clocks.
///
/// # Giving the clocks back
///
/// Dropping the guard restores the driver's default clocks, also during a panic. So does the end of
/// the process by a return from `main`, by `exit`, or by SIGHUP, SIGINT or SIGTERM. An earlier lock
/// by another program cannot be read, and is lost. If NVML does not respond within two seconds, a
/// line on stderr says so, and the process goes on.
///
/// While the guard lives, each of the three signals that has its default disposition gets a
/// handler, and a sleeping thread waits for it. A second signal has no effect while the clocks are
/// given back; one that arrives more than a second later ends the process at once. A handler of the
/// application, set before or after, takes precedence: the application must then end the process in
/// a way that is covered here.
///
/// SIGKILL, `abort` and other immediate ends are not covered. Run `nvidia-smi -rgc` as root after
/// them.
///
/// # Errors
///
/// Returns an error without the feature `nvml`; without a driver, a device or NVML; if the device
/// does not support the clock; while another guard exists; and without permission, which NVIDIA
/// gives to root only. In the last case, the message has the command to run as root instead.
pub fn lock_clocks(mhz: u32) -> Result<LockedClocks, ClockError> {
    let locked = match fork::begin_call() {
        Some(_call) => health::lock_clocks(mhz, arm),
        None => Err(format!("the process was {}", fork::FORKED)),
    };
    locked.map(|clocks| LockedClocks { clocks }).map_err(|message| ClockError { message })
}

/// Installs the exit and signal handlers that give locked clocks back.
fn arm() -> Result<(), String> {
    #[cfg(feature = "nvml")]
    {
        use crate::{base::signals, lifecycle::exit};
        exit::arm_for_clocks();
        signals::watch(exit::HANDLERS)
            .map_err(|error| format!("cannot install the signal handlers: {error}"))?;
    }
    Ok(())
}

/// A guard that keeps the SM clocks fixed, from [`lock_clocks`]. Dropping it gives them back.
#[derive(Debug)]
#[must_use = "dropping it gives the clocks back"]
pub struct LockedClocks {
    /// Each device, with the SM clock that was measured after locking.
    clocks: Vec<(String, Option<u32>)>,
}

impl LockedClocks {
    /// Returns each device, such as `"cuda:0"`, with the SM clock in MHz that was measured after
    /// locking; `None` if the driver did not report it.
    pub fn sm_mhz(&self) -> impl Iterator<Item = (&str, Option<u32>)> + '_ {
        self.clocks.iter().map(|(id, mhz)| (id.as_str(), *mhz))
    }
}

impl Drop for LockedClocks {
    fn drop(&mut self) {
        if let Some(_call) = fork::begin_call() {
            health::give_clocks_back();
        }
    }
}

/// The error of [`lock_clocks`]. No clock stays locked. The message says what can be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockError {
    message: String,
}

impl fmt::Display for ClockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ClockError {}
