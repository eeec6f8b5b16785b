//! The call counters of every site on one thread, allocated for the sites that the thread calls.

use crate::base::published::Published;
use crate::site::counters::CallCounters;

/// The number of sites whose counters are allocated together. Sites in one file have adjacent ids.
pub(crate) const SITES_PER_CHUNK: usize = 16;

/// The number of sites that a thread can still count if they register after its counters were
/// created.
const SPARE_SITES: usize = 16;

type Chunk = [CallCounters; SITES_PER_CHUNK];

/// The call counters of one thread, indexed by site id. They take half a byte for each site in the
/// process, and 192 bytes for each site in the chunks that the thread uses. They live as long as
/// the process.
///
/// Invariant: only that thread allocates chunks and writes counters. Any thread reads them.
#[derive(Clone, Copy)]
pub(crate) struct ThreadCounters(&'static [Published<Chunk>]);

impl ThreadCounters {
    /// Counters without room for any site.
    pub const NONE: ThreadCounters = ThreadCounters(&[]);

    /// Creates counters with room for the sites with ids up to `last`, and for some that register
    /// later.
    pub fn up_to(last: usize) -> ThreadCounters {
        let chunks = (last + 1 + SPARE_SITES).div_ceil(SITES_PER_CHUNK);
        let chunks: Box<[_]> = (0..chunks).map(|_| Published::unset()).collect();
        ThreadCounters(Box::leak(chunks))
    }

    /// Returns the counters of a site, unless they are not allocated yet.
    #[inline(always)]
    pub fn get(self, id: u32) -> Option<&'static CallCounters> {
        self.0.get(id as usize / SITES_PER_CHUNK)?.get()?.get(id as usize % SITES_PER_CHUNK)
    }

    /// Returns the counters of a site, allocated on first use, or `None` if there is no room for the site.
    #[cold]
    pub fn get_or_allocate(self, id: u32) -> Option<&'static CallCounters> {
        let chunk = self.0.get(id as usize / SITES_PER_CHUNK)?;
        if chunk.get().is_none() {
            let new: Box<[CallCounters]> =
                (0..SITES_PER_CHUNK).map(|_| CallCounters::default()).collect();
            let new: Box<Chunk> = new.try_into().ok()?;
            // A timed call inside the program's own allocator may have set the chunk first.
            chunk.set(Box::leak(new));
        }
        self.get(id)
    }

    /// Returns the id and the counters of each site in the chunks that are allocated.
    pub fn iter(self) -> impl Iterator<Item = (u32, &'static CallCounters)> {
        let chunks = (0u32..).step_by(SITES_PER_CHUNK).zip(self.0);
        let allocated = chunks.filter_map(|(first, chunk)| Some((first, chunk.get()?)));
        allocated.flat_map(|(first, chunk)| (first..).zip(chunk.iter()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::fixtures::bytes_kept;
    use crate::site::counters::Outcome;

    #[test]
    fn memory_grows_with_the_sites_that_are_called() {
        const SITES: usize = 10_000;
        let (directory, counters) = bytes_kept(|| ThreadCounters::up_to(SITES));
        assert_eq!(directory, 627 * 8);
        let chunk = 16 * 192;
        let called = |ids: &[u32]| {
            bytes_kept(|| ids.iter().for_each(|&id| _ = counters.get_or_allocate(id))).0
        };
        assert_eq!(called(&[5_000]), chunk);
        assert_eq!(called(&[5_000, 5_001, 5_007]), 0);
        assert_eq!(called(&[1, 10_000]), 2 * chunk);
    }

    #[test]
    fn counters_are_found_by_id() {
        let counters = ThreadCounters::up_to(40);
        assert!(counters.get(17).is_none());
        for id in [17, 40, 56] {
            counters.get_or_allocate(id).unwrap().count(Outcome::Timed);
        }
        let timed =
            |(id, counters): (u32, &CallCounters)| (counters.read().timed > 0).then_some(id);
        assert_eq!(counters.iter().filter_map(timed).collect::<Vec<_>>(), [17, 40, 56]);
        assert!(counters.get_or_allocate(64).is_none() && ThreadCounters::NONE.get(0).is_none());
    }
}
