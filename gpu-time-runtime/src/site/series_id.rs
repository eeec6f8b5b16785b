//! The identity of a series, and the series' data.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::stats::series::SeriesData;
use crate::types::attribute::{Clock, ScopeKind};
use crate::types::sample::{CacheState, Measure};
use crate::types::{device::DeviceId, key::SeriesKey};

/// The properties that distinguish the series of one site.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SeriesIdentity {
    /// The launch, or `None` for the whole function.
    pub launch: Option<u32>,
    pub device: DeviceId,
    pub cache: CacheState,
    pub key: SeriesKey,
    /// The launches are graph nodes.
    pub graph: bool,
    /// The function has the `kernels` clock, but these calls are timed by events, on the default
    /// stream.
    pub on_default: bool,
}

impl SeriesIdentity {
    /// Returns the identity for the function's own series, outside graphs.
    pub fn function(device: DeviceId, cache: CacheState, key: SeriesKey) -> Self {
        SeriesIdentity { launch: None, device, cache, key, graph: false, on_default: false }
    }
}

/// A series of a site: its identity and its other properties.
///
/// Each one is created once and never freed, so recorders may keep references to it.
pub(crate) struct SeriesId {
    identity: SeriesIdentity,
    pub clock: Clock,
    index: usize,
    /// Set once a single sampled call has given several of the samples.
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

    /// Returns the kind of time that the series contains.
    pub fn measure(&self, scope: ScopeKind) -> Measure {
        match (self.launch, scope) {
            (Some(_), _) => Measure::Launch,
            (None, ScopeKind::Launches) if self.device != DeviceId::Host => Measure::Sum,
            (None, _) => Measure::Span,
        }
    }

    /// Marks that one sampled call has given several of the samples, so they are not independent: it made this launch
    /// several times.
    #[cold]
    pub fn repeat(&self) {
        self.repeats.store(true, Relaxed);
    }

    /// Returns `true` if one sampled call has given several of the samples.
    pub fn repeats(&self) -> bool {
        self.repeats.load(Relaxed)
    }

    /// Returns the index of this series within its site.
    pub fn index(&self) -> usize {
        self.index
    }
}

/// A series: its identity and data.
pub(crate) struct SeriesCell {
    pub id: &'static SeriesId,
    pub series: SeriesData,
}
