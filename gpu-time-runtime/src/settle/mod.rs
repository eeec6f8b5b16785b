//! `until_stable`: calls a closure until the times that it measures have settled.

mod back_to_back;
#[cfg(test)]
mod calibration;
mod look_plan;
mod options;
mod pacer;
mod progress;
mod run;
mod settled;
mod stopping;
mod unmet;

pub use options::Settle;
pub(crate) use run::run;
pub use settled::{BackToBack, Settled};
pub use unmet::Unmet;
