//! Dependence of consecutive times, estimated from the sums of batches.

use serde::{Deserialize, Serialize};

use super::median_ranks::normal_quantile;
use crate::merge::join;

/// The maximum number of batches.
pub(super) const BATCHES: usize = 64;
/// The minimum number of batches that show a trend or modes.
const FEWEST_SHOWN: usize = 32;
/// The minimum number of batches whose variance is meaningful.
const FEWEST: usize = 8;
/// The minimum estimate of the number of independent times. Any lower estimate is too rough.
const FEWEST_ESTIMATED: f64 = 15.0;
/// Divided by the root of the number of values, the correlation of neighbours that independent
/// values exceed with a probability of 5 %.
const NOISE: f64 = 1.64;
/// The number of values below which that bound no longer rises. Fewer independent values often
/// exceed it, but they are too few to tell chance from dependence.
const FEWEST_TOLD: f64 = BATCHES as f64;
/// The minimum share of the variance of the means that two modes explain.
const MODES_SHARE: f64 = 0.85;

/// The number of independent times behind a median, and the changes that batches of the times show.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Dependence {
    /// The number of independent times that would determine the median as precisely as these times do.
    pub independent: f64,
    /// The number of batches behind the estimate. `None` if the times count as independent.
    pub batches: Option<u32>,
    /// A straight line through the means of the batches. `None` with too few.
    pub trend: Option<Trend>,
    /// Two levels between which the means of the batches rarely switch.
    pub modes: Option<Modes>,
    /// The modes of earlier, shorter batches.
    pub past_modes: Option<Modes>,
}

/// A straight line through the means of batches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Trend {
    /// The change from the first time to the last, in nanoseconds.
    pub change_ns: f64,
    /// Its standard error.
    pub error_ns: f64,
}

/// Two levels of the means of batches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Modes {
    /// The difference of the levels, in nanoseconds.
    pub apart_ns: f64,
    /// The number of switches.
    pub switches: u32,
}

impl Dependence {
    /// Returns the dependence of `count` independent times.
    pub fn none(count: u64) -> Dependence {
        Dependence {
            independent: count as f64,
            batches: None,
            trend: None,
            modes: None,
            past_modes: None,
        }
    }

    /// Adds the times of another process, which do not depend on these.
    pub fn merge(&mut self, other: &Dependence) {
        self.independent += other.independent;
        join(&mut self.batches, other.batches, |ours, theirs| *ours = theirs.min(*ours));
        (self.trend, self.modes, self.past_modes) = (None, None, None);
    }

    /// Returns the number of independent times to use for an interval that may miss the median with
    /// a probability of `error`, or `None` if they are too few to tell.
    ///
    /// An estimated number is divided by the square of the ratio of Student's quantile to the
    /// normal one (the expansion of Cornish and Fisher).
    pub(super) fn counted(&self, error: f64) -> Option<f64> {
        let Some(batches) = self.batches else { return Some(self.independent) };
        let (z2, degrees) = (normal_quantile(error).powi(2), f64::from(batches) - 1.0);
        let first = (z2 + 1.0) / (4.0 * degrees);
        let second = (5.0 * z2 * z2 + 16.0 * z2 + 3.0) / (96.0 * degrees * degrees);
        let counted = self.independent / (1.0 + first + second).powi(2);
        (self.independent >= FEWEST_ESTIMATED).then_some(counted)
    }

    /// Computes the dependence of `count` times with this variance from the sums of batches of
    /// `length` times each.
    pub(super) fn of_batches(sums: &[f64], length: u64, count: u64, variance: f64) -> Dependence {
        let mut found = Dependence::none(count);
        let mut copy = [0.0; BATCHES];
        let Some(mut joined) = copy.get_mut(..sums.len()) else { return found };
        if joined.len() < FEWEST || variance.is_nan() || variance <= 0.0 {
            return found;
        }
        joined.copy_from_slice(sums);
        let (mut length, mut is_known) = (length as f64, false);
        while joined.len() >= FEWEST {
            let means = Means::of(joined, length);
            if !is_known {
                let batches = joined.len() as f64;
                let is_first = joined.len() == sums.len();
                let alike = means.alike();
                let inflation = length * means.variance() / variance;
                // The standard error of the inflation of independent times.
                let noise = (2.0 / (batches - 1.0)).sqrt();
                is_known = if is_first {
                    alike <= NOISE / batches.max(FEWEST_TOLD).sqrt()
                } else {
                    alike <= 1.3 / batches.sqrt()
                };
                if !(is_first && is_known && inflation <= 1.0 + noise) {
                    let alike = alike.clamp(0.0, 0.99);
                    let inflation = inflation * (1.0 + alike) / (1.0 - alike);
                    // Longer batches are fewer, and in a short series their means vary less.
                    found.independent = found.independent.min(count as f64 / inflation);
                    found.batches = Some(joined.len() as u32);
                }
            }
            if joined.len() >= FEWEST_SHOWN {
                found.trend = Some(means.trend());
                found.modes = found.modes.or(means.modes());
            }
            let pairs = join_pairs(joined);
            joined = joined.get_mut(..pairs).unwrap_or_default();
            length *= 2.0;
        }
        found
    }
}

/// Adds up neighbours in place, and returns the number of sums.
pub(super) fn join_pairs(sums: &mut [f64]) -> usize {
    let pairs = sums.len() / 2;
    for pair in 0..pairs {
        let both = sums.iter().skip(2 * pair).take(2).sum();
        if let Some(sum) = sums.get_mut(pair) {
            *sum = both;
        }
    }
    pairs
}

/// Sorts a few values by insertion. The standard library's quicksort takes kilobytes of stack in an
/// unoptimised build, which a small stack may lack.
pub(super) fn sort(values: &mut [f64]) {
    for end in 1..=values.len() {
        let Some([sorted @ .., last]) = values.get_mut(..end) else { return };
        let at = sorted.partition_point(|value| value <= last);
        if let Some(moved) = values.get_mut(at..end) {
            moved.rotate_right(1);
        }
    }
}

/// The means of batches of equal length.
pub(super) struct Means<'a> {
    sums: &'a [f64],
    length: f64,
    mean: f64,
}

impl<'a> Means<'a> {
    pub fn of(sums: &'a [f64], length: f64) -> Means<'a> {
        let mean = sums.iter().sum::<f64>() / (length * sums.len() as f64);
        Means { sums, length, mean }
    }

    /// Returns the distance of each batch's mean from the mean of all.
    fn distances(&self) -> impl Iterator<Item = f64> + Clone {
        self.sums.iter().map(|sum| sum / self.length - self.mean)
    }

    fn squares(&self) -> f64 {
        self.distances().map(|distance| distance * distance).sum()
    }

    fn variance(&self) -> f64 {
        self.squares() / (self.sums.len() - 1) as f64
    }

    /// Returns the correlation of neighbours.
    fn alike(&self) -> f64 {
        let squares = self.squares();
        let products: f64 =
            self.distances().zip(self.distances().skip(1)).map(|(a, b)| a * b).sum();
        let found = if squares > 0.0 { products / squares } else { 0.0 };
        // The mean is estimated from the same values, which lowers the correlation. Correct for
        // that.
        found + (1.0 + 3.0 * found) / self.sums.len() as f64
    }

    /// Fits a straight line by least squares.
    fn trend(&self) -> Trend {
        let n = self.sums.len() as f64;
        let middle = (n - 1.0) / 2.0;
        let steps = n * (n * n - 1.0) / 12.0;
        let slope =
            self.distances().enumerate().map(|(at, d)| (at as f64 - middle) * d).sum::<f64>()
                / steps;
        let rest = (self.squares() - slope * slope * steps).max(0.0) / (n - 2.0);
        Trend { change_ns: slope * n, error_ns: n * (rest / steps).sqrt() }
    }

    /// Returns the two levels of the best split into low and high means. They must explain nearly
    /// all of the variance, where a split of normal values explains 64 % and one of a straight line
    /// 75 %, and the means must rarely switch between them.
    pub fn modes(&self) -> Option<Modes> {
        let mut sorted = [0.0; BATCHES];
        let sorted = sorted.get_mut(..self.sums.len())?;
        sorted.iter_mut().zip(self.distances()).for_each(|(sorted, d)| *sorted = d);
        sort(sorted);
        let n = sorted.len() as f64;
        // The distances add up to 0, so the sum of one part gives that of the other.
        let (mut below, mut best) = (0.0, (0.0, 0.0, 0.0));
        for (at, distance) in sorted.iter().enumerate().take(sorted.len() - 1) {
            below += distance;
            let (few, many) = ((at + 1) as f64, n - (at + 1) as f64);
            let between = below * below * (1.0 / few + 1.0 / many);
            if between > best.0 {
                best = (between, *distance, -below / many - below / few);
            }
        }
        let (between, edge, apart_ns) = best;
        let (mut switches, mut was_above) = (0, None);
        for distance in self.distances() {
            let is_above = distance > edge;
            switches += u32::from(was_above.is_some_and(|was_above| was_above != is_above));
            was_above = Some(is_above);
        }
        let is_split =
            between > MODES_SHARE * self.squares() && switches as usize * 4 <= self.sums.len();
        is_split.then_some(Modes { apart_ns, switches })
    }
}
