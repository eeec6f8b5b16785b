//! The GPU time during which work of several opened calls ran at once.

use std::collections::BTreeMap;

use crate::base::lock::{Mutex, Rank, locked};
use crate::stats::overlap::{CallWork, WorkOverlap};
use gpu_time_report as report;

/// The overlap on each device, by its ordinal.
static OVERLAPS: Mutex<BTreeMap<u32, WorkOverlap>> = Mutex::new(Rank::Overlaps, BTreeMap::new());

/// Adds the work of one call on each device. `is_sampled` means that the call also represents others.
pub(super) fn add(call: &BTreeMap<u32, CallWork>, is_sampled: bool) {
    let mut overlaps = locked(&OVERLAPS);
    for (device, work) in call {
        overlaps.entry(*device).or_default().add(work, is_sampled);
    }
}

/// Returns the overlap on a device, or `None` if there was certainly none.
pub(crate) fn report(device: u32) -> Option<report::Overlap> {
    locked(&OVERLAPS).get(&device)?.report()
}
