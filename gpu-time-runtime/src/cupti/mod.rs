//! All calls to CUPTI, the library that records kernels, copies and memsets.
//!
//! CUPTI is loaded at run time, when kernels are to be recorded for the first time. It calls back at the
//! beginning and the end of driver calls that enqueue work, load code or capture a stream, and to request
//! or complete a buffer of records. These callbacks allocate only new buffers of the bounded pool, and
//! room for the launches of an opened call that makes more than those before it. They lock nothing except
//! [`loads`], around calls that load code and to switch on a kind of activity.
//!
//! `gpu/cupti.md` has what was measured of CUPTI, and the rules here that follow from it.

#![allow(unsafe_code)] // calls the C API of CUPTI

mod api;
mod buffers;
mod captures;
mod control;
mod drain;
mod failures;
mod functions;
mod gate;
mod graph_changes;
mod launches;
mod library;
mod loads;
mod locate;
mod names;
mod recording;
mod records;
mod session;
mod subscribe;
mod version;
mod work;

pub(crate) use api::{DrainKind, DrainOutcome, LaunchObserver};
pub(crate) use captures::captures_begun;
pub(crate) use control::{
    RecordingGuard, cost_ns, end, first_failure, give_up, has_recorded, is_available, is_given_up,
    is_in_use, is_recording, leave, never_stops, now_ns, retry, stop_unused, switch_on, version,
    why_unavailable,
};
pub(crate) use drain::{are_buffers_filling, drain, wake_when_buffers_fill};
pub(crate) use launches::observe_launches;
