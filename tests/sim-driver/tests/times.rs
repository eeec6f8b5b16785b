//! Tests that compare elapsed times and host costs with closed formulas and with measurements.
#![allow(unsafe_code)] // calls the driver's C interface

mod support;

use cudarc::driver::sys;
use gpu_time_sim_driver::formula;
use support::*;

/// Panics unless every elapsed-time call in the trace returned the difference between its two
/// records.
fn assert_exact(outcome: &Outcome) {
    let samples = outcome.trace.elapsed();
    assert!(!samples.is_empty());
    for sample in samples {
        assert_eq!(sample.reported_ns, sample.expected_ns());
    }
}

/// Panics unless `actual_ns` is within the relative tolerance `share` of `measured_us`.
#[track_caller]
fn assert_close(actual_ns: u64, measured_us: f64, share: f64) {
    let actual = actual_ns as f64 / 1e3;
    assert!(
        (actual - measured_us).abs() <= share * measured_us,
        "{actual} us instead of {measured_us} us"
    );
}

#[test]
fn empty_pair_same_fed_and_starved() {
    let outcome = child!().run(|| {
        start();
        let (kernels, stream) = (Kernels::load(), stream());
        assert_eq!(measure(stream, || ()), 1_280);
        kernels.busy(stream);
        assert_eq!(measure(stream, || ()), 1_280);
        assert_eq!(formula::fed_pair_ns(&[]), 1_280);
    });
    assert_exact(&outcome);
}

#[test]
fn fed_pair_matches_measurements() {
    let outcome = child!().run(|| {
        start();
        let (kernels, stream) = (Kernels::load(), stream());
        let fed = |work: &dyn Fn()| {
            kernels.busy(stream);
            measure(stream, work)
        };
        let empty =
            |count: usize| fed(&|| (0..count).for_each(|_| launch(kernels.empty, stream, &mut [])));
        assert_eq!(empty(1), formula::fed_pair_ns(&[formula::EMPTY_NS]));
        assert_close(empty(1), 2.75, 0.01);
        for (k, measured) in [(2, 4.13), (4, 6.78), (8, 12.13), (10, 15.30)] {
            assert_eq!(empty(k), formula::fed_pair_ns(&vec![formula::EMPTY_NS; k]));
            assert_close(empty(k), measured, 0.08);
        }
        let spin = |ns, k: usize| fed(&|| (0..k).for_each(|_| kernels.spin(stream, ns)));
        for (ns, measured) in [
            (1_000, 3.94),
            (2_000, 4.85),
            (5_000, 7.95),
            (10_000, 12.96),
            (50_000, 52.93),
            (200_000, 202.90),
        ] {
            assert_eq!(spin(ns, 1), formula::fed_pair_ns(&[formula::spin_ns(ns)]));
            assert_close(spin(ns, 1), measured, 0.02);
        }
        for (k, measured) in [(2, 14.56), (4, 27.68), (8, 54.08)] {
            assert_eq!(spin(5_000, k), formula::fed_pair_ns(&vec![formula::spin_ns(5_000); k]));
            assert_close(spin(5_000, k), measured, 0.01);
        }
        let (number, other) = (0_u64, 0_f64);
        let unknown = fed(&|| launch(kernels.unknown, stream, &mut [arg(&number), arg(&other)]));
        assert_eq!(unknown, formula::fed_pair_ns(&[5_000]));
    });
    assert_exact(&outcome);
}

#[test]
fn starved_pair_includes_host_time() {
    let outcome = child!().run(|| {
        start();
        let (kernels, stream) = (Kernels::load(), stream());
        let (start, stop) = (event(), event());
        for (ns, measured) in [(1_000, 5.63), (5_000, 9.92), (10_000, 14.78), (200_000, 204.96)] {
            // Starts at a different phase of the 32 ns step each time.
            advance(ns / 7);
            record(start, stream);
            let started = now();
            kernels.spin(stream, ns);
            let launched = now();
            record(stop, stream);
            let stopped = now();
            sync(stream);
            let spin = formula::spin_ns(ns);
            let expected = formula::starved_pair_ns(started, &[launched], &[spin], stopped);
            assert_eq!(elapsed(start, stop), Ok(expected));
            assert!(expected > formula::fed_pair_ns(&[spin]));
            assert_close(expected, measured, 0.08);
        }
        // The host delays between the launch and the stop.
        record(start, stream);
        let started = now();
        launch(kernels.empty, stream, &mut []);
        let launched = now();
        advance(20_000);
        record(stop, stream);
        let stopped = now();
        sync(stream);
        let expected =
            formula::starved_pair_ns(started, &[launched], &[formula::EMPTY_NS], stopped);
        assert_eq!(elapsed(start, stop), Ok(expected));
        assert!(expected > 20_000);
    });
    assert_exact(&outcome);
}

#[test]
fn copy_time_depends_on_l2_state() {
    const MIB: u64 = 1 << 20;
    let outcome = child!().run(|| {
        start();
        let (kernels, stream) = (Kernels::load(), stream());
        let l2 = 62_914_560;
        let (flush, sink) = (device_memory(l2 as usize), device_memory(4));
        let (from, to) = (device_memory(32 << 20), device_memory(32 << 20));
        let copy_after = |n16: u64, before: &dyn Fn()| {
            kernels.busy(stream);
            before();
            measure(stream, || kernels.copy(stream, from, to, n16))
        };
        // SAFETY: the memory has `l2` bytes.
        let dirty = || ok(unsafe { sys::cuMemsetD8Async(flush, 0, l2 as usize, stream) });
        let clean = || kernels.flush(stream, flush, l2 / 16, sink);
        // Size in KiB, and event times in us: hot, after a memset, after a read flush.
        for (kib, hot, cold_dirty, cold) in
            [(3_840, 4.70, 6.98, 5.73), (7_680, 5.82, 9.73, 7.90), (15_360, 7.90, 15.33, 11.68)]
        {
            let n16 = kib * 64;
            let measured = copy_after(n16, &clean);
            assert_eq!(measured, formula::fed_pair_ns(&[formula::cold_copy_ns(n16)]));
            assert_close(measured, cold, 0.04);
            let measured = copy_after(n16, &|| {});
            assert_eq!(measured, formula::fed_pair_ns(&[formula::hot_copy_ns(n16)]));
            assert_close(measured, hot, 0.04);
            let measured = copy_after(n16, &dirty);
            assert_eq!(measured, formula::fed_pair_ns(&[formula::cold_dirty_copy_ns(n16)]));
            assert_close(measured, cold_dirty, 0.08);
            // A read flush writes back lines dirtied by a memset.
            let measured = copy_after(n16, &|| {
                dirty();
                clean();
            });
            assert_eq!(measured, formula::fed_pair_ns(&[formula::cold_copy_ns(n16)]));
        }
        // 2 x 30 MiB exceed the usable part of the L2, so the copy is never hot.
        assert_close(copy_after(30 * MIB / 16, &clean), 20.80, 0.04);
        assert_close(copy_after(30 * MIB / 16, &|| {}), 24.61, 0.06);
        assert_close(copy_after(30 * MIB / 16, &dirty), 26.56, 0.04);
    });
    assert_exact(&outcome);
}

#[test]
fn host_costs_match_measurements() {
    child!().run(|| {
        start();
        let (kernels, stream, event) = (Kernels::load(), stream(), event());
        let untimed = event_with(2);
        let cost = |call: &dyn Fn()| {
            let before = now();
            call();
            now() - before
        };
        let mut capturing = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        let status = &raw mut capturing;
        assert_eq!(cost(&|| launch(kernels.empty, stream, &mut [])), 2_620);
        assert_eq!(cost(&|| record(event, stream)), 812);
        assert_eq!(cost(&|| record(untimed, stream)), 154);
        assert_eq!(cost(&|| assert_eq!(query(event), 600)), 104);
        // SAFETY: `status` is valid for a result.
        assert_eq!(cost(&|| ok(unsafe { sys::cuStreamIsCapturing(stream, status) })), 14);
        sync(stream);
        assert_eq!(cost(&|| assert_eq!(query(event), 0)), 128);
        assert_eq!(cost(&|| assert_eq!(elapsed(event, event), Ok(0))), 56);
        let wait = cost(&|| {
            record(event, stream);
            // SAFETY: the simulated driver checks handles.
            ok(unsafe { sys::cuEventSynchronize(event) });
        });
        assert_close(wait, 5.6, 0.01);
    });
}

#[test]
fn completion_is_visible_after_delay() {
    child!().run(|| {
        start();
        let (stream, event) = (stream(), event());
        advance(32 - now() % 32);
        record(event, stream);
        let recorded = now();
        let done = (recorded + 1_500).next_multiple_of(32) + 1_280;
        advance(done + 2_000 - 105 - now());
        assert_eq!(query(event), 600);
        assert_eq!(elapsed(event, event), Ok(0));
    });
}

#[test]
fn constants_can_be_overridden() {
    child!()
        .sim(|sim| sim.model("event_ns=640, gap_ns=32,cost.cuLaunchKernel=1_000,step_ns=1"))
        .run(|| {
            start();
            let (kernels, stream) = (Kernels::load(), stream());
            kernels.busy(stream);
            let ns = measure(stream, || {
                let before = now();
                launch(kernels.empty, stream, &mut []);
                assert_eq!(now() - before, 1_000);
            });
            assert_eq!(ns, 640 + 545 + 32);
        });
}

/// The first read of a line shows whether it was in the L2; the second is a hit.
#[test]
fn line_latency_reveals_l2_hit() {
    const OURS: &str = include_str!("../../../kernels/ptx/gpu_time.ptx");
    child!().sim(|sim| sim.model("l2_hit_cycles=300,l2_miss_cycles=700")).run(|| {
        start();
        let (ours, stream, words) = (load(OURS), stream(), words());
        let (memory, lines, done) = (device_memory(4_096), 4_u32, words + 32);
        let kernel = function(ours, "gpu_time_line_latencies");
        let latencies = |ticket: u64| {
            let mut args = [arg(&memory), arg(&lines), arg(&words), arg(&done), arg(&ticket)];
            launch(kernel, stream, &mut args);
            sync(stream);
            assert_eq!(word(done), ticket);
            // Each word contains two latencies.
            [0, 8, 16, 24].map(|at| word(words + at)).map(|two| (two as u32, two >> 32))
        };
        let (hits, misses) = ((300, 300), (700, 700));
        assert_eq!(latencies(1), [misses, misses, hits, hits]);
        assert_eq!(latencies(2), [hits; 4]);
        let flush = device_memory(64 << 20);
        // SAFETY: the memory has the given length.
        ok(unsafe { sys::cuMemsetD8Async(flush, 0, 64 << 20, stream) });
        // SAFETY: as above.
        ok(unsafe { sys::cuMemsetD8Async(memory, 0, 1_025, stream) });
        assert_eq!(latencies(3), [hits, misses, hits, hits]);
    });
}

/// The model identifies this repository's kernels by name and parameters.
#[test]
fn repository_kernels_are_known() {
    const OURS: &str = include_str!("../../../kernels/ptx/gpu_time.ptx");
    const WORKLOADS: &str = include_str!("../../../kernels/ptx/workloads.ptx");
    let outcome = child!().run(|| {
        start();
        let (ours, workloads, stream) = (load(OURS), load(WORKLOADS), stream());
        let (memory, words, n16, n) = (device_memory(1 << 20), words(), 64_u64, 64_u32);
        let (ns, a, ticket, expired) = (1_000_u64, 1_f32, 1_u64, words + 8);
        let (lines, cycles) = (2_u32, words + 16);
        let run = |module, name, args: &mut [_]| launch(function(module, name), stream, args);
        run(ours, "gpu_time_empty", &mut []);
        run(ours, "gpu_time_flush_read", &mut [arg(&memory), arg(&n16), arg(&words)]);
        let mut args = [arg(&words), arg(&ticket), arg(&ns), arg(&ns), arg(&expired)];
        run(ours, "gpu_time_hold", &mut args);
        run(workloads, "empty", &mut []);
        run(workloads, "spin_ns", &mut [arg(&ns)]);
        run(workloads, "read_f4", &mut [arg(&memory), arg(&n16), arg(&words)]);
        run(workloads, "copy_f4", &mut [arg(&memory), arg(&memory), arg(&n16)]);
        run(workloads, "saxpy", &mut [arg(&n), arg(&a), arg(&memory), arg(&memory)]);
        let mut args = [arg(&memory), arg(&lines), arg(&cycles), arg(&expired), arg(&ticket)];
        run(ours, "gpu_time_line_latencies", &mut args);
        sync(stream);
        assert_eq!(word(expired), ticket);
    });
    let kernels: Vec<_> = outcome.trace.commands().filter(|c| c.kind == "kernel").collect();
    assert_eq!(kernels.len(), 9);
    for kernel in kernels {
        assert_ne!(kernel.duration_ns, 5_000, "unknown kernel `{}`", kernel.name);
    }
}
