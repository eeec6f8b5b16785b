//! What the figures of a report say together. All renderings of a report read one analysis.

#[cfg(debug_assertions)]
use std::cell::Cell;

use crate::gpu_time::GpuTime;
use crate::lead::{Figures, Lead};
use crate::own_times::{self, OwnTime, Shares};
use crate::run_kernels::RunKernel;
use crate::{Device, Snapshot, tree};

#[cfg(debug_assertions)]
thread_local! {
    /// The number of analyses on this thread, for tests.
    #[doc(hidden)]
    pub static ANALYSES: Cell<u32> = const { Cell::new(0) };
}

/// The answers to the questions that more than one rendering asks.
#[doc(hidden)]
pub struct Analysis<'a> {
    /// The report, in which no two functions have the same name.
    pub(crate) snapshot: &'a Snapshot,
    /// The functions' own GPU times on all devices, longest first.
    #[cfg_attr(
        not(any(feature = "html", test)),
        expect(dead_code, reason = "only the page has colours by it")
    )]
    pub(crate) own: Vec<OwnTime<'a>>,
    pub(crate) shares: Shares<'a>,
    pub(crate) gpus: Vec<GpuTime<'a>>,
    /// The kernels of the run, largest total first. Empty without phases.
    pub(crate) kernels: Vec<RunKernel>,
    /// For each path of the tree, `true` if its total contains an upper bound.
    pub(crate) bounded_totals: Vec<bool>,
    pub(crate) lead: Lead<'a>,
}

impl<'a> Analysis<'a> {
    /// Analyses a report in which no two functions have the same name.
    pub(crate) fn of(snapshot: &'a Snapshot) -> Analysis<'a> {
        #[cfg(debug_assertions)]
        ANALYSES.set(ANALYSES.get() + 1);
        let rows = own_times::rows(snapshot, None);
        let own = own_times::of(snapshot, None, &rows);
        let gpus: Vec<_> = snapshot.gpus().map(|gpu| GpuTime::of(snapshot, gpu, &rows)).collect();
        let is_partial = gpus.iter().any(GpuTime::is_without_phases);
        let shares = Shares::of(snapshot, &own, is_partial);
        let kernels = RunKernel::all(&gpus);
        let bounded_totals = tree::any_inside(&snapshot.tree, |node| node.upper_bound);
        let lead = Lead::of(&Figures::of(snapshot, &own, &shares, &gpus));
        Analysis { snapshot, own, shares, gpus, kernels, bounded_totals, lead }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::everything;
    use crate::{Detail, Series, Terminal};

    #[test]
    fn report_is_analyzed_once_for_all_renderings() {
        let (before, everything) = (ANALYSES.get(), everything());
        everything.analyzed(|report| {
            for detail in Detail::ALL {
                report.table(Terminal::default(), detail);
            }
            report.csv(&everything);
            #[cfg(feature = "html")]
            report.html();
        });
        assert_eq!(ANALYSES.get() - before, 1);
    }

    #[test]
    fn names_of_functions_decide_nothing() {
        let answers = |snapshot: &Snapshot| {
            let Analysis { own, shares, lead, bounded_totals, .. } = Analysis::of(snapshot);
            let mut own: Vec<_> = own.iter().map(|time| (time.owner, time.ns)).collect();
            own.sort_by_key(|(owner, _)| *owner);
            let sites = snapshot.sites.iter().enumerate();
            let share = |at, series: &Series| shares.of_row(at, series).map(|share| share.value);
            let of_site = |(at, site): (usize, &crate::Site)| -> Vec<_> {
                site.series.iter().map(|series| share(at, series)).collect()
            };
            let of_rows: Vec<_> = sites.map(of_site).collect();
            (own, of_rows, lead.first.map(|first| first.site), bounded_totals)
        };
        let mut renamed = everything();
        let expected = answers(&renamed);
        assert!(expected.0.len() > 2, "{expected:?}");
        renamed.sites.iter_mut().for_each(|site| site.name = "f".to_owned());
        renamed.tree.iter_mut().for_each(|node| node.name = "f".to_owned());
        assert_eq!(answers(&renamed), expected);
    }
}
