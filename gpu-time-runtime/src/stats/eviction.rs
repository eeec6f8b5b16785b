//! What a flush was seen to evict: the proof that cold is cold.

use crate::stats::quantile::quantile;
use gpu_time_report::Eviction;

/// So many of the lines must have gone.
const ENOUGH: f64 = 0.99;
/// And so many of those that the flush discarded, to show that discarding has an effect. On an H200 a tenth
/// to a quarter of them answer like hits, of which none is written back; after writes alone it is four in
/// five.
const ENOUGH_DISCARDED: f64 = 0.5;
/// A hit takes no longer than this share of hits.
const MOST_HITS: f64 = 0.9;
/// A miss must take so many times as long as a hit that is slow.
const APART: f64 = 1.25;
/// Without a flush, the lines were hits if reading them took no more times as long as reading them at
/// once again. Hits differ too: a line may be in the far half of an L2.
const UNDISTURBED: f64 = 1.5;

/// Latencies of single lines in cycles, sorted.
pub(crate) struct Pass {
    /// Of the first read of each line.
    first: Vec<u32>,
    /// Of the second, just after it: hits.
    again: Vec<u32>,
}

/// Lines that the L2 had taken in were read.
pub(crate) struct Passes {
    /// With no flush between, after they had been read and after they had been written.
    pub cell: [Pass; 2],
    /// With a flush between, after they had been read: into an L2 that was full, and into one that had just
    /// been flushed.
    pub after_read: [Pass; 2],
    /// The same after they had been written.
    pub after_write: [Pass; 2],
    /// Of the flush's own lines after it, where it discards them.
    pub discarded: Option<Pass>,
}

impl Pass {
    pub fn new(mut first: Vec<u32>, mut again: Vec<u32>) -> Pass {
        first.sort_unstable();
        again.sort_unstable();
        Pass { first, again }
    }

    fn share_above(&self, cycles: u32) -> f64 {
        let above = self.first.len() - self.first.partition_point(|&taken| taken <= cycles);
        above as f64 / self.first.len().max(1) as f64
    }
}

impl Passes {
    /// What a flush of so many bytes, so many times the reported L2, did; `None` where the lines were
    /// not there even without it, because other work on the GPU had evicted them.
    pub fn judge(&self, method: &str, multiple: u32, bytes: u64) -> Option<Eviction> {
        let Passes { cell, after_read, after_write, discarded } = self;
        let hit_cycles = cell.iter().map(|pass| cycles_at(&pass.again, 0.5)).max()?;
        let is_kept = |pass: &Pass| {
            f64::from(cycles_at(&pass.first, 0.5)) <= UNDISTURBED * f64::from(hit_cycles)
        };
        if !cell.iter().all(is_kept) {
            return None;
        }
        let threshold = cell.iter().map(|pass| cycles_at(&pass.first, MOST_HITS)).max()?;
        // Some hits take longer than the threshold: were all lines still there, so many would seem to
        // have missed.
        let slow_hits = cell.iter().map(|pass| pass.share_above(threshold)).fold(0.0, f64::max);
        let missed =
            |pass: &Pass| ((pass.share_above(threshold) - slow_hits) / (1.0 - slow_hits)).max(0.0);
        let mut slow: Vec<u32> = [after_read, after_write]
            .into_iter()
            .flatten()
            .flat_map(|pass| &pass.first)
            .copied()
            .filter(|&cycles| cycles > threshold)
            .collect();
        slow.sort_unstable();
        let miss_cycles = (!slow.is_empty()).then(|| cycles_at(&slow, 0.5));
        // Else a GPU that has become a little slower would pass for one that misses.
        let are_apart =
            miss_cycles.is_some_and(|miss| f64::from(miss) >= APART * f64::from(threshold));
        let least = |passes: &[Pass; 2]| passes.iter().map(missed).fold(1.0, f64::min);
        let (missed_after_read, missed_after_write) = (least(after_read), least(after_write));
        let missed_discarded = discarded.as_ref().map(missed);
        let are_gone = missed_after_read.min(missed_after_write) >= ENOUGH;
        let are_discarded = missed_discarded.is_none_or(|missed| missed >= ENOUGH_DISCARDED);
        Some(Eviction {
            proved: are_apart && are_gone && are_discarded,
            method: method.to_owned(),
            multiple,
            bytes,
            lines: after_read[0].first.len() as u32,
            missed_after_read,
            missed_after_write,
            missed_discarded,
            hit_cycles,
            miss_cycles,
            threshold_cycles: threshold,
        })
    }
}

/// Returns a quantile of sorted latencies, or 0 if there are none.
fn cycles_at(sorted: &[u32], share: f64) -> u32 {
    quantile(sorted, share).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: u32 = 1_000;

    /// So many of a thousand lines miss, the others are hits, a quarter of them far ones.
    fn pass(missing: u32) -> Pass {
        let hit = |i: u32| if i.is_multiple_of(4) { 450 + i % 60 } else { 280 + i % 60 };
        let first = (0..LINES).map(|i| if i < missing { 540 + i % 400 } else { hit(i) });
        Pass::new(first.collect(), (0..LINES).map(|i| 280 + i % 60).collect())
    }

    fn passes(cell: u32, after_read: u32, after_write: u32) -> Passes {
        Passes {
            cell: [pass(0), pass(cell)],
            after_read: [pass(after_read), pass(LINES)],
            after_write: [pass(after_write), pass(LINES)],
            discarded: None,
        }
    }

    fn judge(cell: u32, after_read: u32, after_write: u32) -> Option<Eviction> {
        passes(cell, after_read, after_write).judge("read", 1, 1 << 20)
    }

    #[test]
    fn lines_that_miss_are_counted() {
        let seen = judge(0, LINES, 995).unwrap();
        assert!(seen.proved(), "{seen:?}");
        assert_eq!((seen.lines(), seen.missed_after_read()), (LINES, 1.0));
        assert!((seen.missed_after_write() - 0.995).abs() < 0.001, "{seen:?}");
        assert!(seen.threshold_cycles() > 340 && seen.threshold_cycles() < 540, "{seen:?}");
        assert!(seen.miss_cycles().is_some_and(|miss| miss > 700), "{seen:?}");
    }

    #[test]
    fn each_kind_of_line_must_go() {
        assert!(!judge(0, LINES, 970).unwrap().proved());
        assert!(!judge(0, 970, LINES).unwrap().proved());
        let nothing = judge(0, 0, 0).unwrap();
        assert!(!nothing.proved());
        assert!(nothing.missed_after_read() < 0.001, "{nothing:?}");
    }

    /// Whether the L2 was full before, or had just been flushed.
    #[test]
    fn each_state_of_the_l2_counts() {
        let all = || passes(0, LINES, LINES);
        let after_read = Passes { after_read: [pass(LINES), pass(970)], ..all() };
        let after_write = Passes { after_write: [pass(LINES), pass(970)], ..all() };
        let shares = [after_read, after_write].map(|passes| {
            let seen = passes.judge("read", 1, 1 << 20).unwrap();
            assert!(!seen.proved(), "{seen:?}");
            (seen.missed_after_read(), seen.missed_after_write())
        });
        assert!(shares[0].0 < 0.98 && shares[0].1 > 0.99, "{shares:?}");
        assert!(shares[1].0 > 0.99 && shares[1].1 < 0.98, "{shares:?}");
    }

    /// Where most of what was written is still there, it is dirty.
    #[test]
    fn discarded_lines_must_be_gone() {
        let discarded = |missing| {
            let passes = Passes { discarded: Some(pass(missing)), ..passes(0, LINES, LINES) };
            passes.judge("write-discard", 1, 1 << 20).unwrap()
        };
        assert!(discarded(750).proved());
        assert!(!discarded(200).proved());
        assert!(discarded(0).missed_discarded().is_some_and(|missed| missed < 0.001));
        assert_eq!(judge(0, LINES, LINES).unwrap().missed_discarded(), None);
    }

    /// Slow hits are no evidence: they are taken off, and never added.
    #[test]
    fn half_of_the_lines_are_half() {
        let half = judge(0, 500, 500).unwrap();
        assert!((half.missed_after_read() - 0.5).abs() < 0.03, "{half:?}");
    }

    #[test]
    fn lines_that_went_by_themselves_prove_nothing() {
        assert_eq!(judge(LINES, LINES, LINES), None);
        // Fewer leave no room between hits and misses.
        assert!(judge(400, LINES, LINES).is_none_or(|seen| !seen.proved()));
    }

    #[test]
    fn a_gpu_that_became_slower_misses_nothing() {
        let even = |cycles| Pass::new(vec![cycles; 100], vec![cycles; 100]);
        let passes = |flushed| Passes {
            cell: [even(300), even(300)],
            after_read: [even(flushed), even(flushed)],
            after_write: [even(flushed), even(flushed)],
            discarded: None,
        };
        let is_proved = |flushed| passes(flushed).judge("read", 1, 1).unwrap().proved();
        assert_eq!([330, 300, 400].map(is_proved), [false, false, true]);
    }

    #[test]
    fn no_lines_are_no_proof() {
        let none = || Pass::new(Vec::new(), Vec::new());
        let passes = Passes {
            cell: [none(), none()],
            after_read: [none(), none()],
            after_write: [none(), none()],
            discarded: Some(none()),
        };
        assert!(!passes.judge("write-discard", 1, 1).unwrap().proved());
    }
}
