//! Sums of times by batches in the order of recording, which show how far consecutive times depend
//! on each other.
//!
//! The method of batch means: if the times are independent, the variance of the means of batches of
//! `length` times is one `length`-th of the variance of the times. It is larger if neighbours are
//! alike, for any reason. The ratio, called the inflation, is the number of dependent times that
//! are worth one independent time. Batches must be longer than the dependence lasts, so they are
//! joined until neighbouring means are no longer alike (G. S. Fishman, "Grouping observations in
//! digital simulation", 1978).

use super::buckets::step_ns;
use super::dependence::{BATCHES, Dependence, Means, Modes, join_pairs, sort};

/// The share of the recent times beyond an edge above which the edge moves. A quarter of the times
/// is beyond each edge while the middle half stays between the edges.
const MOVED: f64 = 0.4;

/// The distance beyond an edge at which a time is clamped before it can move the edge, as a
/// multiple of the width between the edges.
const MOST_WIDTHS: f64 = 32.0;

/// The number of the first 64 times that lie beyond their quartiles.
const HALF: u64 = BATCHES as u64 / 2;

/// The number of batches after which the edges may move.
const FOLLOWED: usize = 8;

/// Records times in batches of equal length. When all 64 batches are complete, neighbours are
/// joined, so there are from 32 to 64 afterwards.
///
/// Times beyond an edge count as the edge, so that a few long times cannot hide the dependence of
/// the times around the median. The edges are the quartiles of the first 64 times. An edge moves
/// outwards if more than 40 % of the recent times lie beyond it.
///
/// Never allocates.
#[derive(Clone, Debug)]
pub struct Batches {
    /// The sum of each batch. All sums are of distances from `origin`.
    sums: [f64; BATCHES],
    /// The number of complete batches.
    complete: usize,
    /// The number of times in a batch.
    length: u64,
    /// The batch in progress.
    last: Sum,
    squares: f64,
    origin: f64,
    low: Edge,
    high: Edge,
    /// The number of times beyond an edge.
    beyond: u64,
    /// The modes with the largest distance that were found when batches were joined. Joining hides
    /// modes that last for less than a batch.
    modes: Option<Modes>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    ns: f64,
}

/// A bound of the times, and the recent times beyond it.
#[derive(Clone, Copy, Debug)]
struct Edge {
    ns: f64,
    beyond: Sum,
}

impl Edge {
    fn at(ns: f64) -> Edge {
        Edge { ns, beyond: Sum::default() }
    }

    /// Counts a time beyond the edge, and returns the edge. `other` is the edge on the other side.
    fn cut(&mut self, ns: f64, other: f64) -> f64 {
        let most = MOST_WIDTHS * (self.ns - other).abs();
        self.beyond.count += 1;
        // Equal edges have no width to clamp to.
        self.beyond.ns += if most > 0.0 { (ns - self.ns).clamp(-most, most) } else { ns - self.ns };
        self.ns
    }

    /// Moves outwards to the mean of the times beyond, if these are too many among the last `all`
    /// times.
    fn follow(&mut self, Sum { count, ns }: Sum, all: u64, is_narrow: bool) {
        let share = if is_narrow { 0.0 } else { MOVED };
        if count as f64 > share * all as f64 {
            self.ns += ns / count as f64;
        }
    }
}

impl Default for Batches {
    fn default() -> Self {
        Batches {
            sums: [0.0; BATCHES],
            complete: 0,
            length: 1,
            last: Sum::default(),
            squares: 0.0,
            origin: 0.0,
            low: Edge::at(f64::NEG_INFINITY),
            high: Edge::at(f64::INFINITY),
            beyond: 0,
            modes: None,
        }
    }
}

impl Batches {
    /// Records one time.
    #[inline]
    pub fn record(&mut self, ns: f64) {
        if self.complete == 0 && self.last.count == 0 {
            self.origin = ns;
        }
        let mut within = ns;
        if ns < self.low.ns {
            within = self.low.cut(ns, self.high.ns);
        } else if ns > self.high.ns {
            within = self.high.cut(ns, self.low.ns);
        }
        self.beyond += u64::from(within != ns);
        let distance = within - self.origin;
        self.squares += distance * distance;
        self.last.count += 1;
        self.last.ns += distance;
        if self.last.count == self.length {
            self.complete();
        }
    }

    /// Ends the batch in progress.
    #[inline]
    fn complete(&mut self) {
        if let Some(sum) = self.sums.get_mut(self.complete) {
            *sum = self.last.ns;
        }
        self.complete += 1;
        self.last = Sum::default();
        if self.complete.is_multiple_of(FOLLOWED) {
            let recent = FOLLOWED as u64 * self.length;
            let is_narrow = self.low.ns == self.high.ns;
            for edge in [&mut self.low, &mut self.high] {
                let beyond = std::mem::take(&mut edge.beyond);
                if recent >= BATCHES as u64 {
                    edge.follow(beyond, recent, is_narrow);
                }
            }
        }
        if self.complete == BATCHES {
            self.join();
        }
    }

    /// Joins neighbouring batches.
    #[cold]
    fn join(&mut self) {
        if self.length == 1 {
            // Each batch is still a single time.
            let ([low, high], squares) = cut(&mut self.sums);
            self.squares = squares;
            self.beyond = HALF;
            (self.low, self.high) = (Edge::at(self.origin + low), Edge::at(self.origin + high));
        }
        let modes = Means::of(&self.sums, self.length as f64).modes();
        let apart = |modes: Modes| modes.apart_ns;
        if modes.map_or(0.0, apart) > self.modes.map_or(0.0, apart) {
            self.modes = modes;
        }
        self.complete = join_pairs(&mut self.sums);
        self.length *= 2;
    }

    /// Returns the number of times.
    pub fn count(&self) -> u64 {
        self.length * self.complete as u64 + self.last.count
    }

    /// Returns how far the times depend on each other.
    pub fn dependence(&self) -> Dependence {
        let mut sums = self.sums;
        let count = self.count();
        let sums = sums.get_mut(..self.complete).unwrap_or_default();
        let mut squares = self.squares;
        let mut beyond = self.beyond;
        if self.length == 1 {
            (_, squares) = cut(sums);
            beyond = count / 2;
        }
        let within = (1.0 - beyond as f64 / count as f64).max(0.25);
        let sum = sums.iter().sum::<f64>() + self.last.ns;
        let variance = (squares - sum * sum / count as f64) / (count as f64 - 1.0);
        // The histogram cannot tell these times apart.
        if variance.sqrt() < step_ns(self.origin) / 2.0 {
            return Dependence::none(count);
        }
        let past_modes = self.modes;
        let mut found = Dependence::of_batches(sums, self.length, count, variance);
        if let Some(trend) = &mut found.trend {
            // Times beyond the edges are clamped, so only the others move a mean.
            trend.change_ns /= within;
            trend.error_ns /= within;
        }
        Dependence { past_modes, ..found }
    }
}

/// Clamps single values to their quartiles. Returns the quartiles and the sum of the squares.
fn cut(values: &mut [f64]) -> ([f64; 2], f64) {
    let [low, high] = quartiles(values);
    values.iter_mut().for_each(|value| *value = value.clamp(low, high));
    ([low, high], values.iter().map(|value| value * value).sum())
}

/// Returns the quartiles, or, if these are equal, the nearest other values around them.
fn quartiles(values: &[f64]) -> [f64; 2] {
    let mut sorted = [0.0; BATCHES];
    let Some(sorted) = sorted.get_mut(..values.len()) else { return [0.0; 2] };
    sorted.copy_from_slice(values);
    sort(sorted);
    let at = |index: usize| sorted.get(index).copied().unwrap_or_default();
    let [low, high] = [at(sorted.len() / 4), at(3 * sorted.len() / 4)];
    if low < high {
        return [low, high];
    }
    let below = sorted.iter().rev().find(|value| **value < low);
    let above = sorted.iter().find(|value| **value > high);
    [below.copied().unwrap_or(low), above.copied().unwrap_or(high)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: impl IntoIterator<Item = f64>) -> Batches {
        let mut batches = Batches::default();
        times.into_iter().for_each(|ns| batches.record(ns));
        batches
    }

    #[test]
    fn every_time_is_counted() {
        for count in [0u32, 1, 63, 64, 65, 1_000, 100_000] {
            let batches = of((0..count).map(|i| f64::from(i % 7)));
            assert_eq!(batches.count(), u64::from(count));
            assert!(batches.complete < BATCHES, "{count}");
        }
    }

    #[test]
    fn equal_times_count_as_independent() {
        for count in [1, 63, 64, 1_000] {
            let found = of(vec![10_016.0; count]).dependence();
            assert_eq!((found.independent, found.batches), (count as f64, None));
            assert_eq!(found.modes, None);
        }
    }

    /// Each time occurs 20 times in a row.
    #[test]
    fn repeated_times_count_once() {
        let mut random = fastrand::Rng::with_seed(1);
        let times = (0..1_000).flat_map(|_| std::iter::repeat_n(1e4 + 1e3 * random.f64(), 20));
        let found = of(times).dependence().independent;
        assert!((600.0..1_400.0).contains(&found), "{found}");
    }

    /// A few long times, as after page faults, do not hide the dependence of the others.
    #[test]
    fn outliers_do_not_hide_dependence() {
        let mut random = fastrand::Rng::with_seed(2);
        let times: Vec<f64> = (0..20_000)
            .map(|i| {
                let mode = f64::from(i / 500 % 2) * 100.0;
                let outlier = if random.u32(..50) == 0 { 1e6 } else { 0.0 };
                1e4 + mode + 20.0 * random.f64() + outlier
            })
            .collect();
        let found = of(times).dependence().independent;
        assert!(found < 400.0, "{found}");
    }

    #[test]
    fn edges_follow_times_that_move_away() {
        let found = of((0..20_000).map(|i| 1e4 + f64::from(i) / 10.0)).dependence();
        let trend = found.trend.unwrap();
        assert!(trend.change_ns > 1_000.0 && trend.change_ns > 8.0 * trend.error_ns, "{trend:?}");
        assert!(found.independent < 10.0, "{found:?}");
    }

    #[test]
    fn edges_stay_while_the_times_do() {
        let mut random = fastrand::Rng::with_seed(4);
        let mut moves = || {
            let mut batches = of((0..64).map(|_| 1e4 + 1e3 * random.f64()));
            let edges = |batches: &Batches| (batches.low.ns, batches.high.ns);
            let first = edges(&batches);
            (64..320).for_each(|_| batches.record(1e4 + 1e3 * random.f64()));
            edges(&batches) != first
        };
        let moved = (0..200).filter(|_| moves()).count();
        assert!(moved < 20, "{moved} of 200 series");
    }

    #[test]
    fn lasting_modes_are_found() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut of_stay =
            |stay| of((0..6_000).map(|i| 1e4 + f64::from(i / stay % 2) * 1e3 + random.f64()));
        let modes = of_stay(1_000).dependence().modes.unwrap();
        assert!((900.0..1_100.0).contains(&modes.apart_ns) && modes.switches >= 5, "{modes:?}");
        assert_eq!(of_stay(1).dependence().modes, None);
    }
}
