//! The time for which annotated functions kept a device busy.

use crate::own_times::{OwnTime, sum};
use crate::units::percent;
use crate::{Coverage, Device, Overlap};

/// The time during which a device ran work of annotated functions.
#[derive(Debug)]
pub struct BusyTime<'a> {
    pub ns: f64,
    /// The share of the time for which the device was in use.
    pub share: f64,
    /// The time is an upper bound.
    pub is_bound: bool,
    /// No part of any function's time is more than an upper bound.
    pub is_all_bound: bool,
    /// An unknown part of the work ran at the same time as other work.
    pub is_partial: bool,
    /// The functions' own times on the device, longest first.
    pub times: Vec<OwnTime<'a>>,
}

/// The minimum share that reads as all of the run.
const WHOLE: f64 = 0.9995;

impl<'a> BusyTime<'a> {
    /// Returns the busy time of a device with these own times: the sum of its functions' own times without the overlap,
    /// but not more than the wall time. The part of it that is an upper bound is not more than
    /// phases found of functions beside the rest.
    pub fn of(
        device: &Device,
        times: Vec<OwnTime<'a>>,
        wall_ns: f64,
        phases: Option<&Coverage>,
    ) -> BusyTime<'a> {
        let overlap = device.overlap.unwrap_or(Overlap { ns: 0.0, partial: false });
        let ns = (sum(&times) - overlap.ns).max(0.0);
        // Events do not show how much work ran at once, but a sum above the wall time shows that some did.
        let is_partial = overlap.partial || ns > wall_ns;
        let is_bound = is_partial || times.iter().any(OwnTime::is_bound);
        // Times by events may include pauses, but phases know how busy functions kept the GPU.
        let coverage = phases.filter(|_| is_bound);
        let most_ns = coverage.map_or(wall_ns, |coverage| {
            let known_ns = times.iter().map(OwnTime::known_ns).sum::<f64>() - overlap.ns;
            let found_ns = coverage.attributed * wall_ns;
            if is_partial { found_ns } else { known_ns.max(found_ns) }
        });
        let ns = ns.min(most_ns).min(wall_ns);
        let is_all_bound = !times.iter().any(|time| time.is_partly_known);
        BusyTime { ns, share: ns / wall_ns, is_bound, is_all_bound, is_partial, times }
    }

    /// Returns `true` if functions account for all of the run, so that nothing is left.
    pub fn is_whole(&self) -> bool {
        self.share >= WHOLE
    }

    /// Returns the share of a device's time as a sentence. `of` says what it is a share of.
    pub fn sentence(&self, of: &str) -> String {
        let share = percent(self.share);
        if self.is_all_bound {
            return format!(
                "At most {share} busy: the GPU may have waited for the CPU in every call."
            );
        }
        if self.is_bound && self.is_whole() {
            let why = match self.is_partial {
                true => "it is unknown how much of their work ran at once",
                false => "the GPU may have waited for the CPU in some calls",
            };
            return format!("Timed functions may account for all of {of}: {why}.");
        }
        let at_most = if self.is_bound { "at most " } else { "" };
        format!("Timed functions account for {at_most}{share} of {of}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{coverage, gpu, process};
    use crate::tree::fixtures::node;
    use crate::{Node, Snapshot};

    /// Phases found other work as well.
    #[test]
    fn bounds_are_not_above_what_windows_found_of_functions() {
        let process = process(None);
        let run_ns = process.wall_ns as f64;
        let windows = Coverage { busy: 0.25, idle: 0.75, attributed: 0.2, ..coverage() };
        let gpu = Device { coverage: Some(windows), ..gpu() };
        let bound = Node { upper_bound: true, ..node("f", None, 0.4 * run_ns, 0.4 * run_ns) };
        let snapshot = Snapshot::new(process, vec![gpu], Vec::new()).with_tree(vec![bound]);
        snapshot.analyzed(|report| {
            let busy = &report.gpus[0].busy;
            assert!(busy.is_bound && (busy.ns - 0.2 * run_ns).abs() < 1.0, "{busy:?}");
        });
    }

    #[test]
    fn bounds_are_not_below_what_is_known() {
        let process = process(None);
        let run_ns = process.wall_ns as f64;
        let windows = Coverage { busy: 0.2, idle: 0.8, attributed: 0.1, ..coverage() };
        let blind = Coverage { attributed: 0.0, ..windows.clone() };
        for (windows, expected) in [(windows, 0.5), (blind, 0.9)] {
            let gpu = Device { coverage: Some(windows), ..gpu() };
            let bound =
                Node { upper_bound: true, ..node("held", None, 0.4 * run_ns, 0.4 * run_ns) };
            let known = node("opened", None, 0.5 * run_ns, 0.5 * run_ns);
            let snapshot = Snapshot::new(process.clone(), vec![gpu], Vec::new());
            let snapshot = snapshot.with_tree(vec![bound, known]);
            let share = snapshot.analyzed(|report| report.gpus[0].busy.share);
            assert!((share - expected).abs() < 1e-9, "{share}");
        }
    }
}
