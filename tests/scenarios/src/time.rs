//! Time that passes on the host, virtual where it is.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

type Advance = extern "C" fn(u64);

/// What lets virtual time pass, if the driver is the simulated one.
fn simulated() -> Option<Advance> {
    static ADVANCE: OnceLock<Option<Advance>> = OnceLock::new();
    *ADVANCE.get_or_init(|| {
        // SAFETY: the names end in NUL.
        let found = unsafe {
            let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
            libc::dlsym(library, c"gpu_time_sim_advance".as_ptr())
        };
        // SAFETY: this is its signature; no real driver has a function of that name.
        (!found.is_null())
            .then(|| unsafe { std::mem::transmute::<*mut libc::c_void, Advance>(found) })
    })
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
