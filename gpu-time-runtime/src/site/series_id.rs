//! A row of the report: what tells it apart from others of its site, and what is kept of it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::stats::series::SeriesData;
use crate::types::attribute::{Clock, ScopeKind};
use crate::types::device::DeviceId;
use crate::types::key::SeriesKey;
use crate::types::sample::{CacheState, Measure};

/// One row of the report: what is kept of a site per launch, device, cache state, key and clock, in
/// streams or in graphs.
///
/// Rows are made once and live as long as the process, so that lanes may point at them.
pub(crate) struct SeriesId {
    pub launch: Option<u32>,
    pub device: DeviceId,
    pub cache: CacheState,
    pub key: SeriesKey,
    pub clock: Clock,
    /// Its launches are nodes of graphs.
    pub graph: bool,
    pub(super) index: usize,
    /// Whether a sampled call gave several of its samples.
    pub(super) repeats: AtomicBool,
}

impl SeriesId {
    /// What its times are the times of.
    pub fn measure(&self, scope: ScopeKind) -> Measure {
        match (self.launch, scope) {
            (Some(_), _) => Measure::Launch,
            (None, ScopeKind::Launches) if self.device != DeviceId::Host => Measure::Sum,
            (None, _) => Measure::Span,
        }
    }

    /// A sampled call makes its launch once more: its samples were not drawn each by itself.
    #[cold]
    pub fn repeat(&self) {
        self.repeats.store(true, Relaxed);
    }

    /// Whether one did.
    pub fn repeats(&self) -> bool {
        self.repeats.load(Relaxed)
    }

    /// Its place among the site's rows.
    pub fn index(&self) -> usize {
        self.index
    }
}

/// A row with what is kept of it.
pub(crate) struct SeriesCell {
    pub id: &'static SeriesId,
    pub series: SeriesData,
}
