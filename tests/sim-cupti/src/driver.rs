//! Access to the simulated driver: its clock, faults, trace and observer interface.

use std::ffi::{CStr, c_void};
use std::mem::transmute;
use std::sync::OnceLock;

use crate::EPOCH_NS;
use crate::abi::{Code, NOT_INITIALIZED};
use crate::observed::Observer;
use crate::process;

type IsAlive = unsafe extern "C" fn() -> bool;
type Now = unsafe extern "C" fn() -> u64;
type Call = unsafe extern "C" fn(*const u8, usize, u64, u64) -> i32;
type StreamId = unsafe extern "C" fn(u64, u64, bool) -> u64;
type GetVersion = unsafe extern "C" fn(*mut i32) -> i32;
type Observe = unsafe extern "C" fn(*const Observer);

/// Functions that the simulated driver exports. No real driver has all of them.
struct Driver {
    is_alive: IsAlive,
    now: Now,
    call: Call,
    stream_id: StreamId,
    observe: Observe,
    get_version: GetVersion,
}

/// Returns the simulated driver, or `None` if the process has another driver or none.
fn driver() -> Option<&'static Driver> {
    static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
    if process::is_forked() {
        // A forked child loads nothing. A driver loaded before the fork notes the child's calls in
        // its trace.
        return DRIVER.get()?.as_ref();
    }
    DRIVER.get_or_init(load).as_ref()
}

fn load() -> Option<Driver> {
    // SAFETY: loading the driver has no preconditions.
    let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_LAZY) };
    if library.is_null() {
        return None;
    }
    let symbol = |name: &CStr| {
        // SAFETY: the library stays loaded, and the name ends in NUL.
        let found = unsafe { libc::dlsym(library, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    };
    // SAFETY: these are the types of the exported functions.
    unsafe {
        Some(Driver {
            is_alive: transmute::<*mut c_void, IsAlive>(symbol(c"gpu_time_sim_is_alive")?),
            now: transmute::<*mut c_void, Now>(symbol(c"gpu_time_sim_now")?),
            call: transmute::<*mut c_void, Call>(symbol(c"gpu_time_sim_call")?),
            stream_id: transmute::<*mut c_void, StreamId>(symbol(c"gpu_time_sim_stream_id")?),
            observe: transmute::<*mut c_void, Observe>(symbol(c"gpu_time_sim_observe")?),
            get_version: transmute::<*mut c_void, GetVersion>(symbol(c"cuDriverGetVersion")?),
        })
    }
}

/// Returns the virtual host time, or `None` if the driver is not the simulated one or has shut down.
pub(crate) fn now() -> Option<u64> {
    // SAFETY: the functions have no preconditions.
    driver().and_then(|driver| unsafe { (driver.is_alive)().then(|| (driver.now)()) })
}

/// Converts a virtual time to CUPTI's clock.
pub(crate) fn timestamp(ns: u64) -> u64 {
    EPOCH_NS + ns
}

/// Accounts for a call of one of CUPTI's functions: advances the clock by the cost, and traces the
/// call with its main argument. Fails if a fault is scripted for it, or if the driver is not the
/// simulated one or has shut down.
pub(crate) fn call(name: &'static str, cost_ns: u64, argument: u64) -> Result<(), Code> {
    /// The driver's `DEINITIALIZED` and `NOT_INITIALIZED`.
    const GONE: [i32; 2] = [4, 3];
    let driver = driver().ok_or(NOT_INITIALIZED)?;
    // SAFETY: the name is static.
    match unsafe { (driver.call)(name.as_ptr(), name.len(), cost_ns, argument) } {
        0 => Ok(()),
        code if GONE.contains(&code) => Err(NOT_INITIALIZED),
        code => Err(code as Code),
    }
}

/// Returns the driver's id of a stream, or `None` if the driver does not know the stream.
pub(crate) fn stream_id(context: u64, stream: u64, is_per_thread: bool) -> Option<u64> {
    // SAFETY: the driver checks handles.
    let id = unsafe { (driver()?.stream_id)(context, stream, is_per_thread) };
    (id != 0).then_some(id)
}

/// Returns the driver's CUDA version, or `None` if the driver is not the simulated one.
pub(crate) fn version() -> Option<i32> {
    let mut version = 0;
    // SAFETY: writes one integer.
    let code = unsafe { (driver()?.get_version)(&raw mut version) };
    (code == 0).then_some(version)
}

/// Registers the observer with the driver.
pub(crate) fn observe(observer: &'static Observer) {
    if let Some(driver) = driver() {
        // SAFETY: the observer is static.
        unsafe { (driver.observe)(observer) };
    }
}
