//! What a device's L2 holds: address ranges, clean or dirty, least recently used first.

use std::collections::VecDeque;

/// How many separate ranges are kept. A program with thousands of small buffers would otherwise
/// make every launch scan them all; the oldest are forgotten, as if evicted.
const MAX_RANGES: usize = 1_024;

/// One range that a command reads or writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    pub start: u64,
    pub bytes: u64,
    pub write: bool,
}

/// What the touches of one command met, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub hit: u64,
    pub miss: u64,
    pub written_back: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    start: u64,
    end: u64,
    dirty: bool,
}

impl Range {
    fn bytes(self) -> u64 {
        self.end - self.start
    }
}

impl Touch {
    fn end(self) -> u64 {
        self.start + self.bytes
    }
}

fn dirty_bytes(ranges: &[Range]) -> u64 {
    ranges.iter().filter(|range| range.dirty).map(|range| range.bytes()).sum()
}

/// The cache. Invariant: ranges are disjoint and not empty, `used` is their sum, at most `usable`.
pub(crate) struct L2 {
    usable: u64,
    used: u64,
    ranges: VecDeque<Range>,
    /// Whether a command that streams through fills what is free first, and then evicts only itself.
    fills_free: bool,
}

impl L2 {
    pub fn new(usable: u64) -> Self {
        Self { usable, used: 0, ranges: VecDeque::new(), fills_free: false }
    }

    /// The same, in which what comes to an L2 that is mostly free evicts nothing that was there.
    pub fn filling_free(self, fills_free: bool) -> Self {
        Self { fills_free, ..self }
    }

    /// One command touches these ranges.
    ///
    /// If they fit, what is there is hit, the rest missed, and the oldest others make room. If not,
    /// the command streams through: each byte has gone before it comes round again, so nothing is
    /// hit, and afterwards each range has its share, the end of it.
    pub fn access(&mut self, touches: &[Touch]) -> Traffic {
        let footprint: u64 = touches.iter().map(|touch| touch.bytes).sum();
        let mut traffic = Traffic::default();
        if footprint > self.usable {
            traffic.miss = footprint;
            let gone = if self.fills_free && self.used < self.usable / 2 {
                touches.iter().flat_map(|touch| self.take(touch.start, touch.end())).collect()
            } else {
                self.clear()
            };
            traffic.written_back = dirty_bytes(&gone);
            let room = self.usable - self.used;
            for touch in touches {
                let share = u128::from(room) * u128::from(touch.bytes);
                let kept = (share / u128::from(footprint)) as u64;
                if touch.write {
                    traffic.written_back += touch.bytes - kept;
                }
                self.insert(Touch {
                    start: touch.start + touch.bytes - kept,
                    bytes: kept,
                    ..*touch
                });
            }
        } else {
            for touch in touches {
                let hit = self.insert(*touch);
                traffic.hit += hit;
                traffic.miss += touch.bytes - hit;
            }
            traffic.written_back += self.make_room();
        }
        traffic
    }

    /// What it holds of `start..end`: where each range starts and ends.
    pub fn overlaps(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let ranges = self.ranges.iter().filter(|range| range.start < end && start < range.end);
        ranges.map(|range| (range.start.max(start), range.end.min(end))).collect()
    }

    /// Forgets a range that was discarded, or whose memory was freed; nothing is written back.
    pub fn forget(&mut self, start: u64, bytes: u64) {
        self.take(start, start + bytes);
    }

    fn clear(&mut self) -> Vec<Range> {
        self.used = 0;
        self.ranges.drain(..).collect()
    }

    /// Puts a range at the most recently used end, and answers how much of it was there already.
    fn insert(&mut self, touch: Touch) -> u64 {
        let end = touch.end();
        let mut present = self.take(touch.start, end);
        let hit = present.iter().map(|range| range.bytes()).sum();
        if touch.write {
            self.push(touch.start, end, true);
        } else {
            // Reading leaves dirty lines dirty.
            present.retain(|range| range.dirty);
            present.sort_by_key(|range| range.start);
            let mut from = touch.start;
            for range in present {
                self.push(from, range.start, false);
                self.push(range.start, range.end, true);
                from = range.end;
            }
            self.push(from, end, false);
        }
        hit
    }

    fn push(&mut self, start: u64, end: u64, dirty: bool) {
        if start < end {
            self.ranges.push_back(Range { start, end, dirty });
            self.used += end - start;
        }
    }

    /// Removes what overlaps `start..end` and answers the overlaps.
    fn take(&mut self, start: u64, end: u64) -> Vec<Range> {
        let mut taken = Vec::new();
        let mut i = 0;
        while i < self.ranges.len() {
            let range = self.ranges[i];
            if range.end <= start || end <= range.start {
                i += 1;
                continue;
            }
            self.ranges.remove(i);
            for (from, to) in [(range.start, start), (end, range.end)] {
                if from < to {
                    self.ranges.insert(i, Range { start: from, end: to, ..range });
                    i += 1;
                }
            }
            let overlap = Range { start: range.start.max(start), end: range.end.min(end), ..range };
            self.used -= overlap.bytes();
            taken.push(overlap);
        }
        taken
    }

    /// Evicts the oldest until the rest fits, and answers how much of that was dirty.
    fn make_room(&mut self) -> u64 {
        let mut written_back = 0;
        while self.used > self.usable || self.ranges.len() > MAX_RANGES {
            let Some(oldest) = self.ranges.front_mut() else { break };
            let excess = self.used.saturating_sub(self.usable);
            let gone = if excess == 0 { oldest.bytes() } else { oldest.bytes().min(excess) };
            if oldest.dirty {
                written_back += gone;
            }
            oldest.start += gone;
            if oldest.bytes() == 0 {
                self.ranges.pop_front();
            }
            self.used -= gone;
        }
        written_back
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(start: u64, bytes: u64) -> Touch {
        Touch { start, bytes, write: false }
    }

    fn write(start: u64, bytes: u64) -> Touch {
        Touch { start, bytes, write: true }
    }

    #[test]
    fn what_streams_through_may_leave_what_was_there() {
        for (fills_free, left) in [(false, 0), (true, 10)] {
            let mut l2 = L2::new(100).filling_free(fills_free);
            l2.access(&[write(0, 10)]);
            assert_eq!(l2.access(&[write(200, 120)]).miss, 120);
            assert_eq!(l2.access(&[read(0, 10)]).hit, left, "{fills_free}");
            // It is full now.
            l2.access(&[write(400, 120)]);
            assert_eq!(l2.access(&[read(0, 10)]).hit, 0, "{fills_free}");
        }
    }

    #[test]
    fn what_was_touched_is_hit() {
        let mut l2 = L2::new(100);
        assert_eq!(l2.access(&[read(0, 40)]), Traffic { hit: 0, miss: 40, written_back: 0 });
        assert_eq!(l2.access(&[read(20, 40)]), Traffic { hit: 20, miss: 20, written_back: 0 });
        assert_eq!(l2.access(&[write(0, 60)]), Traffic { hit: 60, miss: 0, written_back: 0 });
        assert_eq!(l2.overlaps(50, 70), [(50, 60)]);
        assert_eq!(l2.overlaps(60, 70), []);
    }

    #[test]
    fn the_oldest_makes_room_and_dirty_lines_are_written_back() {
        let mut l2 = L2::new(100);
        l2.access(&[write(0, 60)]);
        l2.access(&[read(1_000, 40)]);
        assert_eq!(l2.access(&[read(2_000, 30)]), Traffic { hit: 0, miss: 30, written_back: 30 });
        // The evicted half is the one that was written first.
        assert_eq!(l2.access(&[read(30, 30)]).hit, 30);
    }

    #[test]
    fn reading_a_dirty_line_leaves_it_dirty() {
        let mut l2 = L2::new(100);
        l2.access(&[write(20, 10)]);
        l2.access(&[read(0, 50)]);
        assert_eq!(l2.access(&[read(1_000, 100)]).written_back, 10);
    }

    #[test]
    fn a_command_that_does_not_fit_hits_nothing() {
        let mut l2 = L2::new(100);
        l2.access(&[write(0, 100)]);
        let traffic = l2.access(&[read(0, 60), write(1_000, 60)]);
        // All that was dirty, and the 10 of its own writes that it could not keep.
        assert_eq!(traffic, Traffic { hit: 0, miss: 120, written_back: 110 });
    }

    #[test]
    fn freed_memory_is_not_written_back() {
        let mut l2 = L2::new(100);
        l2.access(&[write(0, 100)]);
        l2.forget(0, 100);
        assert_eq!(l2.access(&[read(0, 100)]), Traffic { hit: 0, miss: 100, written_back: 0 });
    }

    #[test]
    fn many_small_ranges_stay_bounded() {
        let mut l2 = L2::new(1 << 40);
        for i in 0..10_000 {
            l2.access(&[read(i * 10, 5)]);
        }
        assert_eq!(l2.ranges.len(), MAX_RANGES);
        assert_eq!(l2.used, 5 * MAX_RANGES as u64);
    }
}
