//! Phases: times in which CUPTI records everything that the process enqueues.
//!
//! The [controller] begins phases at random times according to a plan, on request, or one for the whole run. Calls that
//! begin in a phase are [opened](crate::record::opened). A phase is also a *window* that shows how busy the devices
//! are: each launch leaves a [note](notes) on its thread, and the collector of opened calls passes every record to
//! [matching], which adds a window to the sums once all its launches have their records.

pub(crate) mod controller;
pub(crate) mod current;
pub(crate) mod matching;
pub(crate) mod notes;
mod schedule;
