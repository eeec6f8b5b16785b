//! Tests for the L2 state after a flush, as measured by subsequent kernels and as stated in the
//! report.

use crate::harness::{Run, is_real, scenario};

/// Returns the fraction of lines that missed after each kind of touch, over all rounds, in
/// thousandths.
fn missed(run: &Run, name: &str, which: &str) -> [u64; 3] {
    ["read", "write", "write among others"]
        .map(|touch| run.fact(&format!("{name} after {touch}, {which}")))
}

/// A kernel that times its own reads agrees with the `cache` column.
#[test]
fn cold_kernel_misses_every_line() {
    let run = scenario("cold/lines", &[]).run();
    let found = missed(&run, "found", "most");
    assert!(found.iter().all(|&most| most <= 100), "{found:?}");
    for name in ["clean", "dirty"] {
        let missed = missed(&run, name, "least");
        assert!(missed.iter().all(|&least| least >= 990), "{name}: {missed:?}");
    }
    let caches = ["found", "clean", "dirty"].map(|name| &*run.row(&format!("cold::{name}")).cache);
    assert_eq!(caches, ["as-found", "cold", "cold-dirty"]);
    let device = &run.report().devices[0];
    let proof = device.flush_proof.as_ref().unwrap_or_else(|| panic!("{device:?}"));
    for eviction in [&proof.clean, &proof.dirty] {
        assert!(eviction.as_ref().is_some_and(|eviction| eviction.proved), "{device:?}");
    }
    assert_eq!(run.report().warnings(), [""; 0]);
}

#[test]
fn dirty_flush_slows_reads() {
    let run = scenario("cold/reads", &[]).run();
    let rows = ["clean", "dirty"].map(|name| run.row(&format!("cold::read_{name}")));
    assert_eq!(rows.map(|row| row.brackets()), [(10, 10, 0, 0); 2]);
    // A read after a dirty flush also incurs the write-back.
    let medians = rows.map(|row| row.raw().median);
    assert!(medians[0] < medians[1], "{medians:?}");
}

/// Each kind of flush keeps one buffer, and the memory used for the proof is freed. The driver
/// allocates in larger units, and uses some memory itself.
#[test]
fn proof_memory_is_freed() {
    let run = scenario("cold/memory", &[]).run();
    let device = &run.report().devices[0];
    let (flush, some) = (device.flush_bytes.unwrap(), device.l2_bytes.unwrap() / 2);
    for (kinds, most) in [("clean", flush + some), ("both", 2 * flush + some)] {
        assert!(run.fact(kinds) <= most, "{kinds}: {} of {most}", run.fact(kinds));
    }
}

/// A first cold call does not wait for other streams.
#[test]
fn cold_call_does_not_wait_for_other_streams() {
    assert_eq!(scenario("cold/concurrent", &[]).run().fact("is_busy"), 1);
}

/// The search for a flush does not run while a bracket is open. Such calls are not flushed, and if
/// this affects all of them, the report says why.
#[test]
fn no_flush_search_during_bracket() {
    for (arguments, states) in
        [(&["then outside"][..], &[("as-found", 3), ("cold", 2)][..]), (&[], &[("as-found", 3)])]
    {
        let run = scenario("cold/inside", arguments).run();
        let rows = run.site("cold::spin_clean").series.iter().filter(|row| row.launch.is_none());
        let caches: Vec<_> = rows.map(|row| (&*row.cache, row.timed)).collect();
        assert_eq!(caches, states);
        match &run.report().warnings()[..] {
            [] => assert!(!arguments.is_empty()),
            [warning] => assert!(arguments.is_empty() && warning.contains("a bracket was open")),
            warnings => panic!("{warnings:?}"),
        }
        if !is_real() {
            let longest_ns = run.row("cold::around").raw().max;
            assert!(longest_ns < 40_000.0, "{longest_ns}");
        }
    }
}

/// One stream's persisting lines affect the L2 for all streams.
#[test]
fn persisting_lines_of_one_stream() {
    let run = scenario("cold/persisting", &[]).run();
    let rows = run.site("cold::spin_clean").series.iter().filter(|row| row.launch.is_none());
    let caches: Vec<_> = rows.map(|row| (&*row.cache, row.timed)).collect();
    assert_eq!(caches, [("cold", 1), ("partial", 1)]);
    assert_eq!(run.row("cold::spin_dirty").cache, "partial");
    let warnings = run.report().warnings();
    assert!(warnings.iter().any(|warning| warning.contains("persisting")), "{warnings:?}");
}

mod simulated {
    use super::*;
    use crate::harness::report::Eviction;

    const L2: u64 = 62_914_560;

    fn lines(model: &str, faults: &str) -> Run {
        scenario("cold/lines", &[]).simulated(|sim| sim.model(model).faults(faults)).run()
    }

    fn caches(run: &Run) -> [&str; 2] {
        ["clean", "dirty"].map(|name| &*run.row(&format!("cold::{name}")).cache)
    }

    /// Returns the proofs for both kinds of flush.
    fn evictions(run: &Run) -> [&Eviction; 2] {
        let proof = run.report().devices[0].flush_proof.as_ref().expect("a proof was attempted");
        [&proof.clean, &proof.dirty]
            .map(|eviction| eviction.as_ref().expect("the flush was prepared"))
    }

    fn shares(eviction: &Eviction) -> (f64, f64) {
        (eviction.missed_after_read, eviction.missed_after_write)
    }

    #[test]
    fn report_has_flush_proof() {
        let run = lines("l2_hit_cycles=300,l2_miss_cycles=700", "");
        assert_eq!(run.report().devices[0].flush_bytes, Some(L2));
        assert_eq!(evictions(&run).map(|eviction| &*eviction.method), ["write-discard", "write"]);
        assert_eq!(evictions(&run).map(|eviction| eviction.missed_discarded), [Some(1.0), None]);
        for eviction in evictions(&run) {
            assert!(eviction.proved);
            assert_eq!((eviction.multiple, eviction.bytes, eviction.lines), (1, L2, 2_048));
            assert_eq!(shares(eviction), (1.0, 1.0));
            let cycles = (eviction.hit_cycles, eviction.threshold_cycles, eviction.miss_cycles);
            assert_eq!(cycles, (300, 300, Some(700)));
        }
    }

    /// If lines cannot be discarded, or discarding has no effect, clean flushes read.
    #[test]
    fn clean_flush_reads_without_discard() {
        for (model, faults) in [
            ("compute_capability=75", ""),
            ("l2_discards=0", ""),
            // The discarding kernel fails to load, with the other kernels and again when it is needed.
            ("", "cuModuleLoadData:3=218;cuModuleLoadData:5=218"),
            ("", "cuModuleGetFunction:6=500;cuModuleGetFunction:8=500"),
        ] {
            let run = lines(model, faults);
            assert_eq!(caches(&run), ["cold", "cold-dirty"], "{model} {faults}");
            let [clean, _] = evictions(&run);
            assert_eq!(
                (&*clean.method, clean.proved, clean.multiple),
                ("read", true, 1),
                "{clean:?}"
            );
            assert_eq!(clean.missed_discarded, None);
            assert!(run.report().warnings().is_empty(), "{:?}", run.report().warnings());
        }
    }

    /// The driver may wait for a running kernel before it loads a module. Both modules are loaded
    /// during the first wait, although no call is cold yet.
    #[test]
    fn kernels_load_together() {
        let loads = |name: &str, model: &str, faults: &str| {
            let run = scenario(name, &[]).simulated(|sim| sim.model(model).faults(faults)).run();
            run.trace.calls().filter(|call| call.name == "cuModuleLoadData").count()
        };
        let (able, unable) = ("compute_capability=80", "compute_capability=75");
        for name in ["exit/return", "cold/lines"] {
            assert_eq!(loads(name, able, ""), loads(name, unable, "") + 1, "{name}");
        }
        // A module that failed to load is loaded again only when it is needed.
        let (once, tried) = (loads("cold/lines", able, ""), "cuModuleLoadData:3=218");
        assert_eq!(loads("cold/lines", able, tried), once + 1);
        assert_eq!(evictions(&lines(able, tried))[0].method, "write-discard");
    }

    /// Reads after a discarding flush cause no write-back, as after a flush that reads.
    #[test]
    fn discarding_and_reading_flush_agree() {
        let times = ["", "compute_capability=75"].map(|model| {
            let run = scenario("cold/reads", &[]).simulated(|sim| sim.model(model)).run();
            run.row("cold::read_clean").raw().median
        });
        assert_eq!(times[0], times[1]);
    }

    /// A clean flush that reads does not hit the lines written by an earlier dirty flush. It
    /// therefore evicts all of them, even from an L2 that can hold a whole flush.
    #[test]
    fn clean_flush_evicts_dirty_lines() {
        let times = ["", ",compute_capability=75"].map(|reads| {
            let model = format!("l2_usable_bytes={L2}{reads}");
            // A clean flush that reads covers more of the dirty flush's lines than the preceding
            // read evicted.
            let run =
                scenario("cold/reads", &["30", "10"]).simulated(|sim| sim.model(&model)).run();
            run.row("cold::read_clean").raw().median
        });
        assert_eq!(times[0], times[1]);
    }

    /// A discarding flush leaves the L2 free, and the next one may fill the free lines without
    /// evicting anything. A flush that reads leaves the L2 full.
    #[test]
    fn flush_of_a_just_flushed_l2() {
        let run = lines("l2_fills_free=1", "");
        assert_eq!(caches(&run), ["cold", "cold-dirty"]);
        assert_eq!(
            evictions(&run).map(|eviction| (&*eviction.method, eviction.proved)),
            [("read", true), ("write", true)]
        );
        for name in ["clean", "dirty"] {
            assert_eq!(missed(&run, name, "least"), [1000; 3], "{name}");
        }
    }

    /// If the driver cannot free memory without waiting, the memory is kept.
    #[test]
    fn memory_kept_without_async_free() {
        // The simulated driver's allocation size.
        let piece = |bytes: u64| (bytes + 16).next_multiple_of(512);
        let (flush, watched) = (piece(L2), piece(L2 + 2_048 * 1_024));
        let run = scenario("cold/memory", &[]).simulated(|sim| sim.model("memory_pools=0")).run();
        assert_eq!([run.fact("clean"), run.fact("both")], [flush, 2 * flush]);
        let run = scenario("cold/memory", &[])
            .without("cuMemFreeAsync")
            .env("GPU_TIME_TEST_SIM_MODEL", "memory_pools=0")
            .run();
        let kept = [flush + watched, 2 * (flush + watched)];
        assert_eq!([run.fact("clean"), run.fact("both")], kept);
    }

    /// A flush buffer that cannot be filled with zeros is freed, and a larger one is used.
    #[test]
    fn memory_of_unusable_buffer_is_freed() {
        let piece = |bytes: u64| (bytes + 16).next_multiple_of(512);
        let run = scenario("cold/memory", &[])
            .simulated(|sim| sim.model("memory_pools=0").faults("cuMemsetD32Async:1=999"))
            .run();
        let (clean, dirty) = (piece(2 * L2), piece(L2));
        assert_eq!([run.fact("clean"), run.fact("both")], [clean, clean + dirty]);
    }

    /// An L2 that retains more than the driver reports needs a larger flush, but no larger than
    /// necessary.
    #[test]
    fn flush_is_as_large_as_needed() {
        for (usable, multiple) in [(70_000_000, 2), (130_000_000, 3), (200_000_000, 4)] {
            let run = lines(&format!("l2_usable_bytes={usable}"), "");
            assert_eq!(caches(&run), ["cold", "cold-dirty"], "{usable}");
            let bytes = L2 * u64::from(multiple);
            // More than two discarded writes cost more than the same number of reads.
            let method = if multiple == 2 { "write-discard" } else { "read" };
            assert_eq!(evictions(&run).map(|eviction| &*eviction.method), [method, "write"]);
            for eviction in evictions(&run) {
                assert!(eviction.proved, "{usable}: {eviction:?}");
                assert_eq!((eviction.multiple, eviction.bytes), (multiple, bytes), "{usable}");
            }
            assert_eq!(run.report().devices[0].flush_bytes, Some(bytes), "{usable}");
            assert_eq!(missed(&run, "clean", "least"), [1000; 3], "{usable}");
            assert_eq!(missed(&run, "dirty", "least"), [1000; 3], "{usable}");
            assert!(run.report().warnings().is_empty(), "{:?}", run.report().warnings());
        }
    }

    /// The report's `partial` is accurate: the lines are still in the L2.
    #[test]
    fn unflushable_l2_is_partial() {
        let run = lines("l2_usable_bytes=300000000", "");
        assert_eq!(caches(&run), ["partial", "partial"]);
        // In the first round, the search for a flush runs between the touch and the read.
        assert_eq!(missed(&run, "clean", "median"), [0; 3]);
        for eviction in evictions(&run) {
            assert!(!eviction.proved);
            assert_eq!((eviction.multiple, eviction.bytes), (4, 4 * L2));
            assert_eq!(shares(eviction), (0.0, 0.0));
        }
        let warnings = run.report().warnings();
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings.iter().all(|warning| warning.contains("`partial`")), "{warnings:?}");
        assert!(run.stderr.contains(warnings[0]), "{}", run.stderr);
    }

    /// If a miss takes no longer than a hit, nothing is proved.
    #[test]
    fn indistinguishable_hits_and_misses() {
        let run = lines("l2_hit_cycles=500,l2_miss_cycles=510", "");
        assert_eq!(caches(&run), ["partial", "partial"]);
        assert!(evictions(&run).iter().all(|eviction| !eviction.proved));
    }

    #[test]
    fn persisting_lines_warn() {
        let run = lines("persisting_sixteenths=4", "");
        assert_eq!(caches(&run), ["partial", "partial"]);
        let warnings = run.report().warnings();
        let [warning] = &warnings[..] else { panic!("{warnings:?}") };
        assert!(warning.contains("persisting"), "{warning}");
        // Lines reserved by the driver but not used have no effect. An old driver reserves none.
        let run = scenario("cold/lines", &[]).without("cuCtxGetLimit").run();
        assert_eq!(caches(&run), ["cold", "cold-dirty"]);
        assert!(run.report().warnings().is_empty(), "{:?}", run.report().warnings());
    }

    /// The runtime's own stream makes no progress. The wait for it is bounded, and no state is
    /// claimed.
    #[test]
    fn busy_gpu_proves_nothing() {
        let run = lines("", "stream:hang=2");
        assert_eq!(caches(&run), ["partial", "partial"]);
        let device = &run.report().devices[0];
        assert_eq!((device.flush_bytes, device.flush_proof.is_some()), (Some(L2), false));
        let busy = device.warnings.iter().filter(|warning| warning.contains("busy")).count();
        assert_eq!(busy, 2, "{:?}", device.warnings);
    }

    /// Makes `times` calls, with a report after every `every` calls.
    fn calls(times: u64, every: u64, faults: &str) -> Run {
        let arguments = [times, every].map(|count| count.to_string());
        let calls = scenario("cold/calls", &[&arguments[0], &arguments[1]])
            .simulated(|sim| sim.faults(faults));
        calls.reports((times / every) as usize).run()
    }

    /// Returns the L2 states that a function's calls found, with their counts.
    fn states<'a>(run: &'a Run, name: &str) -> Vec<(&'a str, u64)> {
        let series = run.site(&format!("cold::spin_{name}")).series.iter();
        series.filter(|row| row.launch.is_none()).map(|row| (&*row.cache, row.timed)).collect()
    }

    /// A proof that failed at first is attempted again when a report is made.
    #[test]
    fn proof_at_report() {
        // The allocation for each of the two proofs fails the first time.
        let run = calls(10, 7, "cuMemAlloc_v2:2=2;cuMemAlloc_v2:4=2");
        for (name, proved) in [("clean", "cold"), ("dirty", "cold-dirty")] {
            assert_eq!(states(&run, name), [(proved, 3), ("partial", 7)], "{name}");
        }
        assert!(evictions(&run).iter().all(|eviction| eviction.proved));
        let warnings = run.report().warnings();
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings.iter().all(|warning| warning.contains("at first")), "{warnings:?}");
    }

    /// Calls do not retry the proof, and reports retry it a limited number of times.
    #[test]
    fn proof_retries_are_limited() {
        let attempts = |times, every| {
            let run = calls(times, every, "cuMemAlloc_v2:2+=2");
            assert_eq!(states(&run, "clean"), [("partial", times)]);
            ["cuMemAlloc_v2", "cuStreamQuery"]
                .map(|name| run.trace.calls().filter(|call| call.name == name).count())
        };
        // One allocation for the clean flush's buffer, and four for the dirty flush's buffers. The
        // memory for the proof is requested at the first call and at the end.
        assert_eq!(attempts(4, 5), [5 + 2, 1]);
        assert_eq!(attempts(600, 601), [5 + 2, 1]);
        // More reports request it again, but it is requested at most four times in all.
        assert_eq!(attempts(10, 1)[0], 5 + 4);
    }

    /// There is no memory for the buffer, for the timed lines, or for a larger flush.
    #[test]
    fn out_of_memory() {
        let run = lines("", "cuMemAlloc_v2:1+=2");
        assert_eq!(caches(&run), ["as-found", "as-found"]);
        assert!(run.report().warnings()[0].contains("timed without a flush"), "{}", run.stderr);
        assert_eq!(run.report().devices[0].flush_bytes, None);

        // The memory for each of the two proofs is refused, and again at the end.
        let run = lines("", "cuMemAlloc_v2:2=2;cuMemAlloc_v2:4+=2");
        assert_eq!(caches(&run), ["partial", "partial"]);
        assert!(run.report().devices[0].flush_proof.is_none());
        assert!(run.report().warnings()[0].contains("not be shown"), "{}", run.stderr);

        // Allocation 7 is the smallest buffer for the other flush, and allocation 8 is the memory
        // for its proof.
        let all_but_the_least = [3, 4, 5, 6, 9, 10, 11].map(|n| format!("cuMemAlloc_v2:{n}=2"));
        let run = lines("l2_usable_bytes=70000000", &all_but_the_least.join(";"));
        assert_eq!(caches(&run), ["partial", "partial"]);
        assert!(evictions(&run).iter().all(|eviction| !eviction.proved && eviction.multiple == 1));
    }
}
