//! The share of intervals of `until_stable` and `compare` that contain the truth, for simulated times with fixed seeds
//! and no clock. `interval_tests/results.md` has the tables and the command that prints them.

mod intervals;
mod source;
mod totals;
mod until_stable;

/// Returns the number of repetitions: `count` times `GPU_TIME_TEST_REPETITIONS`, by default 3.
fn repetitions(count: u64) -> u64 {
    let factor = std::env::var("GPU_TIME_TEST_REPETITIONS").ok();
    count * factor.map_or(3, |factor| factor.parse().expect("a whole number"))
}

/// A share of repetitions.
#[derive(Clone, Copy, Default)]
struct Share {
    held: u64,
    of: u64,
}

impl Share {
    fn count(&mut self, held: bool) {
        self.held += u64::from(held);
        self.of += 1;
    }

    fn percent(self) -> f64 {
        100.0 * self.held as f64 / self.of as f64
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.of == 0 { f.pad("–") } else { f.pad(&format!("{:.1} %", self.percent())) }
    }
}
