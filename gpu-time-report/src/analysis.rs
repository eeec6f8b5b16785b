//! What the figures of a report say together. All renderings of a report read one analysis.

use crate::busy_time::BusyTime;
use crate::idle::Idle;
use crate::in_use::{InUse, all_windows};
use crate::lead::Lead;
use crate::own_times::{self, OwnTime, Rows, Shares};
use crate::run_kernels::RunKernel;
use crate::{Coverage, Device, Snapshot, idle, tree};

/// The answers to the questions that more than one rendering asks.
#[doc(hidden)]
pub struct Analysis<'a> {
    /// The report, in which no two functions have the same name.
    pub(crate) snapshot: &'a Snapshot,
    /// The functions' own GPU times on all devices, longest first.
    pub(crate) own: Vec<OwnTime<'a>>,
    pub(crate) shares: Shares<'a>,
    pub(crate) gpus: Vec<GpuTime<'a>>,
    /// The kernels of the run, largest total first. Empty without phases.
    pub(crate) kernels: Vec<RunKernel<'a>>,
    /// For each path of the tree, `true` if its total contains an upper bound.
    pub(crate) bounded_totals: Vec<bool>,
    pub(crate) lead: Lead<'a>,
}

/// What a GPU did with its time.
pub struct GpuTime<'a> {
    pub device: &'a Device,
    pub in_use: InUse,
    /// The time for which functions kept it busy. It has no times if no function ran on the GPU.
    pub busy: BusyTime<'a>,
    /// `None` without phases that tell it.
    pub idle: Option<Idle>,
    /// The share of the run for which recorded calls are known to have kept it busy.
    pub recorded: f64,
    /// The phases saw no work of annotated functions, although functions ran for long. Nothing that they found stands
    /// for the run then.
    pub is_missed: bool,
}

impl<'a> Analysis<'a> {
    /// Analyses a report in which no two functions have the same name.
    pub(crate) fn of(snapshot: &'a Snapshot) -> Analysis<'a> {
        #[cfg(test)]
        tests::COUNT.set(tests::COUNT.get() + 1);
        let rows = own_times::rows(snapshot, None);
        let own = own_times::of(snapshot, None, &rows);
        let gpus: Vec<_> = snapshot.gpus().map(|gpu| GpuTime::of(snapshot, gpu, &rows)).collect();
        let shares = Shares::of(snapshot, &own, &rows, &gpus);
        let kernels = RunKernel::all(&gpus);
        let bounded_totals = tree::bounded_totals(&snapshot.tree);
        let lead = Lead::default();
        let mut analysis = Analysis { snapshot, own, shares, gpus, kernels, bounded_totals, lead };
        analysis.lead = Lead::of(&analysis);
        analysis
    }

    /// Returns what a device did with its time. `None` for the host.
    pub(crate) fn gpu(&self, device: &Device) -> Option<&GpuTime<'a>> {
        self.gpus.iter().find(|gpu| std::ptr::eq(gpu.device, device))
    }
}

impl Snapshot {
    /// Calls `render` with the analysis of the report, which all of its renderings share.
    #[doc(hidden)]
    pub fn analyzed<R>(&self, render: impl FnOnce(&Analysis) -> R) -> R {
        render(&Analysis::of(&self.with_unique_names()))
    }
}

impl<'a> GpuTime<'a> {
    fn of(snapshot: &'a Snapshot, device: &'a Device, rows: &Rows<'a>) -> GpuTime<'a> {
        let in_use = InUse::of(&snapshot.process, device);
        let times = own_times::of(snapshot, Some(&device.id), rows);
        let is_missed = idle::is_missed(device, &times, in_use.ns);
        let windows = all_windows(device).filter(|_| !is_missed);
        let busy = BusyTime::of(device, times, in_use.ns, windows);
        let recorded = idle::recorded_share(snapshot, device, in_use.ns);
        let mut gpu = GpuTime { device, in_use, busy, idle: None, recorded, is_missed };
        gpu.idle = Idle::of(&gpu);
        gpu
    }

    /// Returns the phases, if they tell how idle the GPU was.
    pub fn phases(&self) -> Option<&'a Coverage> {
        self.device.known_coverage().filter(|_| !self.is_missed)
    }

    /// Does the same, except where some of the merged reports with the GPU have no phases: those of the others say
    /// nothing about these.
    #[cfg(feature = "html")]
    pub fn phases_of_all(&self) -> Option<&'a Coverage> {
        all_windows(self.device).filter(|_| !self.is_missed)
    }

    /// Returns the time for which functions kept it busy, if any ran on it.
    pub fn known_busy(&self) -> Option<&BusyTime<'a>> {
        Some(&self.busy).filter(|busy| !busy.times.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use crate::fixtures::everything;
    use crate::{Detail, Terminal};

    thread_local! {
        pub(super) static COUNT: Cell<u32> = const { Cell::new(0) };
    }

    #[test]
    fn report_is_analyzed_once_for_all_renderings() {
        let before = COUNT.get();
        everything().analyzed(|report| {
            for detail in Detail::ALL {
                report.table(Terminal::default(), detail);
            }
            #[cfg(feature = "html")]
            report.html();
        });
        assert_eq!(COUNT.get() - before, 1);
    }
}
