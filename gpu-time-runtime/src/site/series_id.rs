//! The identity of a series, and its data.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::stats::series::SeriesData;
use crate::types::attribute::{Clock, ScopeKind};
use crate::types::device::DeviceId;
use crate::types::key::SeriesKey;
use crate::types::sample::{CacheState, Measure};

/// Identifies a series of a site: launch, device, cache state, key, clock, and stream or graph.
///
/// Each is created once and never freed, so recorders may hold references.
pub(crate) struct SeriesId {
    pub launch: Option<u32>,
    pub device: DeviceId,
    pub cache: CacheState,
    pub key: SeriesKey,
    pub clock: Clock,
    /// The launches are nodes of graphs.
    pub graph: bool,
    pub(super) index: usize,
    /// `true` once a sampled call has given several of the samples.
    pub(super) repeats: AtomicBool,
}

impl SeriesId {
    /// Returns what the series measures.
    pub fn measure(&self, scope: ScopeKind) -> Measure {
        match (self.launch, scope) {
            (Some(_), _) => Measure::Launch,
            (None, ScopeKind::Launches) if self.device != DeviceId::Host => Measure::Sum,
            (None, _) => Measure::Span,
        }
    }

    /// Marks that one sampled call made this launch several times, so its samples are not
    /// independent.
    #[cold]
    pub fn repeat(&self) {
        self.repeats.store(true, Relaxed);
    }

    /// Returns `true` if one sampled call made this launch several times.
    pub fn repeats(&self) -> bool {
        self.repeats.load(Relaxed)
    }

    /// Returns the index among the site's series.
    pub fn index(&self) -> usize {
        self.index
    }
}

/// A series: its identity and data.
pub(crate) struct SeriesCell {
    pub id: &'static SeriesId,
    pub series: SeriesData,
}
