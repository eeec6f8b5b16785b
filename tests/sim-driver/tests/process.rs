//! The end of a process, and forked ones.
#![allow(unsafe_code)] // it talks to a driver and forks

mod support;

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use cudarc::driver::sys;
use support::*;

static EVENT: AtomicU64 = AtomicU64::new(0);

fn ask() -> i32 {
    query(EVENT.load(Ordering::Relaxed) as sys::CUevent)
}

extern "C" fn tell_early() {
    eprintln!("early handler: {}", ask());
}

extern "C" fn tell_late() {
    eprintln!("late handler: {}", ask());
}

fn record_one() {
    let (stream, event) = (stream(), event());
    record(event, stream);
    sync(stream);
    EVENT.store(event as u64, Ordering::Relaxed);
}

#[test]
fn the_driver_ends_with_its_own_exit_handler() {
    let outcome = child(
        this_test!(),
        |sim| sim,
        || {
            // SAFETY: the handlers are plain functions.
            unsafe { libc::atexit(tell_early) };
            start();
            // SAFETY: as above.
            unsafe { libc::atexit(tell_late) };
            record_one();
            std::process::exit(7);
        },
    );
    assert_eq!(outcome.status.code(), Some(7), "{}", outcome.stderr);
    // Last registered, first run.
    assert!(outcome.stderr.contains("late handler: 0\nearly handler: 4"), "{}", outcome.stderr);
    assert_eq!(outcome.trace.notes("exited_call").count(), 1);
}

#[test]
fn calls_from_a_threads_destructors_work() {
    struct Asks(Cell<bool>);
    impl Drop for Asks {
        fn drop(&mut self) {
            eprintln!("destructor: {}", ask());
        }
    }
    thread_local!(static ASKS: Asks = const { Asks(Cell::new(false)) });
    let outcome = child(
        this_test!(),
        |sim| sim,
        || {
            start();
            record_one();
            std::thread::spawn(|| ASKS.with(|asks| asks.0.set(true))).join().unwrap();
        },
    )
    .passed();
    assert!(outcome.stderr.contains("destructor: 0"), "{}", outcome.stderr);
}

/// Forks, runs `body` in the forked process, and answers its exit code.
fn fork(body: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the forked process only makes driver calls and ends at once; nothing that it touches
    // is locked by another thread.
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
fn a_forked_process_has_no_driver() {
    let outcome = child(
        this_test!(),
        |sim| sim,
        || {
            // Before the driver is initialised, a forked process is like any other.
            let before = fork(|| {
                // SAFETY: there is nothing to get wrong.
                unsafe { sys::cuInit(0) as i32 }
            });
            assert_eq!(before, 0);
            start();
            record_one();
            // SAFETY: as above.
            assert_eq!(fork(|| unsafe { sys::cuInit(0) as i32 }), 3);
            assert_eq!(fork(ask), 3);
            assert_eq!(ask(), 0);
        },
    )
    .passed();
    let names: Vec<_> = outcome.trace.notes("forked_call").map(|note| note.name.clone()).collect();
    assert_eq!(names, ["cuInit", "cuEventQuery"]);
}

#[test]
fn the_trace_survives_an_abort() {
    let outcome = child(
        this_test!(),
        |sim| sim,
        || {
            start();
            record_one();
            std::process::abort();
        },
    );
    assert!(!outcome.status.success());
    assert_eq!(outcome.trace.calls().last().unwrap().name, "cuStreamSynchronize");
}

#[test]
fn a_trace_can_leave_the_calls_out() {
    let outcome = child(
        this_test!(),
        |sim| sim.commands_only(),
        || {
            start();
            record_one();
        },
    )
    .passed();
    assert_eq!((outcome.trace.calls().count(), outcome.trace.commands().count()), (0, 1));
}

#[test]
fn both_names_are_one_driver() {
    child(
        this_test!(),
        |sim| sim,
        || {
            // cudarc looks for `libcuda.so`, this for `libcuda.so.1`.
            start();
            let before = now();
            advance(1_000);
            // SAFETY: there is nothing to get wrong.
            ok(unsafe { sys::cuProfilerStart() });
            assert_eq!(now() - before, 1_100);
        },
    )
    .passed();
}
