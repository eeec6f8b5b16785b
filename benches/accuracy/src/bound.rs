//! Bounds on the difference between a measured time and the true one.

use std::fmt;

/// The largest accepted difference from the true value: the larger of a time and a fraction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The difference in nanoseconds.
    pub ns: f64,
    /// The difference as a fraction of the true value.
    pub share: f64,
}

impl Bound {
    /// Creates a bound in nanoseconds.
    pub const fn ns(ns: f64) -> Bound {
        Bound { ns, share: 0.0 }
    }

    /// Creates a bound as a fraction of the true value.
    pub const fn share(share: f64) -> Bound {
        Bound { ns: 0.0, share }
    }

    /// Returns `true` if a value is within the bound of the true one.
    pub fn holds(&self, value: f64, truth: f64) -> bool {
        // Comparisons with NaN are false, so NaN misses the bound.
        (value - truth).abs() <= self.ns.max(self.share * truth)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (us, percent) = (self.ns / 1e3, self.share * 1e2);
        match (self.ns > 0.0, self.share > 0.0) {
            (true, true) => write!(f, "{us} µs or {percent} %"),
            (_, false) => write!(f, "{us} µs"),
            (false, true) => write!(f, "{percent} %"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_bound_holds_on_both_sides() {
        let bound = Bound::ns(150.0);
        assert!(bound.holds(695.0, 545.0) && bound.holds(395.0, 545.0));
        assert!(!bound.holds(696.0, 545.0) && !bound.holds(394.0, 545.0));
        assert!(!bound.holds(f64::NAN, 545.0) && !bound.holds(545.0, f64::NAN));
    }

    #[test]
    fn larger_of_time_and_share_applies() {
        let bound = Bound { ns: 250.0, share: 0.01 };
        assert!(bound.holds(1_250.0, 1_000.0) && !bound.holds(1_251.0, 1_000.0));
        assert!(bound.holds(343_400.0, 340_000.0) && !bound.holds(343_401.0, 340_000.0));
        assert!(Bound::share(0.05).holds(9.5, 10.0) && !Bound::share(0.05).holds(9.4, 10.0));
    }

    #[test]
    fn display_shows_time_and_share() {
        assert_eq!(Bound::ns(150.0).to_string(), "0.15 µs");
        assert_eq!(Bound { ns: 250.0, share: 0.01 }.to_string(), "0.25 µs or 1 %");
        assert_eq!(Bound::share(0.05).to_string(), "5 %");
    }
}
