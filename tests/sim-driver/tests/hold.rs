//! Held streams: what releases them, and what waits meanwhile.
#![allow(unsafe_code)] // it talks to a driver

mod support;

use std::ptr;

use cudarc::driver::sys;
use gpu_time_sim_driver::formula;
use support::*;

#[test]
fn a_pair_behind_a_hold_is_fed() {
    let outcome = child(
        this_test!(),
        |sim| sim,
        || {
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
                assert_eq!(
                    elapsed(start, stop),
                    Ok(formula::fed_pair_ns(&[formula::spin_ns(5_000)]))
                );
                assert_eq!(word(words + 8), 0);
            }
        },
    )
    .passed();
    let trace = &outcome.trace;
    assert_eq!((trace.notes("hold_released").count(), trace.notes("hold_expired").count()), (5, 0));
    let holds: Vec<_> = trace.kernels("gpu_time_hold").collect();
    assert!(holds.iter().all(|hold| hold.duration_ns > 100_000));
    // All samples are there although their records were dated late.
    assert_eq!(trace.elapsed().len(), 5);
    for sample in trace.elapsed() {
        assert_eq!(sample.reported_ns, sample.expected_ns());
        let between: Vec<_> = sample.between(trace).iter().map(|c| c.name.clone()).collect();
        assert_eq!(between, ["spin_ns"]);
    }
}

#[test]
fn the_first_call_that_sees_the_release_dates_it() {
    let outcome = child(
        this_test!(),
        |sim| sim,
        || {
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
        },
    )
    .passed();
    let call = outcome.trace.calls_of("cuEventQuery").nth(1).unwrap().before_ns;
    let hold = outcome.trace.kernels("gpu_time_hold").next().unwrap();
    assert_eq!(hold.start_ns + hold.duration_ns, call + 545);
}

#[test]
fn a_hold_ends_by_itself() {
    child(
        this_test!(),
        |sim| sim,
        || {
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
            // The bound in cycles: 198,000 of them at 1.98 GHz are 100 us.
            let (ticket, ns, cycles, expired) = (9_u64, u64::MAX, 198_000_u64, words + 8);
            let mut args = [arg(&words), arg(&ticket), arg(&ns), arg(&cycles), arg(&expired)];
            let before = now();
            launch(kernels.hold, stream, &mut args);
            sync(stream);
            assert_eq!(word(words + 8), 9);
            assert!((100_000..120_000).contains(&(now() - before)));
            // A release that comes too late releases nothing any more.
            kernels.hold(stream, words, 12, 1_000);
            advance(100_000);
            set_word(words, 12);
            sync(stream);
            assert_eq!(word(words + 8), 12);
        },
    )
    .passed();
}

#[test]
fn a_ticket_that_was_released_before_holds_nothing() {
    let outcome = child(
        this_test!(),
        |sim| sim,
        || {
            start();
            let (kernels, stream, words) = (Kernels::load(), stream(), words());
            set_word(words, 5);
            kernels.hold(stream, words, 5, 1_000_000);
            sync(stream);
            assert_eq!(word(words + 8), 0);
        },
    )
    .passed();
    assert_eq!(outcome.trace.kernels("gpu_time_hold").next().unwrap().duration_ns, 545);
}

#[test]
fn what_depends_on_a_held_stream_waits_too() {
    child(
        this_test!(),
        |sim| sim,
        || {
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
            // Closing a stream does not lose what it has queued.
            // SAFETY: as above.
            ok(unsafe { sys::cuStreamDestroy_v2(other) });
            set_word(words, 1);
            // SAFETY: as above.
            ok(unsafe { sys::cuEventSynchronize(end) });
            assert_eq!(elapsed(middle, end), Ok(1_472 + 1_280));
            // SAFETY: as above.
            ok(unsafe { sys::cuCtxSynchronize() });
        },
    )
    .passed();
}

#[test]
fn results_behind_a_hold_are_right() {
    child(
        this_test!(),
        |sim| sim,
        || {
            start();
            let (kernels, stream, words) = (Kernels::load(), stream(), words());
            let (x, y) = (device_memory(64), device_memory(64));
            let mut input = [2.0_f32; 16];
            let mut pinned = ptr::null_mut();
            // SAFETY: the pointers are good, and the memory is as long as it says.
            unsafe {
                ok(sys::cuMemHostAlloc(&mut pinned, 64, 2));
                kernels.hold(stream, words, 1, 1_000_000);
                ok(sys::cuMemcpyHtoDAsync_v2(x, input.as_ptr().cast(), 64, stream));
                ok(sys::cuMemsetD32Async(y, 1.0_f32.to_bits(), 16, stream));
                // The source may change as soon as the call has returned.
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
        },
    )
    .passed();
}

#[test]
fn a_full_queue_blocks_until_the_hold_is_over() {
    let outcome = child(
        this_test!(),
        |sim| sim,
        || {
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
        },
    )
    .passed();
    assert_eq!(outcome.trace.notes("queue_full").count(), 1);
}

#[test]
fn a_busy_stream_takes_one_more_for_each_that_it_ends() {
    let outcome = child(
        this_test!(),
        |sim| sim,
        || {
            start();
            let (kernels, stream) = (Kernels::load(), stream());
            for _ in 0..3_000 {
                kernels.spin(stream, 10_000);
            }
            // The host has waited for all but what fits behind the one that runs.
            assert!(now() > (3_000 - 1_023) * 11_600);
            sync(stream);
            assert!(now() > 3_000 * 11_600);
        },
    )
    .passed();
    assert!(outcome.trace.notes("queue_full").count() > 1_000);
}

#[test]
fn another_thread_can_release() {
    child(
        this_test!(),
        |sim| sim,
        || {
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
        },
    )
    .passed();
}

#[test]
fn blocking_launches_wait_for_the_hold() {
    child(
        this_test!(),
        |sim| sim,
        || {
            // SAFETY: the driver has not been loaded yet, and nobody else runs.
            unsafe { std::env::set_var("CUDA_LAUNCH_BLOCKING", "1") };
            start();
            let (kernels, stream, words) = (Kernels::load(), stream(), words());
            let before = now();
            kernels.hold(stream, words, 1, 300_000);
            assert!(now() - before > 300_000);
            assert_eq!(word(words + 8), 1);
        },
    )
    .passed();
}

/// A pair with much of a queue behind it reads more, whatever the stream was busy with; the last ones do not.
#[test]
fn a_long_queue_behind_a_pair_lengthens_it() {
    child(
        this_test!(),
        |sim| sim,
        || {
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
                    // Behind the stop of the twelfth stand eight pairs, 24 commands.
                    let expected = if n < 11 { alone + 608 } else { alone };
                    assert_eq!(elapsed(*start, *stop), Ok(expected), "{n}, held: {is_held}");
                }
            }
        },
    )
    .passed();
}

/// What counts is what is behind a pair when the device comes to it, not what comes later.
#[test]
fn a_queue_that_comes_later_does_not() {
    child(
        this_test!(),
        |sim| sim,
        || {
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
        },
    )
    .passed();
}

/// Every second pair reads more.
#[test]
fn the_constant_may_have_two_values() {
    child(
        this_test!(),
        |sim| sim.model("event_twin_ns=224"),
        || {
            start();
            let stream = stream();
            for expected in [1_280, 1_504, 1_280, 1_504] {
                let (start, stop) = (event(), event());
                record(start, stream);
                record(stop, stream);
                sync(stream);
                assert_eq!(elapsed(start, stop), Ok(expected));
            }
        },
    )
    .passed();
}

/// The constant moves at a moment that the test chooses.
#[test]
fn a_record_may_take_longer_from_some_moment_on() {
    child(
        this_test!(),
        |sim| sim.model("event_drift_ns=64,event_drift_at_ns=10000000"),
        || {
            start();
            let stream = stream();
            for expected in [1_280, 1_344] {
                let (start, stop) = (event(), event());
                record(start, stream);
                record(stop, stream);
                sync(stream);
                assert_eq!(elapsed(start, stop), Ok(expected));
                advance(20_000_000);
            }
        },
    )
    .passed();
}
