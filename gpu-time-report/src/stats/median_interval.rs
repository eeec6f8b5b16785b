//! The confidence interval of the median of a set of times.

use super::buckets::step_ns;
use super::dependence::Dependence;
use super::looks::error_of_look;
use super::median_ranks::median_rank;
use super::summary::Summary;

/// The resolution of CUDA events on the GPUs that were measured.
const EVENT_STEP_NS: f64 = 32.0;

/// The minimum number of times that have an interval. Fewer cannot show dependence well enough:
/// among series whose neighbours correlate by 0.5, more than 5 % would have a wrong interval.
pub const FEWEST_WITH_INTERVAL: u64 = 20;

impl Summary {
    /// Returns the 95 % confidence interval of the median at the given look, or `None` with fewer than
    /// 20 times or too few independent ones. It contains the reported median.
    pub fn median_interval(&self, dependence: &Dependence, looks: u32) -> Option<[f64; 2]> {
        let (count, error) = (self.histogram.count() as f64, error_of_look(looks));
        if self.histogram.count() < FEWEST_WITH_INTERVAL {
            return None;
        }
        let independent = dependence.counted(error)?.min(count);
        let rank = median_rank(independent, error)?;
        // Scale the rank from the independent times to all times.
        let rank = (rank - 0.5) / independent * count + 0.5;
        let (low, high) =
            (self.histogram.around_rank(rank), self.histogram.around_rank(count + 1.0 - rank));
        let gap = (0.25 * (high.0[1] - low.0[0])).max(1.5 * EVENT_STEP_NS);
        // Between two modes there are no times to interpolate, so use whole ranks.
        let whole = |rank: f64| self.histogram.at_rank(rank as u64);
        let between = |([below, above], share): ([f64; 2], f64), outer: f64| {
            if above - below <= gap { below + (above - below) * share } else { outer }
        };
        let outer = [whole(rank.floor()), whole((count + 1.0 - rank).ceil())];
        let (low, high) = (between(low, outer[0]), between(high, outer[1]));
        let offset = self.offset();
        // Sums in another order have other rounding errors, which a tenth of a nanosecond hides.
        let round = |ns: f64| (10.0 * ns).round() / 10.0;
        let within = |ns: f64| round(ns + offset).max(self.moments.min()).min(self.moments.max());
        let median = self.at_rank(self.histogram.count().div_ceil(2));
        Some([within(low).min(median), within(high).max(median)])
    }

    /// Returns the mean distance of the times from the middles of their buckets. It is not zero if
    /// a coarse clock puts all times at the same place in a bucket.
    fn offset(&self) -> f64 {
        let middles: f64 = self.histogram.iter().map(|(ns, count)| ns * count as f64).sum();
        let offset = (self.moments.sum() - middles) / self.moments.count() as f64;
        let half = step_ns(self.at_rank(self.histogram.count().div_ceil(2))) / 2.0;
        offset.clamp(-half, half)
    }
}
