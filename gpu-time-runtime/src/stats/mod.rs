//! Statistics and arithmetic: no clocks, locks, statics or driver calls.

pub(crate) mod bias;
pub(crate) mod bracket_counts;
pub(crate) mod budget;
pub(crate) mod call_tree;
pub(crate) mod clock_fit;
#[cfg(feature = "kernels")]
pub(crate) mod coverage;
pub(crate) mod effect;
pub(crate) mod estimate;
pub(crate) mod eviction;
pub(crate) mod hold_deadline;
pub(crate) mod kernels;
pub(crate) mod looks;
pub(crate) mod pair_constant;
pub(crate) mod quantile;
pub(crate) mod rates;
pub mod sampling;
pub(crate) mod series;
pub(crate) mod since;
pub(crate) mod tally;
pub(crate) mod total;
