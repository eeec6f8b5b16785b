//! The rows that one lane has touched, with what the lane counts of each.

use crate::site::callsite::CallSite;
use crate::site::series_id::SeriesId;
use crate::types::device::DeviceId;
use crate::types::key::SeriesKey;
use crate::types::sample::{CacheState, Sample};

/// A row as one lane sees it.
pub(crate) struct SeriesCounters {
    pub site: &'static CallSite,
    pub id: &'static SeriesId,
    /// Brackets begun (calls, for a sum).
    pub timed: u64,
    /// Of these, the ones neither measured nor lost yet.
    pub in_flight: u64,
    /// Whether its brackets last so long that the host's own time may prove them fed.
    is_long: bool,
}

/// From here on a host that takes a few microseconds to enqueue a bracket takes under 1 % of it.
const LONG_NS: f64 = 200_000.0;

/// Where a lane keeps an entry.
///
/// Invariant: made by [`SeriesTable::begin`], valid for that lane for ever, because entries are never removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeriesRef(u32);

/// Every entry, and by the id of each site the words that tell its own apart. A site has few: one for
/// the function and one for each launch, on each device, in each cache state and for each key.
#[derive(Default)]
pub(crate) struct SeriesTable {
    entries: Vec<SeriesCounters>,
    sites: Vec<Vec<(u64, SeriesRef)>>,
}

impl SeriesTable {
    /// Counts one more bracket of the row, which is in flight from now on.
    #[inline]
    pub fn begin(
        &mut self,
        site: &'static CallSite,
        launch: Option<u32>,
        device: DeviceId,
        cache: CacheState,
        key: SeriesKey,
    ) -> SeriesRef {
        let word = word(launch, device, cache, key);
        let known = self.sites.get(site.id() as usize);
        let known = known.and_then(|words| words.iter().find(|(known, _)| *known == word));
        let at = match known {
            Some((_, at)) => *at,
            None => self.add(site, launch, device, cache, key),
        };
        if let Some(entry) = self.entries.get_mut(at.0 as usize) {
            entry.timed += 1;
            entry.in_flight += 1;
        }
        at
    }

    #[cold]
    fn add(
        &mut self,
        site: &'static CallSite,
        launch: Option<u32>,
        device: DeviceId,
        cache: CacheState,
        key: SeriesKey,
    ) -> SeriesRef {
        let id = site.id() as usize;
        if self.sites.len() <= id {
            self.sites.resize_with(id + 1, Vec::new);
        }
        let at = SeriesRef(self.entries.len() as u32);
        let row = site.series_id(launch, device, cache, key);
        self.entries.push(SeriesCounters { site, id: row, timed: 0, in_flight: 0, is_long: true });
        self.sites[id].push((word(launch, device, cache, key), at));
        at
    }

    /// Counts a bracket as in flight no more, learns from its sample, and gives its entry, to whose
    /// row the outcome is due.
    #[inline]
    pub fn end(&mut self, entry: SeriesRef, sample: Option<Sample>) -> Option<&SeriesCounters> {
        let entry = self.entries.get_mut(entry.0 as usize)?;
        if let Some(sample) = sample {
            entry.is_long = sample.raw_ns() >= LONG_NS;
        }
        entry.in_flight = entry.in_flight.saturating_sub(1);
        Some(entry)
    }

    /// The row of an entry.
    pub fn row(&self, entry: SeriesRef) -> Option<&'static SeriesId> {
        Some(self.entries.get(entry.0 as usize)?.id)
    }

    /// Whether the next bracket of the row is expected to be long.
    #[inline]
    pub fn is_long(&self, entry: SeriesRef) -> bool {
        self.entries.get(entry.0 as usize).is_some_and(|entry| entry.is_long)
    }

    /// Every entry.
    pub fn iter(&self) -> impl Iterator<Item = &SeriesCounters> {
        self.entries.iter()
    }
}

/// What tells the rows of one site apart, in one word.
#[inline]
fn word(launch: Option<u32>, device: DeviceId, cache: CacheState, key: SeriesKey) -> u64 {
    let launch = launch.map_or(0, |launch| u64::from(launch) + 1);
    let device = match device {
        DeviceId::Cuda(ordinal) => u64::from(ordinal) + 2,
        DeviceId::Unknown => 1,
        DeviceId::Host => 0,
    };
    launch << 32 | (device & 0xffff) << 16 | u64::from(key.number()) << 8 | cache as u64
}
