//! What belongs to the whole process: its rights, descriptors and signals.

use gpu_time::gpu_timed;

use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[("process/secure", secure)];

#[gpu_timed(clock = "host")]
fn timed() {
    ran!();
}

/// The test gives the program's file the right to run as another user.
fn secure(_: &[String]) {
    timed();
    // SAFETY: reads a value that the kernel passed to the program.
    tally::fact("is_secure", unsafe { libc::getauxval(libc::AT_SECURE) } != 0);
    tally::print();
}
