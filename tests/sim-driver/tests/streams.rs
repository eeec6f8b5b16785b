//! Tests for ordering between streams, events and threads.
#![allow(unsafe_code)] // calls the driver's C interface

mod support;

use std::ptr;
use std::thread;

use cudarc::driver::sys::{self, CUstream};
use gpu_time_sim_driver::formula;
use support::*;

const LEGACY: CUstream = ptr::null_mut();
const PER_THREAD: CUstream = 2 as CUstream;

#[test]
fn streams_overlap_unless_legacy_stream_intervenes() {
    child!().run(|| {
        start();
        let kernels = Kernels::load();
        let (zero, end) = (event(), event());
        // Returns `true` if `second` waits for the spin on `first`.
        let behind = |first: CUstream, second: CUstream| {
            record(zero, first);
            kernels.spin(first, 100_000);
            launch(kernels.empty, second, &mut []);
            record(end, second);
            // SAFETY: the call has no preconditions.
            ok(unsafe { sys::cuCtxSynchronize() });
            elapsed(zero, end).unwrap() > 100_000
        };
        let (blocking, other, independent) = (stream_with(0), stream_with(0), stream_with(1));
        assert!(!behind(blocking, other));
        assert!(!behind(blocking, independent));
        assert!(behind(blocking, LEGACY) && behind(LEGACY, blocking));
        assert!(!behind(independent, LEGACY) && !behind(LEGACY, independent));
        assert!(behind(PER_THREAD, LEGACY) && behind(LEGACY, PER_THREAD));
        assert!(!behind(PER_THREAD, blocking));
        // 1 is the explicit handle of the legacy stream.
        assert!(behind(1 as CUstream, blocking));
    });
}

#[test]
fn per_thread_streams_differ() {
    child!().run(|| {
        let context = start() as u64;
        let id = move || {
            let mut id = 0;
            // SAFETY: the pointer is valid for a result.
            unsafe {
                ok(sys::cuCtxSetCurrent(context as sys::CUcontext));
                ok(sys::cuStreamGetId(PER_THREAD, &mut id));
            }
            id
        };
        assert_eq!(id(), id());
        assert_ne!(thread::spawn(id).join().unwrap(), id());
    });
}

#[test]
fn wait_applies_to_record_at_call_time() {
    child!().run(|| {
        start();
        let (kernels, one, two) = (Kernels::load(), stream(), stream());
        let (zero, fork, end) = (event(), event(), event());
        record(zero, one);
        kernels.spin(one, 50_000);
        record(fork, one);
        // SAFETY: the simulated driver checks handles.
        ok(unsafe { sys::cuStreamWaitEvent(two, fork, 0) });
        kernels.spin(one, 500_000);
        record(fork, one);
        record(end, two);
        // SAFETY: the call has no preconditions.
        ok(unsafe { sys::cuCtxSynchronize() });
        let waited = elapsed(zero, end).unwrap();
        let spin = formula::fed_pair_ns(&[formula::spin_ns(50_000)]);
        assert!((spin..spin + 10_000).contains(&waited), "{waited}");
    });
}

#[test]
fn event_states_match_driver() {
    child!().run(|| {
        start();
        let stream = stream();
        let (first, second, untimed) = (event(), event(), event_with(2));
        // An event that was never recorded is done, but has no time.
        assert_eq!((query(first), elapsed(first, first)), (0, Err(400)));
        record(first, stream);
        record(untimed, stream);
        record(second, stream);
        assert_eq!(elapsed(first, second), Err(600));
        sync(stream);
        assert_eq!((query(untimed), elapsed(first, untimed)), (0, Err(400)));
        assert_eq!(elapsed(first, second), Ok(2 * 1_280));
        let mut ms = 0.0;
        // SAFETY: the pointer is valid for a result.
        ok(unsafe { sys::cuEventElapsedTime_v2(&mut ms, second, first) });
        assert_eq!(ms, -0.00256);
    });
}

#[test]
fn concurrent_threads_with_holds_are_exact() {
    const THREADS: usize = 16;
    const ROUNDS: u64 = 200;
    let outcome = child!().sim(|sim| sim.commands_only()).run(|| {
        let context = start() as u64;
        let kernels = Kernels::load();
        let (empty, hold) = (kernels.empty as u64, kernels.hold as u64);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(move || {
                    // SAFETY: the simulated driver checks handles.
                    ok(unsafe { sys::cuCtxSetCurrent(context as sys::CUcontext) });
                    let (stream, start, stop, words) = (stream(), event(), event(), words());
                    let (expired, forever) = (words + 8, u64::MAX);
                    for round in 1..=ROUNDS {
                        // All threads share the host clock. Without a hold, the pair's time would
                        // depend on how long the other threads wait in the meantime.
                        let mut args =
                            [arg(&words), arg(&round), arg(&forever), arg(&forever), arg(&expired)];
                        set_word(words, 0);
                        launch(hold as sys::CUfunction, stream, &mut args);
                        record(start, stream);
                        for _ in 0..round % 4 {
                            launch(empty as sys::CUfunction, stream, &mut []);
                        }
                        record(stop, stream);
                        set_word(words, round);
                        sync(stream);
                        let expected = vec![formula::EMPTY_NS; (round % 4) as usize];
                        assert_eq!(elapsed(start, stop), Ok(formula::fed_pair_ns(&expected)));
                    }
                });
            }
        });
    });
    let records = outcome.trace.commands().filter(|command| command.kind == "record").count();
    assert_eq!(records, THREADS * ROUNDS as usize * 2);
}

#[test]
fn host_function_runs_in_stream_order_without_lock() {
    use std::sync::atomic::{AtomicU64, Ordering};
    static SEEN: AtomicU64 = AtomicU64::new(0);
    extern "C" fn observe(data: *mut std::ffi::c_void) {
        // The model is not locked here.
        assert!(now() > 0);
        SEEN.store(data as u64, Ordering::Relaxed);
    }
    child!().run(|| {
        start();
        let (kernels, stream, words) = (Kernels::load(), stream(), words());
        kernels.hold(stream, words, 1, 1_000_000);
        // SAFETY: the function accepts any data.
        ok(unsafe { sys::cuLaunchHostFunc(stream, Some(observe), 5 as *mut _) });
        assert_eq!(SEEN.load(Ordering::Relaxed), 0);
        set_word(words, 1);
        sync(stream);
        assert_eq!(SEEN.load(Ordering::Relaxed), 5);
    });
}
