//! Where outcomes are written: the rows of one site at a time.

use std::ptr;

use crate::base::lock::MutexGuard;
use crate::record::series_counters::{SeriesRef, SeriesTable};
use crate::site::callsite::CallSite;
use crate::site::series_id::SeriesCell;
use crate::types::sample::{Lost, Sample};
use crate::types::workload::Workload;

/// The site whose rows are open for writing. Outcomes mostly come many of one site together, so its
/// lock is kept from one to the next.
#[derive(Default)]
pub(crate) struct Ledger {
    open: Option<(&'static CallSite, MutexGuard<'static, Vec<SeriesCell>>)>,
}

impl Ledger {
    /// Writes the outcome of a bracket or a call, which is in flight no more.
    #[inline]
    pub fn write(
        &mut self,
        rows: &mut SeriesTable,
        entry: SeriesRef,
        outcome: Result<Sample, Lost>,
        workload: Workload,
    ) {
        let Some(entry) = rows.end(entry, outcome.ok()) else { return };
        let at = entry.id.index();
        let Some(cell) = self.rows(entry.site).get_mut(at) else { return };
        match outcome {
            Ok(sample) => {
                cell.series.record(sample);
                if !workload.is_unknown() {
                    cell.series.record_work(sample, workload);
                }
            }
            Err(lost) => cell.series.lose(lost),
        }
    }

    #[inline]
    fn rows(&mut self, site: &'static CallSite) -> &mut Vec<SeriesCell> {
        if self.open.as_ref().is_none_or(|(open, _)| !ptr::eq(*open, site)) {
            // The old lock is given up before the next is taken.
            self.open = None;
        }
        let (_, rows) = self.open.get_or_insert_with(|| (site, site.series()));
        rows
    }
}
