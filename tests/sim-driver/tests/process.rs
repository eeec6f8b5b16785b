//! Tests for the driver at process exit, after a fork and after an abort, and for its trace.
#![allow(unsafe_code)] // calls the driver's C interface and forks

mod support;

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use cudarc::driver::sys;
use support::*;

static EVENT: AtomicU64 = AtomicU64::new(0);

fn query_event() -> i32 {
    query(EVENT.load(Ordering::Relaxed) as sys::CUevent)
}

extern "C" fn print_early() {
    eprintln!("early handler: {}", query_event());
}

extern "C" fn print_late() {
    eprintln!("late handler: {}", query_event());
}

fn record_one() {
    let (stream, event) = (stream(), event());
    record(event, stream);
    sync(stream);
    EVENT.store(event as u64, Ordering::Relaxed);
}

#[test]
fn driver_ends_at_its_exit_handler() {
    let outcome = child!().run_unchecked(|| {
        // SAFETY: the handler is one of the program's functions and does not unwind.
        unsafe { libc::atexit(print_early) };
        start();
        // SAFETY: as above.
        unsafe { libc::atexit(print_late) };
        record_one();
        std::process::exit(7);
    });
    assert_eq!(outcome.status.code(), Some(7), "{}", outcome.stderr);
    // The handler registered last runs first.
    let handlers = "late handler: 0\nearly handler: 4";
    assert!(outcome.stderr.contains(handlers), "{}", outcome.stderr);
    assert_eq!(outcome.trace.notes("exited_call").count(), 1);
}

#[test]
fn thread_local_destructors_can_call_driver() {
    struct QueryOnDrop(Cell<bool>);
    impl Drop for QueryOnDrop {
        fn drop(&mut self) {
            eprintln!("destructor: {}", query_event());
        }
    }
    thread_local!(static QUERY: QueryOnDrop = const { QueryOnDrop(Cell::new(false)) });
    let outcome = child!().run(|| {
        start();
        record_one();
        std::thread::spawn(|| QUERY.with(|query| query.0.set(true))).join().unwrap();
    });
    assert!(outcome.stderr.contains("destructor: 0"), "{}", outcome.stderr);
}

/// Forks, runs `body` in the child, and returns its exit code.
fn fork(body: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child only makes driver calls and exits immediately, and uses nothing that
    // another thread could have locked.
    unsafe {
        match libc::fork() {
            0 => libc::_exit(body()),
            pid => {
                let mut status = 0;
                assert_eq!(libc::waitpid(pid, &mut status, 0), pid);
                libc::WEXITSTATUS(status)
            }
        }
    }
}

#[test]
fn forked_child_has_no_driver() {
    let outcome = child!().run(|| {
        // A child forked before the driver was initialised can initialise it.
        let before = fork(|| {
            // SAFETY: the call has no preconditions.
            unsafe { sys::cuInit(0) as i32 }
        });
        assert_eq!(before, 0);
        start();
        record_one();
        // SAFETY: as above.
        assert_eq!(fork(|| unsafe { sys::cuInit(0) as i32 }), 3);
        assert_eq!(fork(query_event), 3);
        assert_eq!(query_event(), 0);
    });
    let names: Vec<_> = outcome.trace.notes("forked_call").map(|note| note.name.clone()).collect();
    assert_eq!(names, ["cuInit", "cuEventQuery"]);
}

#[test]
fn trace_survives_abort() {
    let outcome = child!().run_unchecked(|| {
        start();
        record_one();
        std::process::abort();
    });
    assert!(!outcome.status.success());
    assert_eq!(outcome.trace.calls().last().unwrap().name, "cuStreamSynchronize");
}

#[test]
fn trace_level_device_omits_calls() {
    let outcome = child!().sim(|sim| sim.commands_only()).run(|| {
        start();
        record_one();
    });
    assert_eq!((outcome.trace.calls().count(), outcome.trace.commands().count()), (0, 1));
}

#[test]
fn both_library_names_load_one_driver() {
    child!().run(|| {
        // cudarc loads `libcuda.so`; `now` and `advance` load `libcuda.so.1`.
        start();
        let before = now();
        advance(1_000);
        // SAFETY: the call has no preconditions.
        ok(unsafe { sys::cuProfilerStart() });
        assert_eq!(now() - before, 1_100);
    });
}
