//! Pure arithmetic on samples: no clock, no lock, no driver.

pub(crate) mod bias;
pub(crate) mod budget;
pub(crate) mod clock_fit;
pub(crate) mod estimate;
pub(crate) mod eviction;
pub(crate) mod hold_deadline;
pub(crate) mod pair_constant;
pub(crate) mod quantile;
pub(crate) mod rates;
pub mod sampling;
pub(crate) mod series;
