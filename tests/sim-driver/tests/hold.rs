//! Tests for holds: release and expiry, commands queued behind them, and pairs in a long queue.
#![allow(unsafe_code)] // calls the driver's C interface

mod support;

use std::ptr;

use cudarc::driver::sys;
use gpu_time_sim_driver::formula;
use support::*;

#[test]
fn pair_behind_hold_is_fed() {
    let outcome = child!().run(|| {
        start();
        let (kernels, stream, words) = (Kernels::load(), stream(), words());
        let (start, stop) = (event(), event());
        for ticket in 1..=5 {
            kernels.hold(stream, words, ticket, 10_000_000);
            record(start, stream);
            kernels.spin(stream, 5_000);
            advance(100_000 * ticket);
            record(stop, stream);
            assert_eq!((query(start), elapsed(start, stop)), (600, Err(600)));
            set_word(words, ticket);
            sync(stream);
            assert_eq!(elapsed(start, stop), Ok(formula::fed_pair_ns(&[formula::spin_ns(5_000)])));
            assert_eq!(word(words + 8), 0);
        }
    });
    let trace = &outcome.trace;
    assert_eq!((trace.notes("hold_released").count(), trace.notes("hold_expired").count()), (5, 0));
    let holds: Vec<_> = trace.kernels("gpu_time_hold").collect();
    assert!(holds.iter().all(|hold| hold.duration_ns > 100_000));
    // No sample is missing, although the record times were determined late.
    assert_eq!(trace.elapsed().len(), 5);
    for sample in trace.elapsed() {
        assert_eq!(sample.reported_ns, sample.expected_ns());
        let between: Vec<_> = sample.between(trace).iter().map(|c| c.name.clone()).collect();
        assert_eq!(between, ["spin_ns"]);
    }
}

#[test]
fn hold_ends_at_first_call_after_release() {
    let outcome = child!().run(|| {
        start();
        let (kernels, stream, words, event) = (Kernels::load(), stream(), words(), event());
        kernels.hold(stream, words, 7, 10_000_000);
        record(event, stream);
        advance(50_000);
        set_word(words, 6);
        assert_eq!(query(event), 600);
        advance(40_000);
        set_word(words, 7);
        let released = now();
        assert_eq!(query(event), 600);
        sync(stream);
        assert!(now() > released);
    });
    let call = outcome.trace.calls_of("cuEventQuery").nth(1).unwrap().before_ns;
    let hold = outcome.trace.kernels("gpu_time_hold").next().unwrap();
    assert_eq!(hold.start_ns + hold.duration_ns, call + 545);
}

#[test]
fn hold_expires() {
    child!().run(|| {
        start();
        let (kernels, stream, words) = (Kernels::load(), stream(), words());
        let (start, stop) = (event(), event());
        let before = now();
        kernels.hold(stream, words, 3, 200_000);
        record(start, stream);
        launch(kernels.empty, stream, &mut []);
        record(stop, stream);
        sync(stream);
        assert_eq!(word(words + 8), 3);
        assert!((200_000..220_000).contains(&(now() - before)));
        assert_eq!(elapsed(start, stop), Ok(formula::fed_pair_ns(&[formula::EMPTY_NS])));
        // The limit in cycles: 198,000 cycles at 1.98 GHz are 100 us.
        let (ticket, ns, cycles, expired) = (9_u64, u64::MAX, 198_000_u64, words + 8);
        let mut args = [arg(&words), arg(&ticket), arg(&ns), arg(&cycles), arg(&expired)];
        let before = now();
        launch(kernels.hold, stream, &mut args);
        sync(stream);
        assert_eq!(word(words + 8), 9);
        assert!((100_000..120_000).contains(&(now() - before)));
        // A release after expiry has no effect.
        kernels.hold(stream, words, 12, 1_000);
        advance(100_000);
        set_word(words, 12);
        sync(stream);
        assert_eq!(word(words + 8), 12);
    });
}

#[test]
fn released_ticket_does_not_hold() {
    let outcome = child!().run(|| {
        start();
        let (kernels, stream, words) = (Kernels::load(), stream(), words());
        set_word(words, 5);
        kernels.hold(stream, words, 5, 1_000_000);
        sync(stream);
        assert_eq!(word(words + 8), 0);
    });
    assert_eq!(outcome.trace.kernels("gpu_time_hold").next().unwrap().duration_ns, 545);
}

#[test]
fn dependents_of_held_stream_wait() {
    child!().run(|| {
        start();
        let (kernels, words) = (Kernels::load(), words());
        let (held, other, free) = (stream(), stream(), stream());
        let (middle, end, unrelated) = (event(), event(), event());
        kernels.hold(held, words, 1, 1_000_000);
        record(middle, held);
        // SAFETY: the simulated driver checks handles.
        ok(unsafe { sys::cuStreamWaitEvent(other, middle, 0) });
        launch(kernels.empty, other, &mut []);
        record(end, other);
        record(unrelated, free);
        sync(free);
        assert_eq!((query(unrelated), query(middle), query(end)), (0, 600, 600));
        // Destroying a stream does not drop the commands in its queue. SAFETY: as above.
        ok(unsafe { sys::cuStreamDestroy_v2(other) });
        set_word(words, 1);
        // SAFETY: as above.
        ok(unsafe { sys::cuEventSynchronize(end) });
        assert_eq!(elapsed(middle, end), Ok(1_472 + 1_280));
        // SAFETY: as above.
        ok(unsafe { sys::cuCtxSynchronize() });
    });
}

#[test]
fn results_behind_hold_are_correct() {
    child!().run(|| {
        start();
        let (kernels, stream, words) = (Kernels::load(), stream(), words());
        let (x, y) = (device_memory(64), device_memory(64));
        let mut input = [2.0_f32; 16];
        let mut pinned = ptr::null_mut();
        // SAFETY: the pointers are valid, and the memory has the given length.
        unsafe {
            ok(sys::cuMemHostAlloc(&mut pinned, 64, 2));
            kernels.hold(stream, words, 1, 1_000_000);
            ok(sys::cuMemcpyHtoDAsync_v2(x, input.as_ptr().cast(), 64, stream));
            ok(sys::cuMemsetD32Async(y, 1.0_f32.to_bits(), 16, stream));
            // The source can be overwritten after the call has returned.
            input.fill(9.0);
            let (n, a) = (16_u32, 3.0_f32);
            launch(kernels.saxpy, stream, &mut [arg(&n), arg(&a), arg(&x), arg(&y)]);
            ok(sys::cuMemcpyDtoHAsync_v2(pinned, y, 64, stream));
            ok(sys::cuMemFreeAsync(x, stream));
            assert_eq!(*pinned.cast::<f32>(), 0.0);
            set_word(words, 1);
            sync(stream);
            assert_eq!(std::slice::from_raw_parts(pinned.cast::<f32>(), 16), [7.0; 16]);
        }
    });
}

#[test]
fn full_queue_blocks_until_hold_ends() {
    let outcome = child!().run(|| {
        start();
        let (kernels, stream, words, event) = (Kernels::load(), stream(), words(), event());
        kernels.hold(stream, words, 1, 50_000_000);
        let before = now();
        for _ in 0..1_021 {
            record(event, stream);
        }
        assert_eq!(now() - before, 1_021 * 812);
        record(event, stream);
        assert!(now() - before > 48_000_000);
        assert_eq!(word(words + 8), 1);
        sync(stream);
    });
    assert_eq!(outcome.trace.notes("queue_full").count(), 1);
}

#[test]
fn full_queue_accepts_one_command_per_completion() {
    let outcome = child!().run(|| {
        start();
        let (kernels, stream) = (Kernels::load(), stream());
        for _ in 0..3_000 {
            kernels.spin(stream, 10_000);
        }
        // The host has waited for all commands except those that fit behind the running one.
        assert!(now() > (3_000 - 1_023) * 11_600);
        sync(stream);
        assert!(now() > 3_000 * 11_600);
    });
    assert!(outcome.trace.notes("queue_full").count() > 1_000);
}

#[test]
fn other_thread_releases_hold() {
    child!().run(|| {
        start();
        let (kernels, stream, words, event) = (Kernels::load(), stream(), words(), event());
        kernels.hold(stream, words, 1, u64::MAX);
        record(event, stream);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(20));
                set_word(words, 1);
            });
            while query(event) == 600 {
                std::thread::yield_now();
            }
        });
        assert_eq!(word(words + 8), 0);
    });
}

#[test]
fn blocking_launch_waits_for_hold() {
    child!().run(|| {
        // SAFETY: the driver has not been loaded yet, and the process has no other threads.
        unsafe { std::env::set_var("CUDA_LAUNCH_BLOCKING", "1") };
        start();
        let (kernels, stream, words) = (Kernels::load(), stream(), words());
        let before = now();
        kernels.hold(stream, words, 1, 300_000);
        assert!(now() - before > 300_000);
        assert_eq!(word(words + 8), 1);
    });
}

/// A pair with a long queue behind it reads more, whether the stream was held or busy. The last
/// pairs in the queue do not.
#[test]
fn long_queue_behind_pair_adds_time() {
    child!().run(|| {
        start();
        let (kernels, stream, words) = (Kernels::load(), stream(), words());
        let pairs: Vec<_> = (0..20).map(|_| (event(), event())).collect();
        for is_held in [true, false] {
            if is_held {
                kernels.hold(stream, words, 1, 10_000_000);
            } else {
                kernels.spin(stream, 10_000_000);
            }
            for (start, stop) in &pairs {
                record(*start, stream);
                kernels.spin(stream, 5_000);
                record(*stop, stream);
            }
            set_word(words, 1);
            sync(stream);
            let alone = formula::fed_pair_ns(&[formula::spin_ns(5_000)]);
            for (n, (start, stop)) in pairs.iter().enumerate() {
                // Pair 11 (counted from 0) has eight pairs, with 24 commands, behind its stop.
                let expected = if n < 11 { alone + 608 } else { alone };
                assert_eq!(elapsed(*start, *stop), Ok(expected), "{n}, held: {is_held}");
            }
        }
    });
}

/// Only commands that are queued when the device reaches the pair add time to it.
#[test]
fn commands_enqueued_later_do_not_add_time() {
    child!().run(|| {
        start();
        let (kernels, stream) = (Kernels::load(), stream());
        let pair = (event(), event());
        kernels.spin(stream, 20_000);
        record(pair.0, stream);
        kernels.spin(stream, 5_000);
        record(pair.1, stream);
        advance(30_000);
        for _ in 0..30 {
            kernels.spin(stream, 5_000);
        }
        sync(stream);
        let alone = formula::fed_pair_ns(&[formula::spin_ns(5_000)]);
        assert_eq!(elapsed(pair.0, pair.1), Ok(alone));
    });
}

/// With `event_twin_ns`, every second pair reads more.
#[test]
fn pair_constant_alternates() {
    child!().sim(|sim| sim.model("event_twin_ns=224")).run(|| {
        start();
        let stream = stream();
        for expected in [1_280, 1_504, 1_280, 1_504] {
            assert_eq!(measure(stream, || ()), expected);
        }
    });
}

/// With `event_drift_ns`, records take longer from `event_drift_at_ns` on.
#[test]
fn record_time_drifts_from_set_time() {
    child!().sim(|sim| sim.model("event_drift_ns=64,event_drift_at_ns=10000000")).run(|| {
        start();
        let stream = stream();
        for expected in [1_280, 1_344] {
            assert_eq!(measure(stream, || ()), expected);
            advance(20_000_000);
        }
    });
}
