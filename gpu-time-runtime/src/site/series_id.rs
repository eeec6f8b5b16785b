//! The identity of a series, and its data.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::stats::series::SeriesData;
use crate::types::attribute::{Clock, ScopeKind};
use crate::types::sample::{CacheState, Measure};
use crate::types::{device::DeviceId, key::SeriesKey};

/// The properties that tell the series of one site apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SeriesIdentity {
    /// The launch, or `None` for the function.
    pub launch: Option<u32>,
    pub device: DeviceId,
    pub cache: CacheState,
    pub key: SeriesKey,
    /// The launches are nodes of graphs.
    pub graph: bool,
}

impl SeriesIdentity {
    /// The series of the function itself, in streams.
    pub fn function(device: DeviceId, cache: CacheState, key: SeriesKey) -> Self {
        SeriesIdentity { launch: None, device, cache, key, graph: false }
    }
}

/// A series of a site, with what else is known about it.
///
/// Each is created once and never freed, so recorders may hold references.
pub(crate) struct SeriesId {
    identity: SeriesIdentity,
    pub clock: Clock,
    index: usize,
    /// `true` once a sampled call has given several of the samples.
    repeats: AtomicBool,
}

impl Deref for SeriesId {
    type Target = SeriesIdentity;

    fn deref(&self) -> &SeriesIdentity {
        &self.identity
    }
}

impl SeriesId {
    pub(super) fn new(identity: SeriesIdentity, clock: Clock, index: usize) -> Self {
        SeriesId { identity, clock, index, repeats: AtomicBool::new(false) }
    }

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
