//! The evidence for a change between runs that were not paired.

use gpu_time_report::student_t::{two_sided_p, two_sided_quantile};

/// The accepted probability of any false verdict, over all series together.
pub const ALPHA: f64 = 0.05;

/// The logarithm of the ratio of two medians, and how well it is known.
#[derive(Clone, Copy, Debug)]
pub struct Evidence {
    pub log_ratio: f64,
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

impl Evidence {
    /// Compares two sides. If both have several runs, uses the differences between runs (Welch's
    /// t-test). Otherwise uses the samples within the runs and the standard deviation `between`
    /// runs that the user assumes. Returns `None` if neither is known.
    pub fn of(base: &SideMedians, new: &SideMedians, between: f64) -> Option<Evidence> {
        let log_ratio = new.mean() - base.mean();
        if let (Some(base), Some(new)) = (base.error_of_mean(), new.error_of_mean()) {
            let [(ours, our_degrees), (theirs, their_degrees)] = [base, new];
            let variance = ours + theirs;
            let degrees =
                variance.powi(2) / (ours.powi(2) / our_degrees + theirs.powi(2) / their_degrees);
            // Without any spread, as for a series of zeros, the fraction is not a number.
            let degrees = if degrees.is_finite() { degrees } else { our_degrees + their_degrees };
            return Some(Evidence { log_ratio, errors: [variance.sqrt(); 2], degrees });
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
        Some(Evidence { log_ratio, errors: [down, up], degrees: f64::INFINITY })
    }

    /// Returns the confidence interval of the ratio minus 1.
    pub fn interval(&self) -> [f64; 2] {
        let distance = two_sided_quantile(ALPHA, self.degrees);
        let [down, up] = self.errors.map(|error| distance * error);
        [(self.log_ratio - down).exp() - 1.0, (self.log_ratio + up).exp() - 1.0]
    }

    /// Returns the p-value of the hypothesis that only the biases differ, by `bias_gap` as a share
    /// of the base median.
    pub fn p_value(&self, bias_gap: f64) -> f64 {
        let [down, up] = self.errors;
        let (distance, error) = if self.log_ratio > 0.0 {
            (self.log_ratio - bias_gap.ln_1p(), down)
        } else {
            ((1.0 - bias_gap).max(0.0).ln() - self.log_ratio, up)
        };
        if distance > 0.0 { two_sided_p(distance / error, self.degrees) } else { 1.0 }
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

/// Decides which of several hypotheses to reject, so that the probability of any false rejection is
/// at most [`ALPHA`] (Holm 1979).
pub fn rejected(p_values: &[f64]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&one, &other| p_values[one].total_cmp(&p_values[other]));
    let mut rejected = vec![false; p_values.len()];
    for (left, i) in (1..=p_values.len()).rev().zip(order) {
        if p_values[i] > ALPHA / left as f64 {
            break;
        }
        rejected[i] = true;
    }
    rejected
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
        let evidence = Evidence::of(&base, &new, 0.5).unwrap();
        let error = (5e-4f64 / 3.0).sqrt();
        assert!((evidence.log_ratio - 0.03).abs() < 1e-12);
        assert!(evidence.errors.iter().all(|found| (found - error).abs() < 1e-12));
        assert!((evidence.degrees - 25.0 / 8.5).abs() < 1e-9, "{}", evidence.degrees);
    }

    #[test]
    fn single_runs_are_compared_with_the_assumed_spread() {
        let (base, new) = (side(&[0.0], [0.01, 0.02]), side(&[0.1], [0.03, 0.04]));
        let evidence = Evidence::of(&base, &new, 0.0).unwrap();
        let expected = [0.03f64.hypot(0.02), 0.04f64.hypot(0.01)];
        assert!(evidence.errors.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12));
        let exact = [side(&[0.0], [0.0; 2]), side(&[0.1; 4], [0.0; 2])];
        let errors = Evidence::of(&exact[0], &exact[1], 0.02).unwrap().errors;
        assert!((errors[0] - 0.02 * 1.25f64.sqrt()).abs() < 1e-12, "{errors:?}");
        let unknown = SideMedians { within: None, ..side(&[0.0], [0.0; 2]) };
        assert!(Evidence::of(&unknown, &new, 0.02).is_none());
    }

    #[test]
    fn p_value_is_below_alpha_if_interval_excludes_zero() {
        for shift in [-0.3, -0.08, -0.03, 0.0, 0.02, 0.06, 0.08, 0.3] {
            let base = side(&[0.0, 0.03, 0.01], [0.0; 2]);
            let new = side(&[shift, shift + 0.02, shift + 0.05], [0.0; 2]);
            let evidence = Evidence::of(&base, &new, 0.0).unwrap();
            let [low, high] = evidence.interval();
            for gap in [0.0, 0.01] {
                let excluded = low - gap > 0.0 || high + gap < 0.0;
                assert_eq!(evidence.p_value(gap) < ALPHA, excluded, "{shift} {gap}");
            }
        }
    }

    #[test]
    fn runs_within_clock_step_have_spread() {
        let step = |logs: &[f64]| SideMedians { half_step: 0.003, ..side(logs, [0.0; 2]) };
        let evidence = Evidence::of(&step(&[0.0; 2]), &step(&[0.006; 2]), 0.0).unwrap();
        assert!(evidence.p_value(0.0) > ALPHA);
    }

    #[test]
    fn holm_rejects_stepwise() {
        assert_eq!(rejected(&[0.04, 0.01, 0.02]), [true; 3]);
        assert_eq!(rejected(&[0.04, 0.01, 0.03]), [false, true, false]);
        assert_eq!(rejected(&[0.02, 0.02, 0.02]), [false; 3]);
        assert_eq!(rejected(&[1.0, 0.0]), [false, true]);
        assert_eq!(rejected(&[]), [false; 0]);
    }
}
