//! The rows that one lane has touched, with what the lane counts of each.

use crate::sample::{CacheState, Sample};
use crate::site::{CallSite, Device, Row};

/// A row as one lane sees it.
pub(crate) struct Entry {
    pub row: &'static Row,
    key: u64,
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
/// Invariant: made by [`Rows::begin`], valid for that lane for ever, because entries are never removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryRef {
    site: u32,
    at: u32,
}

/// The entries of each site, by its id. A site has few: one for the function and one for each launch,
/// on each device and in each cache state.
#[derive(Default)]
pub(crate) struct Rows {
    sites: Vec<Vec<Entry>>,
}

impl Rows {
    /// Counts one more bracket of the row, which is in flight from now on.
    #[inline]
    pub fn begin(
        &mut self,
        site: &'static CallSite,
        launch: Option<u32>,
        device: Device,
        cache: CacheState,
    ) -> EntryRef {
        let key = key(launch, device, cache);
        let id = site.id();
        if let Some(entries) = self.sites.get_mut(id as usize)
            && let Some(at) = entries.iter().position(|entry| entry.key == key)
        {
            let entry = &mut entries[at];
            entry.timed += 1;
            entry.in_flight += 1;
            return EntryRef { site: id, at: at as u32 };
        }
        self.add(site, launch, device, cache)
    }

    #[cold]
    fn add(
        &mut self,
        site: &'static CallSite,
        launch: Option<u32>,
        device: Device,
        cache: CacheState,
    ) -> EntryRef {
        let id = site.id();
        if self.sites.len() <= id as usize {
            self.sites.resize_with(id as usize + 1, Vec::new);
        }
        let entries = &mut self.sites[id as usize];
        entries.push(Entry {
            row: site.row(launch, device, cache),
            key: key(launch, device, cache),
            timed: 1,
            in_flight: 1,
            is_long: true,
        });
        EntryRef { site: id, at: entries.len() as u32 - 1 }
    }

    /// Counts a bracket as in flight no more, learns from its sample, and gives its row, to which
    /// the outcome is due.
    #[inline]
    pub fn end(&mut self, entry: EntryRef, sample: Option<Sample>) -> Option<&'static Row> {
        let entry = self.sites.get_mut(entry.site as usize)?.get_mut(entry.at as usize)?;
        if let Some(sample) = sample {
            entry.is_long = sample.raw_ns() >= LONG_NS;
        }
        entry.in_flight = entry.in_flight.saturating_sub(1);
        Some(entry.row)
    }

    /// Whether the next bracket of the row is expected to be long.
    #[inline]
    pub fn is_long(&self, entry: EntryRef) -> bool {
        let entries = self.sites.get(entry.site as usize);
        entries.and_then(|e| e.get(entry.at as usize)).is_some_and(|entry| entry.is_long)
    }

    /// Every entry.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.sites.iter().flatten()
    }
}

/// What tells the rows of one site apart, in one word.
fn key(launch: Option<u32>, device: Device, cache: CacheState) -> u64 {
    let launch = launch.map_or(0, |launch| u64::from(launch) + 1);
    let device = match device {
        Device::Cuda(ordinal) => u64::from(ordinal) + 2,
        Device::Unknown => 1,
        Device::Host => 0,
    };
    launch << 32 | (device & 0xff_ffff) << 8 | cache as u64
}
