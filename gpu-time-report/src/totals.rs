//! The times that shares are of.

use std::collections::HashMap;

use crate::{Clock, Measure, Series, Snapshot};

/// The total time, in nanoseconds, of all functions on each device: GPU time, or by each other clock.
pub struct Totals<'a>(HashMap<(&'a str, Option<Clock>), f64>);

impl<'a> Totals<'a> {
    pub fn of(snapshot: &'a Snapshot) -> Totals<'a> {
        let mut totals = HashMap::new();
        for series in snapshot.all_series().filter(|series| series.measure != Measure::Launch) {
            let ns = series.own_total().unwrap_or(0.0);
            *totals.entry(of(series)).or_default() += ns;
        }
        Totals(totals)
    }

    /// Returns the total that this series is a part of.
    pub fn beside(&self, series: &Series) -> f64 {
        self.0.get(&of(series)).copied().unwrap_or(0.0)
    }
}

/// Returns the device of a series, and its clock unless that is the GPU's.
fn of(series: &Series) -> (&str, Option<Clock>) {
    (&series.device, (!series.is_gpu_time()).then_some(series.clock))
}
