//! `until_stable`: calling a closure until the times of what it launches have settled.

mod back_to_back;
mod options;
mod progress;
mod run;
mod settled;
mod unmet;
mod verdict;

pub use options::Settle;
pub(crate) use run::run;
pub use settled::{BackToBack, Settled};
pub use unmet::Unmet;
