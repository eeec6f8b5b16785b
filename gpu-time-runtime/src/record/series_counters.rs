//! Counters of the outcomes of brackets, per series, for one thread or for all graphs.

use std::collections::HashMap;
use std::ptr;

use crate::base::lock::MutexGuard;
use crate::site::callsite::CallSite;
use crate::site::series_id::{SeriesCell, SeriesId, SeriesIdentity};
use crate::site::thread_counters::SITES_PER_CHUNK;
use crate::stats::call_tree::place::{PathId, Place};
use crate::stats::{bracket_counts::BracketCounts, kernels::CallFigures, total::OpeningDraw};
use crate::types::sample::{Lost, Sample};
use crate::types::{device::DeviceId, workload::Workload};

/// The raw time from which a bracket counts as long. The one or two microseconds that the host needs to enqueue
/// it are then at most 1 % of its time.
const LONG_NS: f64 = 200_000.0;

/// One thread's counters for one series.
#[derive(Clone, Copy)]
pub(crate) struct SeriesCounters {
    pub site: &'static CallSite,
    pub id: &'static SeriesId,
    pub counts: BracketCounts,
    /// The number of opened calls in flight.
    open: u32,
    /// The last bracket was long, or there is none yet, so the host time may prove the next one fed.
    is_long: bool,
}

/// The index of a series in a thread's [`SeriesTable`].
///
/// Invariant: [`NONE`](Self::NONE), or made by [`SeriesTable::begin`] and always valid for that thread recorder,
/// because series are never removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeriesRef(u32);

impl SeriesRef {
    /// No series. What is recorded in it is not counted.
    pub const NONE: SeriesRef = SeriesRef(u32::MAX);
}

/// The result of one bracket, or of one call's sum, about to be recorded in a series.
#[derive(Clone, Copy)]
pub(crate) struct SeriesOutcome {
    pub series: SeriesRef,
    pub outcome: Result<Sample, Lost>,
    pub workload: Workload,
    /// The place in the call tree. `None` if the call has none, or if the launch is part of a sum.
    pub place: Option<Place>,
}

/// The result of one opened call of a function, about to be recorded in a series.
pub(crate) struct OpenedOutcome<'a> {
    /// The call's figures and the time that it took on the host, in nanoseconds.
    pub outcome: Result<(&'a CallFigures<'a>, u64), Lost>,
    /// The number of calls that its sample represents.
    pub weight: f32,
    /// The number of calls that its kernels represent. If the function names a stream, these include calls that
    /// events time.
    pub represents: f64,
    pub draw: OpeningDraw,
    pub ended_ns: u64,
    pub workload: Workload,
}

/// The time that a call took on the host, about to be recorded in a series and in the call tree.
#[derive(Clone, Copy)]
pub(crate) struct HostTime {
    pub series: SeriesRef,
    pub path: Option<PathId>,
    pub ns: u64,
    /// The number of calls that this one represents.
    pub weight: f32,
}

/// The locked series of the site that was used last.
///
/// Successive records are mostly for the same site, so the lock is kept from one record to the next.
#[derive(Default)]
struct LockedSite(Option<(&'static CallSite, MutexGuard<'static, Vec<SeriesCell>>)>);

impl LockedSite {
    /// Returns the data of a series. The last site is unlocked before another one is locked, so that no thread
    /// holds two such locks.
    fn cell(&mut self, counters: &SeriesCounters) -> Option<&mut SeriesCell> {
        let site = counters.site;
        if self.0.as_ref().is_some_and(|(locked, _)| !ptr::eq(*locked, site)) {
            self.0 = None;
        }
        let (_, cells) = self.0.get_or_insert_with(|| (site, site.series()));
        cells.get_mut(counters.id.index())
    }
}

/// The series into which one thread has recorded, with the thread's counters for each.
#[derive(Default)]
pub(crate) struct SeriesTable {
    counters: Vec<SeriesCounters>,
    /// The series of each site, indexed by the site's id, in chunks that are allocated for the
    /// sites in use.
    sites: Vec<Option<Box<[SiteSeries; SITES_PER_CHUNK]>>>,
}

/// One site's series: one for the function and one for each launch, per device, cache state and up
/// to 65 keys.
#[derive(Default)]
struct SiteSeries {
    /// The series last used for the function and for each launch. Most calls need no other.
    last: Vec<Option<(SeriesIdentity, SeriesRef)>>,
    /// All series of the function and of launches, where there is more than one.
    several: HashMap<SeriesIdentity, SeriesRef>,
}

impl SiteSeries {
    #[inline]
    fn find(&mut self, identity: SeriesIdentity) -> Option<SeriesRef> {
        match self.last.get(slot(identity)) {
            Some(Some((last, series))) if *last == identity => Some(*series),
            _ => self.find_other(identity),
        }
    }

    #[cold]
    fn find_other(&mut self, identity: SeriesIdentity) -> Option<SeriesRef> {
        let series = *self.several.get(&identity)?;
        if let Some(last) = self.last.get_mut(slot(identity)) {
            *last = Some((identity, series));
        }
        Some(series)
    }

    fn insert(&mut self, identity: SeriesIdentity, series: SeriesRef) {
        let slot = slot(identity);
        if self.last.len() <= slot {
            self.last.reserve_exact(slot + 1 - self.last.len());
            self.last.resize(slot + 1, None);
        }
        if let Some((other, of_other)) = self.last[slot].replace((identity, series)) {
            self.several.insert(other, of_other);
            self.several.insert(identity, series);
        }
    }
}

/// Returns the index for a launch in [`SiteSeries::last`]. The function comes first.
fn slot(identity: SeriesIdentity) -> usize {
    identity.launch.map_or(0, |launch| launch as usize + 1)
}

impl SeriesTable {
    /// A table without series.
    pub const EMPTY: SeriesTable = SeriesTable { counters: Vec::new(), sites: Vec::new() };

    /// Counts one more bracket or call in a series as begun and in flight.
    #[inline]
    pub fn begin(&mut self, site: &'static CallSite, identity: SeriesIdentity) -> SeriesRef {
        let series = match self.find(site, identity) {
            Some(series) => series,
            None => self.add(site, identity),
        };
        if let Some(counters) = self.counters.get_mut(series.0 as usize) {
            counters.counts.begin();
        }
        series
    }

    /// Counts one more opened call in a series as begun and in flight.
    pub fn begin_opened(&mut self, site: &'static CallSite, identity: SeriesIdentity) -> SeriesRef {
        let series = self.begin(site, identity);
        if let Some(counters) = self.counters.get_mut(series.0 as usize) {
            counters.open += 1;
        }
        series
    }

    /// Moves an opened call to the series with this identity, which may be its current one. Returns the call's
    /// series.
    pub fn move_opened(&mut self, series: SeriesRef, identity: SeriesIdentity) -> SeriesRef {
        let Some(counters) = self.counters.get_mut(series.0 as usize) else { return series };
        if counters.open == 0 || **counters.id == identity {
            return series;
        }
        counters.open -= 1;
        counters.counts.take_back();
        let site = counters.site;
        self.begin_opened(site, identity)
    }

    /// Counts an opened call as recorded or lost, which no longer counts as in flight. Returns `None` if it was
    /// [lost](Self::lose_opened) meanwhile.
    pub fn count_opened(
        &mut self,
        series: SeriesRef,
        lost: Option<Lost>,
    ) -> Option<&SeriesCounters> {
        let counters = self.counters.get_mut(series.0 as usize)?;
        counters.open = counters.open.checked_sub(1)?;
        counters.counts.end_opened(lost);
        Some(counters)
    }

    /// Counts the opened calls that are still in flight as lost.
    pub fn lose_opened(&mut self, lost: Lost) {
        for counters in &mut self.counters {
            for _ in 0..std::mem::take(&mut counters.open) {
                counters.counts.end_opened(Some(lost));
            }
        }
    }

    /// Returns the series with this identity if the thread has recorded into it.
    #[inline]
    pub fn find(&mut self, site: &'static CallSite, identity: SeriesIdentity) -> Option<SeriesRef> {
        let at = site.id() as usize;
        let chunk = self.sites.get_mut(at / SITES_PER_CHUNK)?.as_mut()?;
        chunk.get_mut(at % SITES_PER_CHUNK)?.find(identity)
    }

    #[cold]
    fn add(&mut self, site: &'static CallSite, identity: SeriesIdentity) -> SeriesRef {
        let at = site.id() as usize;
        let chunk = at / SITES_PER_CHUNK;
        if self.sites.len() <= chunk {
            self.sites.resize_with(chunk + 1, || None);
        }
        let series = SeriesRef(self.counters.len() as u32);
        let id = site.series_id(identity);
        self.counters.push(SeriesCounters {
            site,
            id,
            counts: BracketCounts::default(),
            open: 0,
            is_long: true,
        });
        self.sites[chunk].get_or_insert_default()[at % SITES_PER_CHUNK].insert(identity, series);
        series
    }

    /// Records outcomes in their series. Their brackets no longer count as in flight.
    ///
    /// The parameter is a slice rather than an iterator, because code that runs inside this loop must
    /// not lock a site's series: it would deadlock.
    pub fn record(&mut self, outcomes: &[SeriesOutcome]) {
        let mut site = LockedSite::default();
        for &SeriesOutcome { series, outcome, workload, .. } in outcomes {
            let Some(counters) = self.counters.get_mut(series.0 as usize) else { continue };
            counters.counts.end(outcome);
            let Ok(sample) = outcome else { continue };
            counters.is_long = sample.raw_ns() >= LONG_NS;
            let Some(cell) = site.cell(counters) else { continue };
            cell.series.record(sample);
            if !workload.is_unknown() {
                cell.series.record_work(sample, workload);
            }
        }
    }

    /// Records host times in their series.
    pub fn record_host_times(&self, host_times: &[HostTime]) {
        let mut site = LockedSite::default();
        for &HostTime { series, ns, .. } in host_times {
            let Some(counters) = self.counters.get(series.0 as usize) else { continue };
            if let Some(cell) = site.cell(counters) {
                cell.series.record_host(ns);
            }
        }
    }

    /// [Counts](Self::count_opened) an opened call, and records its outcome.
    pub fn end_opened(&mut self, series: SeriesRef, of: OpenedOutcome<'_>) {
        let Some(counters) = self.count_opened(series, of.outcome.err()) else { return };
        let Ok((figures, host_ns)) = of.outcome else { return };
        let (clock, index) = (counters.id.clock, counters.id.index());
        let Some(sample) = Sample::new(figures.busy_ns as f64) else { return };
        let sample = sample.at(of.ended_ns).weighted(of.weight);
        if let Some(cell) = counters.site.series().get_mut(index) {
            cell.series.record_host(host_ns);
            cell.series.record_opened(figures, of.represents, sample, clock, of.workload, of.draw);
        }
    }

    /// Counts CUPTI records without times for a series.
    pub fn count_zero_times(&mut self, series: SeriesRef, count: u64) {
        let Some(counters) = self.counters.get(series.0 as usize).filter(|_| count > 0) else {
            return;
        };
        if let Some(cell) = counters.site.series().get_mut(counters.id.index()) {
            cell.series.count_zero_times(count);
        }
    }

    /// Returns the identity of a series within its site.
    pub fn id(&self, series: SeriesRef) -> Option<&'static SeriesId> {
        Some(self.counters.get(series.0 as usize)?.id)
    }

    /// Returns the site of a series, and its device.
    pub fn site(&self, series: SeriesRef) -> Option<(&'static CallSite, DeviceId)> {
        let counters = self.counters.get(series.0 as usize)?;
        Some((counters.site, counters.id.device))
    }

    /// Returns `true` if the next bracket in the series is expected to be long.
    #[inline]
    pub fn is_long(&self, series: SeriesRef) -> bool {
        self.counters.get(series.0 as usize).is_some_and(|counters| counters.is_long)
    }

    /// Returns the counters of up to `most` series, starting at index `first`. Series keep their
    /// index.
    pub fn counters(&self, first: usize, most: usize) -> &[SeriesCounters] {
        let rest = self.counters.get(first..).unwrap_or_default();
        rest.get(..most).unwrap_or(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::fixtures::bytes_kept;
    use crate::gpu::fake::site;
    use crate::types::key::{KeyText, SeriesKey};
    use crate::types::sample::CacheState;

    const DEVICE: DeviceId = DeviceId::Cuda(0);

    #[test]
    fn devices_beyond_16_bits_have_their_own_series() {
        let (mut table, site) = (SeriesTable::default(), site());
        let mut begin = |device| {
            let device = DeviceId::Cuda(device);
            let (cache, key) = (CacheState::AsFound, SeriesKey::NONE);
            table.begin(site, SeriesIdentity::function(device, cache, key))
        };
        let series = [0, 0xfffe, 0xffff, 0x1_0000, 0x1_0001].map(&mut begin);
        assert_eq!(series, [0, 0xfffe, 0xffff, 0x1_0000, 0x1_0001].map(begin));
        assert!((1..5).all(|n| !series[..n].contains(&series[n])), "{series:?}");
    }

    #[test]
    fn memory_grows_with_the_sites_in_use() {
        let sites = [1, 10_000, 10_001].map(|id| {
            let site = site();
            site.set_id(id);
            site.series_id(SeriesIdentity::function(DEVICE, CacheState::AsFound, SeriesKey::NONE));
            site
        });
        let mut table = SeriesTable::default();
        let mut grown = |site: &'static CallSite| {
            let identity = SeriesIdentity::function(DEVICE, CacheState::AsFound, SeriesKey::NONE);
            bytes_kept(|| table.begin(site, identity)).0
        };
        let chunk = 16 * size_of::<SiteSeries>() as i64;
        let [first, far, near] = sites.map(&mut grown);
        // The first series allocates space for the counters of four.
        let counters = 4 * size_of::<SeriesCounters>() as i64;
        let last = size_of::<Option<(SeriesIdentity, SeriesRef)>>() as i64;
        let directory = |chunks: i64| chunks * 8;
        assert_eq!(first, directory(4) + chunk + last + counters);
        assert_eq!(far, directory(626 - 4) + chunk + last);
        assert_eq!(near, last);
        assert!(last <= 40 && counters <= 4 * 200 && chunk <= 16 * 80);
        assert_eq!(sites.map(&mut grown), [0; 3]);
    }

    #[test]
    fn launch_cache_state_and_key_select_series() {
        let (mut table, site) = (SeriesTable::default(), site());
        let keys: Vec<_> = (0..4).map(|n| site.keys.find(&KeyText::of(&n))).collect();
        let mut begin_all = || {
            let mut series = Vec::new();
            for launch in [None, Some(0), Some(1)] {
                for cache in CacheState::ALL {
                    for &key in &keys {
                        let function = SeriesIdentity::function(DEVICE, cache, key);
                        series.push(table.begin(site, SeriesIdentity { launch, ..function }));
                    }
                }
            }
            series
        };
        let first = begin_all();
        assert_eq!(begin_all(), first);
        let distinct: std::collections::HashSet<_> = first.iter().map(|series| series.0).collect();
        assert_eq!(distinct.len(), first.len());
        assert!(
            table
                .counters(0, usize::MAX)
                .iter()
                .all(|counters| { (counters.counts.timed, counters.counts.in_flight) == (2, 2) })
        );
    }
}
