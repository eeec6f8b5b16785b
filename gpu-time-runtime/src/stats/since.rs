//! Differences between two readings of counters.

use gpu_time_report::Losses;

/// A reading of counters that only grow. `until_stable` subtracts two readings to report a single
/// run.
pub(crate) trait Since {
    /// Returns the counts since an earlier reading of the same counters.
    fn since(&self, earlier: &Self) -> Self;
}

impl Since for u64 {
    fn since(&self, earlier: &u64) -> u64 {
        self.saturating_sub(*earlier)
    }
}

impl Since for f64 {
    fn since(&self, earlier: &f64) -> f64 {
        self - earlier
    }
}

impl<const N: usize> Since for [f64; N] {
    fn since(&self, earlier: &[f64; N]) -> [f64; N] {
        std::array::from_fn(|at| self[at] - earlier[at])
    }
}

impl Since for Losses {
    fn since(&self, earlier: &Losses) -> Losses {
        let mut losses = *self;
        losses.take_off(*earlier);
        losses
    }
}

/// Implements [`Since`] field by field. Fields after `keep`, such as extremes, cannot be
/// subtracted, so their values come from the later reading.
macro_rules! impl_since {
    ($type:ty { $($field:ident),* $(,)? $(; keep $($kept:ident),*)? }) => {
        impl $crate::stats::since::Since for $type {
            fn since(&self, earlier: &Self) -> Self {
                Self {
                    $($field: $crate::stats::since::Since::since(&self.$field, &earlier.$field),)*
                    $($($kept: self.$kept,)*)?
                }
            }
        }
    };
}
pub(crate) use impl_since;
