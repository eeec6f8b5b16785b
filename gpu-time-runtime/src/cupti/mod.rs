//! All calls to CUPTI, the library that records kernels, copies and memsets.
//!
//! It is loaded at run time and only when opened calls need it. CUPTI calls back at two points: on the
//! launching thread, when a launch begins and ends, and to request or complete a buffer of records. These
//! callbacks take no lock of the runtime and allocate nothing but a new buffer of the bounded pool.

#![allow(unsafe_code)] // calls the C API of CUPTI

mod buffers;
mod captures;
mod control;
mod drain;
mod functions;
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

pub(crate) use captures::captures_begun;
pub(crate) use control::{
    SwitchedOn, is_available, is_recording, never_stops, now_ns, retry, stop_unused, switch_on,
    version, why_unavailable,
};
pub(crate) use drain::drain;
pub(crate) use launches::{LaunchObserver, observe_launches};
