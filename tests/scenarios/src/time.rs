//! Time that passes on the host, virtual where it is.

use std::ffi::{CStr, c_void};
use std::mem::transmute;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

type Advance = extern "C" fn(u64);
type Now = extern "C" fn() -> u64;

/// A function of the simulated driver's own, if that is the driver.
fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the names end in NUL.
    let found = unsafe {
        let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
        libc::dlsym(library, name.as_ptr())
    };
    (!found.is_null()).then_some(found)
}

/// What lets virtual time pass, if the driver is the simulated one.
fn simulated() -> Option<Advance> {
    static ADVANCE: OnceLock<Option<Advance>> = OnceLock::new();
    *ADVANCE.get_or_init(|| {
        // SAFETY: this is its signature; no real driver has a function of that name.
        symbol(c"gpu_time_sim_advance")
            .map(|found| unsafe { transmute::<*mut c_void, Advance>(found) })
    })
}

/// Waits for virtual time to come to so many nanoseconds.
pub fn wait_until(ns: u64) {
    let found = symbol(c"gpu_time_sim_now").expect("the driver is the simulated one");
    // SAFETY: this is its signature.
    let now = unsafe { transmute::<*mut c_void, Now>(found) };
    while now() < ns {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Lets virtual time pass, where time is virtual.
pub fn advance(ns: u64) {
    if let Some(advance) = simulated() {
        advance(ns);
    }
}

/// Keeps the host busy for so many nanoseconds, virtual or real.
pub fn pass(ns: u64) {
    match simulated() {
        Some(advance) => advance(ns),
        None => {
            let end = Instant::now() + Duration::from_nanos(ns);
            while Instant::now() < end {
                std::hint::spin_loop();
            }
        }
    }
}
