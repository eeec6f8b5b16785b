//! A call of an annotated function, from its entry to the record of its stop event.

pub(crate) mod barriers;
pub(crate) mod brackets;
pub mod decide;
pub mod enter;
pub mod first;
pub mod outcome;
pub mod scope;
pub mod stream;
