//! Where outcomes are written: the series of one site at a time.

use std::ptr;
use std::sync::MutexGuard;

use crate::rows::{EntryRef, Rows};
use crate::sample::{Lost, Sample};
use crate::site::{CallSite, Kept};

/// The series that are open for writing. Outcomes mostly come many of one site together, so its lock
/// is kept from one to the next.
#[derive(Default)]
pub(crate) struct Ledger {
    open: Option<(&'static CallSite, MutexGuard<'static, Vec<Kept>>)>,
}

impl Ledger {
    /// Writes the outcome of a bracket or a call of the site, which is in flight no more.
    pub fn write(
        &mut self,
        rows: &mut Rows,
        site: &'static CallSite,
        entry: EntryRef,
        outcome: Result<Sample, Lost>,
    ) {
        let Some(row) = rows.end(entry, outcome.ok()) else { return };
        if !self.open.as_ref().is_some_and(|(open, _)| ptr::eq(*open, site)) {
            // The old lock is given up before the next is taken.
            self.open = None;
        }
        let (_, rows) = self.open.get_or_insert_with(|| (site, site.rows()));
        let Some(kept) = rows.get_mut(row.index()) else { return };
        match outcome {
            Ok(sample) => kept.series.record(sample),
            Err(lost) => kept.series.lose(lost),
        }
    }
}
