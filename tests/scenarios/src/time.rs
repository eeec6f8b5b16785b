//! Time that passes on the host, virtual where it is.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

type Advance = extern "C" fn(u64);
type Now = extern "C" fn() -> u64;

/// The functions by which the simulated driver lets time pass and tells it, if that is the driver.
fn simulated() -> Option<(Advance, Now)> {
    static CLOCK: OnceLock<Option<(Advance, Now)>> = OnceLock::new();
    *CLOCK.get_or_init(|| {
        // SAFETY: the names end in NUL.
        let [advance, now] = unsafe {
            let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
            [c"gpu_time_sim_advance", c"gpu_time_sim_now"]
                .map(|name| libc::dlsym(library, name.as_ptr()))
        };
        // SAFETY: these are their signatures; no real driver has functions of these names.
        (!advance.is_null() && !now.is_null()).then(|| unsafe {
            (
                std::mem::transmute::<*mut libc::c_void, Advance>(advance),
                std::mem::transmute::<*mut libc::c_void, Now>(now),
            )
        })
    })
}

/// Whether time is virtual.
pub fn is_simulated() -> bool {
    simulated().is_some()
}

/// The host's time in nanoseconds since some moment, virtual or real.
pub fn now_ns() -> u64 {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    match simulated() {
        Some((_, now)) => now(),
        None => ORIGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64,
    }
}

/// Waits for virtual time to come to so many nanoseconds, as others let it pass.
pub fn wait_until(ns: u64) {
    assert!(is_simulated(), "the driver is the simulated one");
    while now_ns() < ns {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Lets virtual time pass, where time is virtual.
pub fn advance(ns: u64) {
    if let Some((advance, _)) = simulated() {
        advance(ns);
    }
}

/// Keeps the host busy for so many nanoseconds, virtual or real.
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
