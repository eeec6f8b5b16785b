//! The idle share of a device, from phases and from what recorded calls measured exactly.

use std::borrow::Cow;

use crate::coverage::FAR;
use crate::own_times::{OwnTime, sum};
use crate::units::percent;
use crate::{Coverage, Device, Node, Snapshot, Source, WindowsFrom};

/// The minimum share of the run for which functions ran that phases must have seen.
const NOTICEABLE: f64 = 0.01;

/// The reason why a share has no error.
pub const TOO_FEW: &str = " (too few phases)";

/// The share of the run for which a device was idle. Displayed as a percentage with its error.
pub struct Idle {
    pub share: f64,
    /// The standard error. `None` if there are too few phases.
    pub error: Option<f64>,
    /// Phases found more idle time than there can have been, so that the share is an upper bound.
    pub is_bound: bool,
    /// The merged reports that the share is of, unless it is of all.
    from: Option<WindowsFrom>,
}

impl Idle {
    /// Returns the idle share that these phases found, but no more than recorded calls leave room for. They kept the GPU
    /// busy for the share `recorded`.
    pub fn of(phases: &Coverage, from: Option<WindowsFrom>, recorded: f64) -> Idle {
        let (found, error) = (phases.idle, phases.idle_error);
        // Recorded calls of all processes do not tell about those with phases.
        let exact = if from.is_none() { recorded } else { 0.0 };
        let most = 1.0 - exact;
        let is_bound = found > most + FAR * error.unwrap_or(0.0);
        Idle { share: found.min(most), error, is_bound, from }
    }

    /// Returns the share in words, with its error.
    pub fn words(&self) -> String {
        let share = percent(self.share);
        match self.error {
            _ if self.is_bound => format!("at most {share}"),
            Some(error) => format!("{:.1} ±{:.1}%", 100.0 * self.share, 100.0 * error),
            None => format!("about {share}"),
        }
    }

    /// Returns, in parentheses, the reason why the share has no error, or the part of the reports that it is of.
    pub fn doubt(&self) -> Cow<'static, str> {
        match self.from {
            _ if self.error.is_none() && !self.is_bound => TOO_FEW.into(),
            Some(WindowsFrom { with, of }) => format!(" (in {with} of {of} reports)").into(),
            None => "".into(),
        }
    }
}

/// Returns `true` if the phases of a device saw no work of annotated functions, although these ran on it for long.
pub fn is_missed(device: &Device, times: &[OwnTime], wall_ns: f64) -> bool {
    device.known_coverage().is_some_and(|coverage| coverage.attributed <= 0.0)
        && sum(times) > NOTICEABLE * wall_ns
}

/// Returns the share of the run for which recorded calls are known to have kept the device busy. Calls
/// that were sampled do not count, nor does any if it is unknown how much of their work ran at once.
pub fn recorded_share(snapshot: &Snapshot, device: &Device, wall_ns: f64) -> f64 {
    let is_exact = |node: &&Node| {
        node.source == Source::Opened && node.self_error_ns == Some(0.0) && !node.upper_bound
    };
    let exact = snapshot.tree.iter().filter(is_exact);
    let is_only = snapshot.gpus().count() == 1;
    let sum_ns: f64 = exact
        .filter_map(|node| match node.self_ns_by_device.get(&device.id) {
            None if is_only => Some(node.self_ns),
            ns => ns.copied(),
        })
        .sum();
    let busy_ns = match device.overlap {
        Some(overlap) if overlap.partial => 0.0,
        Some(overlap) => sum_ns - overlap.ns,
        None => sum_ns,
    };
    (busy_ns / wall_ns).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{coverage, gpu, process};
    use crate::tree::fixtures::node;

    /// Returns a report of phases, and of one function that keeps the GPU busy for half of the run.
    fn report(windows: Coverage) -> Snapshot {
        let process = process(None);
        let gpu = Device { coverage: Some(windows), ..gpu() };
        let ns = 0.5 * process.wall_ns as f64;
        let self_ns_by_device = [(gpu.id.clone(), ns)].into();
        let node = Node { self_ns_by_device, ..node("decode", None, ns, ns) };
        Snapshot::new(process, vec![gpu], Vec::new()).with_tree(vec![node])
    }

    fn windows(idle: f64, error: Option<f64>) -> Coverage {
        let [busy_error, idle_error] = [error; 2];
        Coverage { busy: 1.0 - idle, busy_error, idle, idle_error, ..coverage() }
    }

    fn said(windows: Coverage) -> String {
        report(windows).analyzed(|report| report.lead.time.clone().unwrap())
    }

    fn warnings(windows: Coverage) -> usize {
        report(windows).to_string().matches("do not stand for the run").count()
    }

    #[test]
    fn idle_time_leaves_room_for_opened_calls() {
        let agreeing = windows(0.45, Some(0.01));
        assert_eq!(said(agreeing.clone()), "The GPU was idle 45.0 ±1.0% of the time.");
        let close = windows(0.52, Some(0.01));
        assert_eq!(said(close.clone()), "The GPU was idle 50.0 ±1.0% of the time.");
        let far = windows(0.95, Some(0.01));
        assert_eq!(said(far.clone()), "The GPU was idle at most 50.0% of the time.");
        assert_eq!([agreeing, close, far].map(warnings), [0, 0, 1]);
    }

    #[test]
    fn sampled_or_overlapping_calls_leave_room() {
        let mut snapshot = report(windows(0.95, Some(0.01)));
        snapshot.tree[0].self_error_ns = Some(1.0);
        let recorded = |snapshot: &Snapshot| snapshot.analyzed(|report| report.gpus[0].recorded);
        assert_eq!(recorded(&snapshot), 0.0);
        snapshot.tree[0].self_error_ns = Some(0.0);
        let ns = 0.1 * snapshot.process.wall_ns as f64;
        for (partial, share) in [(false, 0.4), (true, 0.0)] {
            snapshot.devices[0].overlap = Some(crate::Overlap { ns, partial });
            assert!((recorded(&snapshot) - share).abs() < 1e-9);
        }
    }

    #[test]
    fn incomplete_windows_tell_nothing() {
        let none = Coverage { windows: 0, missed: 2, kernels: vec![], ..windows(1.0, None) };
        assert_eq!(said(none.clone()), "Timed functions account for 50.0% of the run.");
        let table = report(none).to_string();
        let line = "  no phase is complete: 1 incomplete, 2 missed\n";
        assert!(table.contains(line) && !table.contains("idle 100"), "{table}");
    }

    #[test]
    fn few_windows_tell_about() {
        assert_eq!(
            said(windows(0.45, None)),
            "The GPU was idle about 45.0% of the time (too few phases)."
        );
        assert_eq!(said(windows(0.9, None)), "The GPU was idle at most 50.0% of the time.");
    }

    /// The calls may have been those of the other process.
    #[test]
    fn opened_calls_do_not_limit_windows_of_some_reports() {
        let mut snapshot = report(windows(0.9, Some(0.01)));
        snapshot.devices[0].windows_from = Some(WindowsFrom { with: 1, of: 2 });
        let expected = "The GPU was idle 90.0 ±1.0% of the time (in 1 of 2 reports).";
        assert_eq!(snapshot.analyzed(|report| report.lead.time.clone().unwrap()), expected);
    }

    /// The process used the GPU only in the last fifth of its run.
    #[test]
    fn windows_of_a_part_of_the_run_say_so() {
        let covered_ns = 0.2 * process(None).wall_ns as f64;
        let table = report(Coverage { covered_ns, ..windows(0.5, Some(0.01)) }).to_string();
        let shares = "busy 50.0 ±1.0%, idle 50.0 ±1.0%, annotated functions 35.0 ±0.4% of the time since the GPU's first use (";
        assert!(table.contains(shares), "{table}");
    }

    #[test]
    fn windows_that_saw_no_function_tell_nothing() {
        let blind = Coverage { attributed: 0.0, ..windows(1.0, None) };
        assert_eq!(said(blind.clone()), "Timed functions account for 50.0% of the run.");
        let table = report(blind).to_string();
        let line = "  40 phases of 800.0 ms in total saw no work of annotated functions\n";
        assert!(table.contains(line) && !table.contains("idle 100"), "{table}");
    }
}
