//! Records of launches that belong to no ended call.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::record::opened::call_exchange::MAX_WAITING_WORK;
use crate::types::activity::Activity;

/// The maximum number of records to keep. Enough for the launches that several opened calls keep.
const MAX_UNCLAIMED: usize = MAX_WAITING_WORK;
/// The number of records for which memory is kept when none are left.
const IDLE_RECORDS: usize = MAX_UNCLAIMED / 16;

/// The position of a slot.
type Position = u32;
/// No slot.
const NONE: Position = Position::MAX;

/// Records that calls may claim when they end. If there are too many, the oldest are dropped.
///
/// Invariant: every slot is either free or in two lists: that of all records, and that of its launch, both from the
/// oldest to the newest.
pub(super) struct UnclaimedRecords {
    slots: Vec<KeptRecord>,
    /// The oldest and the newest record of each launch, by correlation id.
    launches: Option<HashMap<u32, (Position, Position)>>,
    oldest: Position,
    newest: Position,
    /// The first of the free slots, which are linked by `newer`.
    free: Position,
    /// The number of calls of [`claim`](Self::claim).
    #[cfg(test)]
    pub lookups: usize,
}

struct KeptRecord {
    record: Activity,
    older: Position,
    newer: Position,
    /// The next record of the same launch. A group has many.
    next_of_launch: Position,
}

impl UnclaimedRecords {
    pub const fn new() -> UnclaimedRecords {
        UnclaimedRecords {
            slots: Vec::new(),
            launches: None,
            oldest: NONE,
            newest: NONE,
            free: NONE,
            #[cfg(test)]
            lookups: 0,
        }
    }

    /// Returns `true` if the oldest record must be dropped to keep another one.
    pub fn is_full(&self) -> bool {
        self.free == NONE && self.slots.len() >= MAX_UNCLAIMED
    }

    pub fn keep(&mut self, record: &Activity) {
        if self.is_full() {
            self.drop_oldest();
        }
        let slot =
            KeptRecord { record: *record, older: self.newest, newer: NONE, next_of_launch: NONE };
        let at = match self.slots.get_mut(self.free as usize) {
            Some(free) => {
                let at = std::mem::replace(&mut self.free, free.newer);
                *free = slot;
                at
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as Position - 1
            }
        };
        match self.slot(self.newest) {
            Some(newest) => newest.newer = at,
            None => self.oldest = at,
        }
        self.newest = at;
        match self.launches.get_or_insert_default().entry(record.correlation) {
            Entry::Vacant(launch) => _ = launch.insert((at, at)),
            Entry::Occupied(mut launch) => {
                let last = std::mem::replace(&mut launch.get_mut().1, at);
                self.slots[last as usize].next_of_launch = at;
            }
        }
    }

    /// Removes the oldest record of a launch and returns it.
    pub fn claim(&mut self, correlation: u32) -> Option<Activity> {
        #[cfg(test)]
        {
            self.lookups += 1;
        }
        if self.oldest == NONE {
            return None;
        }
        let Entry::Occupied(mut launch) = self.launches.as_mut()?.entry(correlation) else {
            return None;
        };
        let at = launch.get().0;
        let &KeptRecord { record, older, newer, next_of_launch } = self.slots.get(at as usize)?;
        match next_of_launch {
            NONE => _ = launch.remove(),
            next => launch.get_mut().0 = next,
        }
        match self.slot(older) {
            Some(slot) => slot.newer = newer,
            None => self.oldest = newer,
        }
        match self.slot(newer) {
            Some(slot) => slot.older = older,
            None => self.newest = older,
        }
        self.slots[at as usize].newer = std::mem::replace(&mut self.free, at);
        Some(record)
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.slot(self.oldest) {
            let correlation = oldest.record.correlation;
            self.claim(correlation);
        }
    }

    fn slot(&mut self, at: Position) -> Option<&mut KeptRecord> {
        self.slots.get_mut(at as usize)
    }

    pub fn clear(&mut self) {
        self.slots.clear();
        self.slots.shrink_to(IDLE_RECORDS);
        if let Some(launches) = &mut self.launches {
            launches.clear();
            launches.shrink_to(IDLE_RECORDS);
        }
        (self.oldest, self.newest, self.free) = (NONE, NONE, NONE);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::types::activity::GpuWork;

    fn record(correlation: u32, start_ns: u64) -> Activity {
        static WORK: GpuWork = GpuWork {
            name: "k",
            is_kernel: true,
            grid: [1; 3],
            block: [1; 3],
            registers: 0,
            shared_bytes: 0,
        };
        let (device, context, stream) = (0, 1, 7);
        Activity { start_ns, end_ns: start_ns, correlation, device, context, stream, work: &WORK }
    }

    #[test]
    fn oldest_records_are_dropped() {
        let mut unclaimed = UnclaimedRecords::new();
        let most = MAX_UNCLAIMED as u32;
        (0..most).for_each(|id| unclaimed.keep(&record(id / 2, id.into())));
        // Those that are claimed make room.
        assert_eq!(unclaimed.claim(most / 4).map(|of| of.start_ns), Some(u64::from(most / 2)));
        unclaimed.keep(&record(most, 0));
        assert_eq!(unclaimed.claim(0).map(|of| of.start_ns), Some(0));
        unclaimed.keep(&record(most, 1));
        unclaimed.keep(&record(most, 2));
        assert!(unclaimed.claim(0).is_none(), "both records are gone");
        assert_eq!(unclaimed.claim(1).map(|of| of.start_ns), Some(2));
        let newest: Vec<_> =
            std::iter::from_fn(|| unclaimed.claim(most)).map(|of| of.start_ns).collect();
        assert_eq!(newest, [0, 1, 2]);
        assert_eq!(unclaimed.slots.len(), MAX_UNCLAIMED);
        unclaimed.clear();
        assert!(unclaimed.claim(2).is_none());
    }

    #[test]
    fn random_records_agree_with_a_queue() {
        let mut rng = fastrand::Rng::with_seed(7);
        let (mut unclaimed, mut queue) = (UnclaimedRecords::new(), VecDeque::new());
        for at in 0..20_000 {
            let id = rng.u32(0..50);
            match rng.u8(0..3) {
                0 => {
                    unclaimed.keep(&record(id, at));
                    queue.push_back((id, at));
                }
                1 => {
                    let position = queue.iter().position(|of| of.0 == id);
                    let expected = position.and_then(|at| queue.remove(at));
                    let found = unclaimed.claim(id).map(|of| (of.correlation, of.start_ns));
                    assert_eq!(found, expected);
                }
                _ => {
                    unclaimed.drop_oldest();
                    queue.pop_front();
                }
            }
        }
    }
}
