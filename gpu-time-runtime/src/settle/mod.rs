//! `until_stable` and `compare`: call closures repeatedly until their times are known precisely.

mod back_to_back;
pub(crate) mod compare;
mod compared;
#[cfg(test)]
mod interval_tests;
mod options;
mod pacer;
mod run;
mod settled;
mod stopping;
mod turn;
mod unmet;

pub use compared::{Compared, Ratio};
pub use options::Settle;
pub(crate) use run::{run, run_in_child};
pub use settled::{BackToBack, Settled};
pub use unmet::Unmet;
