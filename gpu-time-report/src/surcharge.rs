//! The surcharge: the host time that CUPTI adds to every launch of a process once it has recorded.

/// CUPTI's version in CUDA 13.0, the first that can stop recording while the program runs.
const FIRST_THAT_STOPS: u32 = 130_000;

/// Returns the surcharge of a launch in nanoseconds, with a version of CUPTI as returned by `cuptiGetVersion`. It is that
/// of programs that use CUPTI alone on an H200, from `gpu/cupti.md`.
pub fn launch_ns(cupti_version: u32) -> f64 {
    if records_until_exit(cupti_version) { 1_600.0 } else { 400.0 }
}

/// Returns `true` if a version of CUPTI cannot stop recording while the program runs.
pub fn records_until_exit(cupti_version: u32) -> bool {
    cupti_version < FIRST_THAT_STOPS
}
