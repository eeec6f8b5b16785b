//! Windows: short periods in which all GPU work of the process is recorded, to measure how busy its
//! devices are.
//!
//! A [thread] opens windows at random times according to a [plan](schedule), or on request. It keeps CUPTI
//! switched on during a window, while each launch leaves a [note](notes) on its thread. The
//! collector of opened calls passes every record to [matching], which adds a window to the sums
//! once all its launches have their records.

pub(crate) mod matching;
pub(crate) mod notes;
mod schedule;
pub(crate) mod thread;
