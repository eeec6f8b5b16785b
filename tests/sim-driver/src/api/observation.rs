//! Functions through which the stand-in for CUPTI observes the driver and shares its clock, faults
//! and trace. The real driver does not have them.

use super::call::{Availability, EntryPoint, execute};
use crate::handle::Handle;
use crate::model::Model;
use crate::observed::Observer;
use crate::observer;
use crate::process::{self, ProcessState};

/// Returns `true` until the driver's exit handler has run, except in a forked child.
#[unsafe(no_mangle)]
pub extern "C" fn gpu_time_sim_is_alive() -> bool {
    process::state() == ProcessState::Alive
}

/// Registers the observer.
///
/// # Safety
/// The observer must live as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpu_time_sim_observe(observer: *const Observer) {
    observer::register(observer);
}

/// Executes the driver's part of a call to one of the stand-in's functions: advances the streams
/// and the clock, and traces the call. Returns the scripted error code, or 0.
///
/// # Safety
/// The name must be valid UTF-8 that lives as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpu_time_sim_call(
    name: *const u8,
    name_len: usize,
    cost_ns: u64,
    argument: u64,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let name = unsafe { std::str::from_utf8_unchecked(std::slice::from_raw_parts(name, name_len)) };
    let function = EntryPoint { name, cost_ns, availability: Availability::Always };
    let arguments: &[(&str, &dyn super::args::Argument)] = &[("argument", &argument)];
    execute(&function, observer::next_correlation(), arguments, &mut |_| Ok(()))
}

/// Returns the id of a stream in a context, or 0 if there is no such stream. If `is_per_thread`, the
/// null stream is the calling thread's per-thread stream. Advances neither the clock nor any stream.
#[unsafe(no_mangle)]
pub extern "C" fn gpu_time_sim_stream_id(
    context: Handle,
    stream: Handle,
    is_per_thread: bool,
) -> u64 {
    if process::state() != ProcessState::Alive {
        return 0;
    }
    let mut model = Model::lock();
    model.thread = super::call::thread();
    let stream = if stream == 0 && is_per_thread { 2 } else { stream };
    if model.push_current(context).is_err() {
        return 0;
    }
    let found = model.find_stream(stream).map_or(0, |found| model.stream(found).id);
    let _ = model.pop_current();
    found
}
