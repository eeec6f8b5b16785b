//! Reasons why the error of an estimated total is unknown.

use crate::kinds::named;

named! {
    /// The reason why the sample of the calls does not show the error of their total.
    pub enum UnknownError {
        /// The calls were picked by number, and the program may have the same period.
        Counted = "counted",
        /// Sampled calls made the launch several times, so its samples were not drawn independently.
        Repeated = "repeated",
        /// There are too few samples, or phases, to have included rare calls that may make up much of the total.
        Few = "few",
        /// Few of the samples make up most of the error.
        Dominated = "dominated",
    }
}
