//! Proof that a flush evicts the L2, based on the read latencies of single lines.

use crate::stats::quantile::quantile;
use gpu_time_report::{Eviction, value};

/// The minimum fraction of lines that must be evicted.
const ENOUGH: f64 = 0.99;
/// The minimum fraction of discarded lines that must be gone, to show that discarding works. On an
/// H200, a tenth to a quarter of the discarded lines read like hits, although none is written back.
/// After plain writes, four in five do.
const ENOUGH_DISCARDED: f64 = 0.5;
/// The quantile of hit latencies that separates hits from misses.
const HIT_QUANTILE: f64 = 0.9;
/// The smallest ratio of the median miss latency to the threshold.
const MISS_RATIO: f64 = 1.25;
/// The largest ratio of the first to the second read time of a line that hits without a flush. Hit
/// latencies differ as well, because a line may be in the far half of the L2.
const UNDISTURBED: f64 = 1.5;

/// Sorted read latencies of single lines, in cycles.
pub(crate) struct Pass {
    /// The first read of each line.
    first: Vec<u32>,
    /// The second read, right after the first: hits.
    again: Vec<u32>,
}

/// The passes of a proof. All lines read in a pass were in the L2 before it.
pub(crate) struct Passes {
    /// Without a flush: after the lines were read, and after they were written.
    pub without_flush: [Pass; 2],
    /// With a flush, after the lines were read: with a full L2, and with one that had just been
    /// flushed.
    pub after_read: [Pass; 2],
    /// With a flush, after the lines were written, in the same two L2 states.
    pub after_write: [Pass; 2],
    /// The flush's own lines after the flush, if it discards them.
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
    /// Judges a flush of `bytes`, which is `multiple` times the reported L2 size. Returns `None` if
    /// the lines were gone even without a flush, because other work on the GPU had evicted them.
    pub fn judge(&self, method: &str, multiple: u32, bytes: u64) -> Option<Eviction> {
        let Passes { without_flush, after_read, after_write, discarded } = self;
        let hit_cycles = without_flush.iter().map(|pass| cycles_at(&pass.again, 0.5)).max()?;
        let is_kept = |pass: &Pass| {
            f64::from(cycles_at(&pass.first, 0.5)) <= UNDISTURBED * f64::from(hit_cycles)
        };
        if !without_flush.iter().all(is_kept) {
            return None;
        }
        let threshold =
            without_flush.iter().map(|pass| cycles_at(&pass.first, HIT_QUANTILE)).max()?;
        // The fraction of hits above the threshold. They would count as misses even with every line
        // still in the L2.
        let slow_hits =
            without_flush.iter().map(|pass| pass.share_above(threshold)).fold(0.0, f64::max);
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
        // Without this check, a GPU that has become slightly slower would appear to miss.
        let are_apart =
            miss_cycles.is_some_and(|miss| f64::from(miss) >= MISS_RATIO * f64::from(threshold));
        let least = |passes: &[Pass; 2]| passes.iter().map(missed).fold(1.0, f64::min);
        let (missed_after_read, missed_after_write) = (least(after_read), least(after_write));
        let missed_discarded = discarded.as_ref().map(missed);
        let are_gone = missed_after_read.min(missed_after_write) >= ENOUGH;
        let are_discarded = missed_discarded.is_none_or(|missed| missed >= ENOUGH_DISCARDED);
        Some(value!(Eviction {
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
        }))
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

    /// Returns a pass over 1,000 lines, of which `missing` miss. A quarter of the hits are in the
    /// far half of the L2.
    fn pass(missing: u32) -> Pass {
        let hit = |i: u32| if i.is_multiple_of(4) { 450 + i % 60 } else { 280 + i % 60 };
        let first = (0..LINES).map(|i| if i < missing { 540 + i % 400 } else { hit(i) });
        Pass::new(first.collect(), (0..LINES).map(|i| 280 + i % 60).collect())
    }

    fn passes(without_flush: u32, after_read: u32, after_write: u32) -> Passes {
        Passes {
            without_flush: [pass(0), pass(without_flush)],
            after_read: [pass(after_read), pass(LINES)],
            after_write: [pass(after_write), pass(LINES)],
            discarded: None,
        }
    }

    fn judge(without_flush: u32, after_read: u32, after_write: u32) -> Option<Eviction> {
        passes(without_flush, after_read, after_write).judge("read", 1, 1 << 20)
    }

    #[test]
    fn misses_are_counted() {
        let seen = judge(0, LINES, 995).unwrap();
        assert!(seen.proved, "{seen:?}");
        assert_eq!((seen.lines, seen.missed_after_read), (LINES, 1.0));
        assert!((seen.missed_after_write - 0.995).abs() < 0.001, "{seen:?}");
        assert!(seen.threshold_cycles > 340 && seen.threshold_cycles < 540, "{seen:?}");
        assert!(seen.miss_cycles.is_some_and(|miss| miss > 700), "{seen:?}");
    }

    #[test]
    fn read_and_written_lines_must_be_evicted() {
        assert!(!judge(0, LINES, 970).unwrap().proved);
        assert!(!judge(0, 970, LINES).unwrap().proved);
        let nothing = judge(0, 0, 0).unwrap();
        assert!(!nothing.proved);
        assert!(nothing.missed_after_read < 0.001, "{nothing:?}");
    }

    /// The L2 was full before the flush, or had just been flushed.
    #[test]
    fn each_l2_state_must_prove_eviction() {
        let all = || passes(0, LINES, LINES);
        let after_read = Passes { after_read: [pass(LINES), pass(970)], ..all() };
        let after_write = Passes { after_write: [pass(LINES), pass(970)], ..all() };
        let shares = [after_read, after_write].map(|passes| {
            let seen = passes.judge("read", 1, 1 << 20).unwrap();
            assert!(!seen.proved, "{seen:?}");
            (seen.missed_after_read, seen.missed_after_write)
        });
        assert!(shares[0].0 < 0.98 && shares[0].1 > 0.99, "{shares:?}");
        assert!(shares[1].0 > 0.99 && shares[1].1 < 0.98, "{shares:?}");
    }

    /// If most written lines are still present, the L2 is dirty.
    #[test]
    fn discarded_lines_must_miss() {
        let discarded = |missing| {
            let passes = Passes { discarded: Some(pass(missing)), ..passes(0, LINES, LINES) };
            passes.judge("write-discard", 1, 1 << 20).unwrap()
        };
        assert!(discarded(750).proved);
        assert!(!discarded(200).proved);
        assert!(discarded(0).missed_discarded.is_some_and(|missed| missed < 0.001));
        assert_eq!(judge(0, LINES, LINES).unwrap().missed_discarded, None);
    }

    /// Slow hits are subtracted from the fraction of misses.
    #[test]
    fn slow_hits_do_not_count_as_misses() {
        let half = judge(0, 500, 500).unwrap();
        assert!((half.missed_after_read - 0.5).abs() < 0.03, "{half:?}");
    }

    #[test]
    fn lines_evicted_without_flush_prove_nothing() {
        assert_eq!(judge(LINES, LINES, LINES), None);
        // If 400 lines are gone without a flush, hits and misses are too close together.
        assert!(judge(400, LINES, LINES).is_none_or(|seen| !seen.proved));
    }

    #[test]
    fn slower_gpu_does_not_miss() {
        let even = |cycles| Pass::new(vec![cycles; 100], vec![cycles; 100]);
        let passes = |flushed| Passes {
            without_flush: [even(300), even(300)],
            after_read: [even(flushed), even(flushed)],
            after_write: [even(flushed), even(flushed)],
            discarded: None,
        };
        let is_proved = |flushed| passes(flushed).judge("read", 1, 1).unwrap().proved;
        assert_eq!([330, 300, 400].map(is_proved), [false, false, true]);
    }

    #[test]
    fn empty_passes_prove_nothing() {
        let none = || Pass::new(Vec::new(), Vec::new());
        let passes = Passes {
            without_flush: [none(), none()],
            after_read: [none(), none()],
            after_write: [none(), none()],
            discarded: Some(none()),
        };
        assert!(!passes.judge("write-discard", 1, 1).unwrap().proved);
    }
}
