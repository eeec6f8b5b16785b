//! Colours of functions, which the bars of device time and the call tree share.

use crate::own_times::OwnTime;
use crate::tree::Owner;

/// The stylesheet classes of the functions with the most GPU time.
const FUNCTIONS: [&str; 7] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6"];

/// The number of functions with a colour of their own.
pub const MAX_FUNCTIONS: usize = FUNCTIONS.len();

/// The stylesheet class of every other function.
pub const OTHERS: &str = "c7";

/// Returns the stylesheet class of what a GPU did, if it is not that of all other functions. `own` are the own times on all devices, longest first.
pub fn colour(own: &[OwnTime], owner: Owner) -> Option<&'static str> {
    Some(match owner {
        Owner::HelperThreads => "helper-threads",
        Owner::NotTimed => "not-timed",
        Owner::NotAnnotated => "not-annotated",
        Owner::Nobody => "idle",
        Owner::Function(_) => {
            let functions = own.iter().filter(|time| matches!(time.owner, Owner::Function(_)));
            let place = functions.take(MAX_FUNCTIONS).position(|time| time.owner == owner);
            FUNCTIONS.get(place?)?
        }
    })
}
