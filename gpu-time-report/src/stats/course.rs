//! Recording of times over the run of a program.

use super::timeline::{Slot, Timeline};

/// The maximum number of slots.
const SLOTS: usize = 128;

/// The initial width of a slot, 16 µs, as a power of two of nanoseconds.
const FIRST_WIDTH: u32 = 14;

/// Records times over the run: count, mean and extremes in at most 128 slots of equal width,
/// starting at the first moment. When a moment does not fit, the width doubles.
///
/// Allocates the slots up to the last one with times. A moment before the first one, which another
/// thread may report, counts as the first.
#[derive(Clone, Debug)]
pub struct Course {
    origin_ns: u64,
    /// As a power of two of nanoseconds.
    width: u32,
    slots: Vec<SlotMoments>,
}

/// The count, extremes and sum of the times in a slot.
#[derive(Clone, Copy, Debug)]
struct SlotMoments {
    count: u64,
    min: f64,
    max: f64,
    sum: f64,
}

impl SlotMoments {
    const NONE: SlotMoments = SlotMoments { count: 0, min: f64::INFINITY, max: 0.0, sum: 0.0 };

    #[inline]
    fn add(&mut self, other: SlotMoments) {
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
    }
}

impl Course {
    /// Creates an empty course.
    #[expect(clippy::new_without_default, reason = "the default width is not 0")]
    pub fn new() -> Self {
        Course { origin_ns: 0, width: FIRST_WIDTH, slots: Vec::new() }
    }

    /// Records a time of `ns` at the moment `at_ns`.
    #[inline]
    pub fn record(&mut self, at_ns: u64, ns: f64) {
        if self.slots.is_empty() {
            self.origin_ns = at_ns;
        }
        let since = at_ns.saturating_sub(self.origin_ns);
        while since >> self.width >= SLOTS as u64 {
            self.widen();
        }
        let slot = (since >> self.width) as usize;
        if slot >= self.slots.len() {
            self.extend(slot + 1);
        }
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.add(SlotMoments { count: 1, min: ns, max: ns, sum: ns });
        }
    }

    /// Adds empty slots, up to this number. The capacity doubles, to at most [`SLOTS`].
    fn extend(&mut self, len: usize) {
        if len > self.slots.capacity() {
            let capacity = len.next_power_of_two().min(SLOTS);
            self.slots.reserve_exact(capacity - self.slots.len());
        }
        self.slots.resize(len, SlotMoments::NONE);
    }

    /// Merges the slots in pairs.
    #[cold]
    fn widen(&mut self) {
        self.width += 1;
        let half = self.slots.len().div_ceil(2);
        for at in 0..half {
            let pair = self.slots.iter().skip(2 * at).take(2);
            let mut both = SlotMoments::NONE;
            pair.for_each(|&slot| both.add(slot));
            if let Some(slot) = self.slots.get_mut(at) {
                *slot = both;
            }
        }
        self.slots.truncate(half);
    }

    /// Returns the timeline so far, with moments relative to `start_ns`, or `None` without times.
    pub fn timeline(&self, start_ns: u64) -> Option<Timeline> {
        let counted = self.slots.iter().enumerate().filter(|(_, slot)| slot.count > 0);
        let slots: Vec<Slot> = counted
            .map(|(at, slot)| {
                let mean = slot.sum / slot.count as f64;
                let [min_ns, mean_ns, max_ns] =
                    [slot.min, mean, slot.max].map(|ns| ns.round() as u64);
                Slot { index: at as u32, count: slot.count, min_ns, mean_ns, max_ns }
            })
            .collect();
        (!slots.is_empty()).then(|| Timeline {
            origin_ns: self.origin_ns.saturating_sub(start_ns),
            width_ns: 1 << self.width,
            slots,
        })
    }

    #[cfg(test)]
    fn heap_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<SlotMoments>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(times: &[(u64, f64)]) -> Course {
        let mut course = Course::new();
        times.iter().for_each(|&(at_ns, ns)| course.record(at_ns, ns));
        course
    }

    #[test]
    fn timeline_of_nothing_is_none() {
        assert_eq!(Course::new().timeline(0), None);
    }

    #[test]
    fn slots_widen_when_full() {
        const WIDTH: u64 = 1 << FIRST_WIDTH;
        let full: Vec<(u64, f64)> = (0..128).map(|at| (5_000 + at * WIDTH, at as f64)).collect();
        let narrow = of(&full).timeline(1_000).unwrap();
        assert_eq!((narrow.origin_ns, narrow.width_ns, narrow.slots.len()), (4_000, WIDTH, 128));
        let more = [full, vec![(5_000 + 128 * WIDTH, 7.0)]].concat();
        let wide = of(&more).timeline(1_000).unwrap();
        assert_eq!((wide.width_ns, wide.slots.len()), (2 * WIDTH, 65));
        assert_eq!(wide.slots[1], Slot::from((1, 2, 2, 3, 3)));
        assert_eq!(wide.slots[64], Slot::from((64, 1, 7, 7, 7)));
    }

    #[test]
    fn memory_grows_with_the_slots_in_use() {
        let mut course = Course::new();
        assert_eq!(course.heap_bytes(), 0);
        for (at, slots) in [(0, 1), (1, 2), (1, 2), (4, 8), (99, 128), (127, 128), (128, 128)] {
            course.record(at << FIRST_WIDTH, 1.0);
            assert_eq!(course.heap_bytes(), slots * 32, "{at}");
        }
    }

    #[test]
    fn moments_out_of_order_have_a_slot() {
        let line = of(&[(1_000, 5.0), (0, 9.0), (u64::MAX, 6.0)]).timeline(2_000).unwrap();
        assert_eq!(line.origin_ns, 0);
        assert_eq!(line.slots[0], Slot::from((0, 2, 5, 7, 9)));
        assert_eq!(line.slots.iter().map(|slot| slot.count).sum::<u64>(), 3);
    }

    proptest! {
        #[test]
        fn each_time_is_in_the_slot_of_its_moment(
            steps in prop::collection::vec((0u64..1 << 34, 0u32..1_000_000), 1..300),
            sparse in 0u32..34,
        ) {
            let mut at_ns = 77;
            let times: Vec<(u64, f64)> = steps
                .iter()
                .map(|&(step, ns)| {
                    at_ns += step >> sparse;
                    (at_ns, f64::from(ns))
                })
                .collect();
            let course = of(&times);
            prop_assert!(course.slots.capacity() <= SLOTS);
            let line = course.timeline(0).unwrap();
            prop_assert!(line.slots.iter().all(|slot| (slot.index as usize) < SLOTS));
            for slot in &line.slots {
                let begin = line.origin_ns + u64::from(slot.index) * line.width_ns;
                let within: Vec<f64> = times
                    .iter()
                    .filter(|(at, _)| (begin..begin + line.width_ns).contains(at))
                    .map(|&(_, ns)| ns)
                    .collect();
                prop_assert_eq!(slot.count, within.len() as u64);
                let mean = within.iter().sum::<f64>() / within.len() as f64;
                prop_assert_eq!(slot.mean_ns, mean.round() as u64);
                prop_assert_eq!(slot.min_ns as f64, within.iter().copied().fold(f64::MAX, f64::min));
                prop_assert_eq!(slot.max_ns as f64, within.iter().copied().fold(0.0, f64::max));
            }
            prop_assert_eq!(line.slots.iter().map(|slot| slot.count).sum::<u64>(), times.len() as u64);
        }
    }
}
