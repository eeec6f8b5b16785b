//! What a flush was seen to evict: the proof that cold is cold.

use serde::Serialize;

/// So many of the lines must have gone.
const ENOUGH: f64 = 0.99;
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
    pub kept: [Pass; 2],
    /// With a flush between, after they had been read.
    pub after_read: Pass,
    /// The same after they had been written.
    pub after_write: Pass,
}

/// How much of the L2 a flush of some size was seen to evict.
///
/// A line missed if it took longer to read than nearly all lines that the same L2 was known to hold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Eviction {
    proved: bool,
    multiple: u32,
    bytes: u64,
    lines: u32,
    missed_after_read: f64,
    missed_after_write: f64,
    hit_cycles: u32,
    miss_cycles: Option<u32>,
    threshold_cycles: u32,
}

/// What was seen of the two kinds of flush on a device, each `None` if it was not prepared or nothing
/// could be seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlushProof {
    pub(crate) clean: Option<Eviction>,
    pub(crate) dirty: Option<Eviction>,
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

impl Eviction {
    /// What a flush of so many bytes, so many times the reported L2, did; `None` where the lines were
    /// not there even without it, because other work on the GPU had evicted them.
    pub(crate) fn judge(multiple: u32, bytes: u64, passes: &Passes) -> Option<Eviction> {
        let Passes { kept, after_read, after_write } = passes;
        let hit_cycles = kept.iter().map(|pass| quantile(&pass.again, 0.5)).max()?;
        let is_kept = |pass: &Pass| {
            f64::from(quantile(&pass.first, 0.5)) <= UNDISTURBED * f64::from(hit_cycles)
        };
        if !kept.iter().all(is_kept) {
            return None;
        }
        let threshold = kept.iter().map(|pass| quantile(&pass.first, MOST_HITS)).max()?;
        // Some hits take longer than the threshold: were all lines still there, so many would seem to
        // have missed.
        let slow_hits = kept.iter().map(|pass| pass.share_above(threshold)).fold(0.0, f64::max);
        let missed =
            |pass: &Pass| ((pass.share_above(threshold) - slow_hits) / (1.0 - slow_hits)).max(0.0);
        let mut slow: Vec<u32> = [after_read, after_write]
            .into_iter()
            .flat_map(|pass| &pass.first)
            .copied()
            .filter(|&cycles| cycles > threshold)
            .collect();
        slow.sort_unstable();
        let miss_cycles = (!slow.is_empty()).then(|| quantile(&slow, 0.5));
        // Else a GPU that has become a little slower would pass for one that misses.
        let are_apart =
            miss_cycles.is_some_and(|miss| f64::from(miss) >= APART * f64::from(threshold));
        let (missed_after_read, missed_after_write) = (missed(after_read), missed(after_write));
        Some(Eviction {
            proved: are_apart && missed_after_read.min(missed_after_write) >= ENOUGH,
            multiple,
            bytes,
            lines: after_read.first.len() as u32,
            missed_after_read,
            missed_after_write,
            hit_cycles,
            miss_cycles,
            threshold_cycles: threshold,
        })
    }

    /// Whether at least 99 % of the lines missed, after reads and after writes.
    pub fn proved(&self) -> bool {
        self.proved
    }

    /// The flush's size as a multiple of the L2 that the driver reports.
    pub fn multiple(&self) -> u32 {
        self.multiple
    }

    /// The flush's size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many lines were watched.
    pub fn lines(&self) -> u32 {
        self.lines
    }

    /// The share of lines, read before the flush, that missed after it.
    pub fn missed_after_read(&self) -> f64 {
        self.missed_after_read
    }

    /// The share of lines, written before the flush, that missed after it.
    pub fn missed_after_write(&self) -> f64 {
        self.missed_after_write
    }

    /// Median latency of a hit, in cycles of the SM's clock.
    pub fn hit_cycles(&self) -> u32 {
        self.hit_cycles
    }

    /// Median latency of the lines that missed, in the same cycles.
    pub fn miss_cycles(&self) -> Option<u32> {
        self.miss_cycles
    }

    /// What takes longer than this is a miss, in the same cycles: nearly all lines known to be in the
    /// L2 took less.
    pub fn threshold_cycles(&self) -> u32 {
        self.threshold_cycles
    }
}

impl FlushProof {
    /// Of `cold`, which reads.
    pub fn clean(&self) -> Option<&Eviction> {
        self.clean.as_ref()
    }

    /// Of `cold = "dirty"`, which writes.
    pub fn dirty(&self) -> Option<&Eviction> {
        self.dirty.as_ref()
    }
}

/// Of sorted values; 0 where there are none.
fn quantile(sorted: &[u32], q: f64) -> u32 {
    let at = (sorted.len() as f64 * q) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
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

    fn judge(kept: u32, after_read: u32, after_write: u32) -> Option<Eviction> {
        let passes = Passes {
            kept: [pass(0), pass(kept)],
            after_read: pass(after_read),
            after_write: pass(after_write),
        };
        Eviction::judge(1, 1 << 20, &passes)
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
            kept: [even(300), even(300)],
            after_read: even(flushed),
            after_write: even(flushed),
        };
        assert!(!Eviction::judge(1, 1, &passes(330)).unwrap().proved());
        assert!(!Eviction::judge(1, 1, &passes(300)).unwrap().proved());
        assert!(Eviction::judge(1, 1, &passes(400)).unwrap().proved());
    }

    #[test]
    fn no_lines_are_no_proof() {
        let none = || Pass::new(Vec::new(), Vec::new());
        let passes = Passes { kept: [none(), none()], after_read: none(), after_write: none() };
        assert!(!Eviction::judge(1, 1, &passes).unwrap().proved());
    }
}
