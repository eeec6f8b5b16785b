//! Phases: times in which CUPTI records everything that the process enqueues.
//!
//! The [controller] begins phases at random times according to a plan, on request, or one for the whole run. Calls that
//! begin in a phase are [opened](crate::record::opened). A phase is also a [*window*](windows) that shows how busy the
//! devices are. It is added to the sums once all launches in it have their [records](crate::record::records).

pub(crate) mod controller;
pub(crate) mod current;
mod schedule;
pub(crate) mod window;
pub(crate) mod windows;
