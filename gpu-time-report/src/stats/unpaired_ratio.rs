//! The change between runs of two programs that were not paired.

use super::log_ratio::{ALPHA, LogRatio};
use super::student_t::{two_sided_p, two_sided_quantile};

/// The logarithm of the ratio of two medians, and how well it is known.
#[derive(Clone, Copy, Debug)]
pub struct UnpairedRatio {
    log_ratio: f64,
    /// The standard errors towards smaller and towards larger ratios.
    errors: [f64; 2],
    /// The degrees of freedom of the errors.
    degrees: f64,
}

/// The medians of one side, as logarithms.
#[derive(Clone, Debug)]
pub struct SideMedians {
    /// One for each run.
    pub log_medians: Vec<f64>,
    /// The errors of a median within its run, towards shorter and longer times, if they are known.
    pub within: Option<[f64; 2]>,
    /// Half a step of the clock, relative to the median.
    pub half_step: f64,
}

impl UnpairedRatio {
    /// Compares two sides. If both have several runs, uses the differences between runs (Welch's
    /// t-test). Otherwise uses the samples within the runs and the standard deviation `between`
    /// runs that the user assumes. Returns `None` if neither is known.
    pub fn of(base: &SideMedians, new: &SideMedians, between: f64) -> Option<UnpairedRatio> {
        let log_ratio = new.mean() - base.mean();
        if let (Some(base), Some(new)) = (base.error_of_mean(), new.error_of_mean()) {
            let [(ours, our_degrees), (theirs, their_degrees)] = [base, new];
            let variance = ours + theirs;
            let degrees =
                variance.powi(2) / (ours.powi(2) / our_degrees + theirs.powi(2) / their_degrees);
            // Without any spread, as for a series of zeros, the fraction is not a number.
            let degrees = if degrees.is_finite() { degrees } else { our_degrees + their_degrees };
            return Some(UnpairedRatio { log_ratio, errors: [variance.sqrt(); 2], degrees });
        }
        let [base_within, new_within] = [base.within?, new.within?];
        let spread = |side: &SideMedians| {
            let known = side.error_of_mean().map_or(0.0, |(variance, _)| variance.sqrt());
            known.max(between / side.runs().sqrt())
        };
        let between = spread(base).hypot(spread(new));
        // The method of variance estimates recovery (MOVER; Zou and Donner, Statistics in Medicine 27, 2008):
        // each bound of the ratio combines the bounds of the two medians that move it that way.
        let down = new_within[0].hypot(base_within[1]).hypot(between);
        let up = new_within[1].hypot(base_within[0]).hypot(between);
        Some(UnpairedRatio { log_ratio, errors: [down, up], degrees: f64::INFINITY })
    }
}

impl LogRatio for UnpairedRatio {
    fn estimate(&self) -> f64 {
        self.log_ratio
    }

    fn interval(&self) -> Option<[f64; 2]> {
        let distance = two_sided_quantile(ALPHA, self.degrees);
        let [down, up] = self.errors.map(|error| distance * error);
        Some([self.log_ratio - down, self.log_ratio + up])
    }

    fn p_value(&self, truth: f64) -> f64 {
        let distance = self.log_ratio - truth;
        let [down, up] = self.errors;
        two_sided_p(distance / if distance > 0.0 { down } else { up }, self.degrees)
    }
}

impl SideMedians {
    fn runs(&self) -> f64 {
        self.log_medians.len() as f64
    }

    /// Returns the mean of the logarithms.
    pub fn mean(&self) -> f64 {
        self.log_medians.iter().sum::<f64>() / self.runs()
    }

    /// Returns the variance of the mean, from the differences between runs, and its degrees of
    /// freedom. Returns `None` with a single run. The variance of a run is at least that of half a
    /// clock step, because runs may agree to within a step by chance.
    fn error_of_mean(&self) -> Option<(f64, f64)> {
        let (mean, degrees) = (self.mean(), self.runs() - 1.0);
        let squares: f64 = self.log_medians.iter().map(|log| (log - mean).powi(2)).sum();
        (degrees > 0.0)
            .then(|| ((squares / degrees).max(self.half_step.powi(2)) / self.runs(), degrees))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(log_medians: &[f64], within: [f64; 2]) -> SideMedians {
        SideMedians { log_medians: log_medians.to_vec(), within: Some(within), half_step: 0.0 }
    }

    #[test]
    fn several_runs_are_compared_as_by_welch() {
        // Two samples with means 0.02 and 0.05, and variances 1e-4 and 4e-4.
        let base = side(&[0.01, 0.02, 0.03], [0.0; 2]);
        let new = side(&[0.03, 0.05, 0.07], [0.0; 2]);
        let ratio = UnpairedRatio::of(&base, &new, 0.5).unwrap();
        let error = (5e-4f64 / 3.0).sqrt();
        assert!((ratio.log_ratio - 0.03).abs() < 1e-12);
        assert!(ratio.errors.iter().all(|found| (found - error).abs() < 1e-12));
        assert!((ratio.degrees - 25.0 / 8.5).abs() < 1e-9, "{}", ratio.degrees);
    }

    #[test]
    fn single_runs_are_compared_with_the_assumed_spread() {
        let (base, new) = (side(&[0.0], [0.01, 0.02]), side(&[0.1], [0.03, 0.04]));
        let ratio = UnpairedRatio::of(&base, &new, 0.0).unwrap();
        let expected = [0.03f64.hypot(0.02), 0.04f64.hypot(0.01)];
        assert!(ratio.errors.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12));
        let exact = [side(&[0.0], [0.0; 2]), side(&[0.1; 4], [0.0; 2])];
        let errors = UnpairedRatio::of(&exact[0], &exact[1], 0.02).unwrap().errors;
        assert!((errors[0] - 0.02 * 1.25f64.sqrt()).abs() < 1e-12, "{errors:?}");
        let unknown = SideMedians { within: None, ..side(&[0.0], [0.0; 2]) };
        assert!(UnpairedRatio::of(&unknown, &new, 0.02).is_none());
    }

    #[test]
    fn p_value_is_below_alpha_outside_of_the_interval() {
        for shift in [-0.3, -0.08, -0.03, 0.0, 0.02, 0.06, 0.08, 0.3] {
            let base = side(&[0.0, 0.03, 0.01], [0.0; 2]);
            let new = side(&[shift, shift + 0.02, shift + 0.05], [0.0; 2]);
            let ratio = UnpairedRatio::of(&base, &new, 0.0).unwrap();
            let [low, high] = ratio.interval().unwrap();
            for truth in [-0.01, 0.0, 0.01] {
                let is_outside = truth < low || truth > high;
                assert_eq!(ratio.p_value(truth) < ALPHA, is_outside, "{shift} {truth}");
            }
        }
    }

    #[test]
    fn runs_within_clock_step_have_spread() {
        let step = |logs: &[f64]| SideMedians { half_step: 0.003, ..side(logs, [0.0; 2]) };
        let ratio = UnpairedRatio::of(&step(&[0.0; 2]), &step(&[0.006; 2]), 0.0).unwrap();
        assert!(ratio.p_value(0.0) > ALPHA);
    }
}
