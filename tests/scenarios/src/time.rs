//! Host time: virtual on the simulated driver, real otherwise.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

type Advance = extern "C" fn(u64);
type Now = extern "C" fn() -> u64;

/// Returns the functions that advance and read virtual time, if the simulated driver is loaded.
fn simulated() -> Option<(Advance, Now)> {
    static CLOCK: OnceLock<Option<(Advance, Now)>> = OnceLock::new();
    *CLOCK.get_or_init(|| {
        // SAFETY: the names end in NUL.
        let [advance, now] = unsafe {
            let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
            [c"gpu_time_sim_advance", c"gpu_time_sim_now"]
                .map(|name| libc::dlsym(library, name.as_ptr()))
        };
        // SAFETY: these are the functions' signatures; no real driver exports these names.
        (!advance.is_null() && !now.is_null()).then(|| unsafe {
            (
                std::mem::transmute::<*mut libc::c_void, Advance>(advance),
                std::mem::transmute::<*mut libc::c_void, Now>(now),
            )
        })
    })
}

/// Returns `true` if time is virtual.
pub fn is_simulated() -> bool {
    simulated().is_some()
}

/// Returns the host time in nanoseconds since an arbitrary origin, virtual or real.
pub fn now_ns() -> u64 {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    match simulated() {
        Some((_, now)) => now(),
        None => ORIGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64,
    }
}

/// Waits until other threads have advanced virtual time to `ns`.
pub fn wait_until(ns: u64) {
    assert!(is_simulated(), "virtual time needs the simulated driver");
    while now_ns() < ns {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Advances virtual time by `ns`. Does nothing if time is real.
pub fn advance(ns: u64) {
    if let Some((advance, _)) = simulated() {
        advance(ns);
    }
}

/// Keeps the host busy for `ns` nanoseconds, virtual or real.
pub fn pass(ns: u64) {
    match simulated() {
        Some((advance, _)) => advance(ns),
        None => {
            let end = Instant::now() + Duration::from_nanos(ns);
            while Instant::now() < end {
                std::hint::spin_loop();
            }
        }
    }
}
