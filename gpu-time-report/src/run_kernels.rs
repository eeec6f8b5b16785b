//! The kernels of the whole run, of all functions and of the work that is not annotated, as phases tell.

use crate::gpu_time::GpuTime;
use crate::largest::sort_by_largest;
use crate::marks::{Mark, Printed};
use crate::units::{self, percent};
use crate::{Coverage, PhaseKernel};

/// All kernels with one name, either those of annotated functions or all others.
pub struct RunKernel {
    pub name: String,
    pub annotated: bool,
    pub calls: f64,
    pub total_ns: f64,
    /// `None` if several devices, or several of the merged reports, have the kernel.
    pub median_ns: Option<f64>,
    /// The share of the time for which the GPUs were busy.
    pub share: f64,
    /// The number of calls and the total are estimates, because not everything was recorded.
    pub is_estimate: bool,
}

impl RunKernel {
    /// Returns the kernels of all devices whose phases tell about the run, largest total first. Those of some of several
    /// merged reports say nothing about the others.
    pub fn all(gpus: &[GpuTime]) -> Vec<RunKernel> {
        let (mut all, mut wall_ns, mut is_estimate) = (None::<Coverage>, 0.0, false);
        for (gpu, phases) in gpus.iter().filter_map(|gpu| Some((gpu, gpu.phases_of_all()?))) {
            is_estimate |= !phases.is_whole_run();
            // What is recorded stands for itself, or for all of the time.
            let ns = phases.stands_for_ns(gpu.in_use_ns);
            all = Some(all.map_or_else(|| phases.clone(), |all| all.pooled(phases, [wall_ns, ns])));
            wall_ns += ns;
        }
        let Some(Coverage { busy, mut kernels, .. }) = all else { return Vec::new() };
        sort_by_largest(&mut kernels, |kernel| kernel.share);
        let busy_ns = busy * wall_ns;
        let kernel = |PhaseKernel { name, annotated, share, per_s, median_ns, .. }| RunKernel {
            name,
            annotated,
            calls: per_s * wall_ns / 1e9,
            total_ns: share * busy_ns,
            median_ns,
            share,
            is_estimate,
        };
        kernels.into_iter().map(kernel).collect()
    }

    /// The names of the [figures](Self::figures).
    pub const TITLES: [&'static str; 4] = ["share", "total", "calls", "median"];

    /// Returns the share of the busy time, the total, the number of calls and the median as text.
    pub fn figures(&self, printed: &Printed) -> [String; 4] {
        let estimate = printed.mark(self.is_estimate, Mark::Estimate);
        [
            percent(self.share),
            format!("{estimate}{}", units::time(self.total_ns)),
            format!("{estimate}{}", units::grouped(&format!("{:.0}", self.calls))),
            self.median_ns.map_or_else(|| units::NOTHING.to_owned(), units::time),
        ]
    }

    /// Returns what follows the name.
    pub fn remark(&self) -> &'static str {
        if self.annotated { "" } else { "(not annotated)" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{coverage, gpu, process};
    use crate::{Analysis, Coverage, Device, Snapshot, WindowsFrom};

    /// Returns the only kernel of a report, if it has any.
    fn only(phases: Coverage, windows_from: Option<WindowsFrom>) -> Option<(f64, f64, bool)> {
        let kernel = PhaseKernel { share: 1.0, per_s: 100.0, ..PhaseKernel::default() };
        let phases = Coverage { busy: 0.5, kernels: vec![kernel], ..phases };
        let gpu = Device { coverage: Some(phases), windows_from, ..gpu() };
        let report = Snapshot::new(process(None), vec![gpu], Vec::new());
        let found = Analysis::of(&report).kernels;
        found.first().map(|kernel| (kernel.calls, kernel.total_ns, kernel.is_estimate))
    }

    #[test]
    fn what_is_recorded_throughout_is_exact() {
        let [run_ns, total_ns] = [1.0, 0.98].map(|share| share * process(None).wall_ns as f64);
        let whole = Coverage { total_ns, covered_ns: run_ns, incomplete: 0, ..coverage() };
        assert_eq!(only(whole.clone(), None), Some((total_ns / 1e7, 0.5 * total_ns, false)));
        let part = Coverage { total_ns: 0.1 * run_ns, ..whole };
        assert_eq!(only(part, None), Some((run_ns / 1e7, 0.5 * run_ns, true)));
    }

    #[test]
    fn phases_of_some_reports_tell_nothing_of_the_others() {
        assert!(only(coverage(), None).is_some());
        assert_eq!(only(coverage(), Some(WindowsFrom { with: 1, of: 2 })), None);
    }

    /// Two GPUs are busy for half of the run each. The kernel takes half of that on the one, and a quarter on the other.
    #[test]
    fn kernels_of_several_devices_are_added() {
        let device = |id: &str, share| {
            let kernel = PhaseKernel {
                name: "gemm".to_owned(),
                annotated: true,
                share,
                per_s: 1e3,
                median_ns: Some(5e3),
                ..PhaseKernel::default()
            };
            let (id, busy, kernels) = (id.to_owned(), 0.5, vec![kernel]);
            Device { id, coverage: Some(Coverage { busy, kernels, ..coverage() }), ..gpu() }
        };
        let report = |devices| Snapshot::new(process(None), devices, Vec::new());
        let (one, both) = (
            report(vec![device("cuda:0", 0.5)]),
            report(vec![device("cuda:0", 0.5), device("cuda:1", 0.25)]),
        );
        let run_s = process(None).wall_ns as f64 / 1e9;
        for (report, calls, share, median_ns) in
            [(&one, 1e3, 0.5, Some(5e3)), (&both, 2e3, 0.375, None)]
        {
            let kernels = Analysis::of(report).kernels;
            let [kernel] = &kernels[..] else { panic!("{} kernels", kernels.len()) };
            assert!((kernel.calls - calls * run_s).abs() < 1e-6);
            assert!((kernel.share - share).abs() < 1e-9);
            assert_eq!((kernel.median_ns, kernel.is_estimate), (median_ns, true));
        }
    }
}
