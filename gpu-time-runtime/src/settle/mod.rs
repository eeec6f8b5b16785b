//! `until_stable`: calls a closure until the measured times have settled.

mod back_to_back;
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
