//! Fixing the SM clock for as long as a guard lives.

use std::fmt;

#[cfg(feature = "nvml")]
use crate::base::signals;
use crate::health;
#[cfg(feature = "nvml")]
use crate::lifecycle::exit;

/// Fixes the SM clock of the devices in use at `mhz` MHz until the guard is dropped: a clock that the
/// device can hold makes times repeat from run to run.
///
/// The devices are those that something was timed on so far, and that of the calling thread's current
/// context; where there are none, CUDA's device 0, for which CUDA is initialised. A device that is
/// first used later keeps its clock. One guard can live at a time. Lock before the first timed call, so
/// that what events add to a time is measured at that clock too.
///
/// The driver rounds to a clock that it has, and power and heat can still lower it:
/// [`LockedClocks::sm_mhz`] says what was measured.
///
/// The clocks are given back when the guard is dropped, by a panic as well, when the process ends by
/// return or `exit`, and when SIGHUP, SIGINT or SIGTERM ends it. For each of these three that has its
/// default disposition there is a handler while the guard lives, and a thread that sleeps until one
/// comes. While it gives them back a second signal changes nothing; one that comes a second later ends
/// the process at once. A handler of the program's, set before or after, is not overruled: then ending the process,
/// and giving the clocks back by one of the other ways, is up to the program. Not covered are SIGKILL,
/// `abort` and whatever else ends a process at once: after them `nvidia-smi -rgc` as root gives the
/// clocks back.
///
/// Where NVML does not answer within two seconds, a line on stderr says so, and nothing waits longer.
///
/// Giving back means the driver's default: a lock that was there before cannot be read and is lost.
///
/// # Errors
///
/// Without the feature `nvml`; without a driver, a device, or NVML; for a clock that the device does
/// not have; while another guard lives; and without permission, which NVIDIA gives to root only: the
/// error then says what to run as root instead.
pub fn lock_clocks(mhz: u32) -> Result<LockedClocks, ClockError> {
    match health::lock_clocks(mhz, arm) {
        Ok(clocks) => Ok(LockedClocks { clocks }),
        Err(message) => Err(ClockError { message }),
    }
}

/// Arms what gives the clocks back if the process ends while they are locked.
#[cfg(feature = "nvml")]
fn arm() -> Result<(), String> {
    exit::arm_for_clocks();
    signals::watch(exit::HANDLERS)
        .map_err(|error| format!("cannot install the signal handlers: {error}"))
}

#[cfg(not(feature = "nvml"))]
fn arm() -> Result<(), String> {
    Ok(())
}

/// Clocks that [`lock_clocks`] has fixed. Dropping it gives them back.
#[derive(Debug)]
#[must_use = "the clocks are given back when it is dropped"]
pub struct LockedClocks {
    /// Device and SM clock, measured after it was locked.
    clocks: Vec<(String, Option<u32>)>,
}

impl LockedClocks {
    /// The devices and the SM clock of each in MHz, measured after it was locked: `None` where the
    /// driver would not say.
    pub fn sm_mhz(&self) -> impl Iterator<Item = (&str, Option<u32>)> + '_ {
        self.clocks.iter().map(|(id, mhz)| (id.as_str(), *mhz))
    }
}

impl Drop for LockedClocks {
    fn drop(&mut self) {
        health::give_clocks_back();
    }
}

/// Why the clocks were not fixed, and what can be done. Nothing was changed.
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
