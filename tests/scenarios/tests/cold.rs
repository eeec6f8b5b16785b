//! What a flush leaves in the L2: told by the kernels that come after it, and by the report.

use crate::harness::{Run, is_real, scenario};

/// Of all rounds, in thousandths.
fn missed(run: &Run, name: &str, which: &str) -> [u64; 3] {
    ["read", "write", "write among others"]
        .map(|touch| run.fact(&format!("{name} after {touch}, {which}")))
}

/// A kernel that times its own reads sees what the rows say.
#[test]
fn cold_is_cold() {
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
    for seen in [&proof.clean, &proof.dirty] {
        assert!(seen.as_ref().is_some_and(|seen| seen.proved), "{device:?}");
    }
    assert_eq!(run.report().warnings(), [""; 0]);
}

#[test]
fn cold_reads() {
    let run = scenario("cold/reads", &[]).run();
    let rows = ["clean", "dirty"].map(|name| run.row(&format!("cold::read_{name}")));
    assert_eq!(rows.map(|row| row.brackets()), [(10, 10, 0, 0); 2]);
    // Who reads after a dirty flush pays for writing back.
    let medians = rows.map(|row| row.raw().median);
    assert!(medians[0] < medians[1], "{medians:?}");
}

/// Each kind has a buffer as large as the flush, and what the proof took is given back. The driver takes
/// memory in larger pieces, and some for itself.
#[test]
fn memory_is_given_back() {
    let run = scenario("cold/memory", &[]).run();
    let device = &run.report().devices[0];
    let (flush, some) = (device.flush_bytes.unwrap(), device.l2_bytes.unwrap() / 2);
    for (kinds, most) in [("clean", flush + some), ("both", 2 * flush + some)] {
        assert!(run.fact(kinds) <= most, "{kinds}: {} of {most}", run.fact(kinds));
    }
}

/// Nobody waits for what other streams do.
#[test]
fn beside_other_work() {
    assert_eq!(scenario("cold/beside", &[]).run().fact("still busy"), 1);
}

/// How to flush is not found out while a bracket is open: a call goes without, and where all do the report
/// says why.
#[test]
fn a_bracket_is_left_alone() {
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

/// What one stream's lines do to the L2 all streams meet.
#[test]
fn lines_of_a_stream_that_persist() {
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
        let configure = |sim: gpu_time_sim_driver::SimDriver| sim.model(model).faults(faults);
        scenario("cold/lines", &[]).simulated(configure).run()
    }

    fn caches(run: &Run) -> [&str; 2] {
        ["clean", "dirty"].map(|name| &*run.row(&format!("cold::{name}")).cache)
    }

    /// What was seen of each kind of flush.
    fn seen(run: &Run) -> [&Eviction; 2] {
        let proof = run.report().devices[0].flush_proof.as_ref().expect("something was seen");
        [&proof.clean, &proof.dirty].map(|seen| seen.as_ref().expect("it was prepared"))
    }

    fn shares(seen: &Eviction) -> (f64, f64) {
        (seen.missed_after_read, seen.missed_after_write)
    }

    #[test]
    fn the_proof_is_in_the_report() {
        let run = lines("l2_hit_cycles=300,l2_miss_cycles=700", "");
        assert_eq!(run.report().devices[0].flush_bytes, Some(L2));
        assert_eq!(seen(&run).map(|seen| &*seen.method), ["write-discard", "write"]);
        assert_eq!(seen(&run).map(|seen| seen.missed_discarded), [Some(1.0), None]);
        for seen in seen(&run) {
            assert!(seen.proved);
            assert_eq!((seen.multiple, seen.bytes, seen.lines), (1, L2, 2_048));
            assert_eq!(shares(seen), (1.0, 1.0));
            let cycles = (seen.hit_cycles, seen.threshold_cycles, seen.miss_cycles);
            assert_eq!(cycles, (300, 300, Some(700)));
        }
    }

    /// Where lines cannot be discarded, or that has no effect, a clean flush reads.
    #[test]
    fn without_discarding() {
        for (model, faults) in [
            ("compute_capability=75", ""),
            ("l2_discards=0", ""),
            // With the other kernels, and again when it is wanted.
            ("", "cuModuleLoadData:3=218;cuModuleLoadData:5=218"),
            ("", "cuModuleGetFunction:6=500;cuModuleGetFunction:8=500"),
        ] {
            let run = lines(model, faults);
            assert_eq!(caches(&run), ["cold", "cold-dirty"], "{model} {faults}");
            let [clean, _] = seen(&run);
            assert_eq!(
                (&*clean.method, clean.proved, clean.multiple),
                ("read", true, 1),
                "{clean:?}"
            );
            assert_eq!(clean.missed_discarded, None);
            assert!(run.report().warnings().is_empty(), "{:?}", run.report().warnings());
        }
    }

    /// The driver may wait for a running kernel before it loads a module: both are loaded in the first wait,
    /// though nothing is cold yet.
    #[test]
    fn all_kernels_are_loaded_at_once() {
        let loads = |name: &str, model: &str, faults: &str| {
            let configure = |sim: gpu_time_sim_driver::SimDriver| sim.model(model).faults(faults);
            let run = scenario(name, &[]).simulated(configure).run();
            run.trace.calls().filter(|call| call.name == "cuModuleLoadData").count()
        };
        let (able, unable) = ("compute_capability=80", "compute_capability=75");
        for name in ["exit/return", "cold/lines"] {
            assert_eq!(loads(name, able, ""), loads(name, unable, "") + 1, "{name}");
        }
        // What failed then is tried again when it is wanted, and not before.
        let (once, tried) = (loads("cold/lines", able, ""), "cuModuleLoadData:3=218");
        assert_eq!(loads("cold/lines", able, tried), once + 1);
        assert_eq!(seen(&lines(able, tried))[0].method, "write-discard");
    }

    /// Who reads after a flush that discards writes nothing back, as after one that reads.
    #[test]
    fn both_clean_flushes_are_clean() {
        let times = ["", "compute_capability=75"].map(|model| {
            let configure = |sim: gpu_time_sim_driver::SimDriver| sim.model(model);
            let run = scenario("cold/reads", &[]).simulated(configure).run();
            run.row("cold::read_clean").raw().median
        });
        assert_eq!(times[0], times[1]);
    }

    /// A clean flush that reads does not find what a dirty one wrote before it, and so leaves none of it: not
    /// even in an L2 that holds all of a flush.
    #[test]
    fn a_clean_flush_after_a_dirty_one_is_clean() {
        let times = ["", ",compute_capability=75"].map(|reads| {
            let model = format!("l2_usable_bytes={L2}{reads}");
            let configure = |sim: gpu_time_sim_driver::SimDriver| sim.model(&model);
            // More than the call before it let go of what the dirty flush wrote.
            let run = scenario("cold/reads", &["30", "10"]).simulated(configure).run();
            run.row("cold::read_clean").raw().median
        });
        assert_eq!(times[0], times[1]);
    }

    /// A flush that leaves the L2 free may then fill that and evict nothing: one that reads leaves it full.
    #[test]
    fn an_l2_that_was_just_flushed() {
        let run = lines("l2_fills_free=1", "");
        assert_eq!(caches(&run), ["cold", "cold-dirty"]);
        assert_eq!(
            seen(&run).map(|seen| (&*seen.method, seen.proved)),
            [("read", true), ("write", true)]
        );
        for name in ["clean", "dirty"] {
            assert_eq!(missed(&run, name, "least"), [1000; 3], "{name}");
        }
    }

    /// A driver that cannot give memory back without a wait keeps it.
    #[test]
    fn memory_that_stays() {
        // As the simulated driver allocates.
        let piece = |bytes: u64| (bytes + 16).next_multiple_of(512);
        let (flush, watched) = (piece(L2), piece(L2 + 2_048 * 1_024));
        let exact = |sim: gpu_time_sim_driver::SimDriver| sim.model("memory_pools=0");
        let run = scenario("cold/memory", &[]).simulated(exact).run();
        assert_eq!([run.fact("clean"), run.fact("both")], [flush, 2 * flush]);
        let run = scenario("cold/memory", &[])
            .without("cuMemFreeAsync")
            .env("GPU_TIME_TEST_SIM_MODEL", "memory_pools=0")
            .run();
        let kept = [flush + watched, 2 * (flush + watched)];
        assert_eq!([run.fact("clean"), run.fact("both")], kept);
    }

    /// An L2 that keeps more than the driver says of it needs more, and no more than that.
    #[test]
    fn the_flush_is_as_large_as_it_has_to_be() {
        for (usable, multiple) in [(70_000_000, 2), (130_000_000, 3), (200_000_000, 4)] {
            let run = lines(&format!("l2_usable_bytes={usable}"), "");
            assert_eq!(caches(&run), ["cold", "cold-dirty"], "{usable}");
            let bytes = L2 * u64::from(multiple);
            // More than two writes, discarded, are dearer than as many reads.
            let method = if multiple == 2 { "write-discard" } else { "read" };
            assert_eq!(seen(&run).map(|seen| &*seen.method), [method, "write"]);
            for seen in seen(&run) {
                assert!(seen.proved, "{usable}: {seen:?}");
                assert_eq!((seen.multiple, seen.bytes), (multiple, bytes), "{usable}");
            }
            assert_eq!(run.report().devices[0].flush_bytes, Some(bytes), "{usable}");
            assert_eq!(missed(&run, "clean", "least"), [1000; 3], "{usable}");
            assert_eq!(missed(&run, "dirty", "least"), [1000; 3], "{usable}");
            assert!(run.report().warnings().is_empty(), "{:?}", run.report().warnings());
        }
    }

    /// What the report calls partial is: the lines are still there.
    #[test]
    fn an_l2_that_cannot_be_emptied() {
        let run = lines("l2_usable_bytes=300000000", "");
        assert_eq!(caches(&run), ["partial", "partial"]);
        // In the first round the search for a flush comes between.
        assert_eq!(missed(&run, "clean", "median"), [0; 3]);
        for seen in seen(&run) {
            assert!(!seen.proved);
            assert_eq!((seen.multiple, seen.bytes), (4, 4 * L2));
            assert_eq!(shares(seen), (0.0, 0.0));
        }
        let warnings = run.report().warnings();
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings.iter().all(|warning| warning.contains("`partial`")), "{warnings:?}");
        assert!(run.stderr.contains(warnings[0]), "{}", run.stderr);
    }

    /// Where a miss takes no longer than a hit, nothing is proved.
    #[test]
    fn hits_and_misses_that_cannot_be_told_apart() {
        let run = lines("l2_hit_cycles=500,l2_miss_cycles=510", "");
        assert_eq!(caches(&run), ["partial", "partial"]);
        assert!(seen(&run).iter().all(|seen| !seen.proved));
    }

    #[test]
    fn lines_that_persist() {
        let run = lines("persisting_sixteenths=4", "");
        assert_eq!(caches(&run), ["partial", "partial"]);
        let warnings = run.report().warnings();
        let [warning] = &warnings[..] else { panic!("{warnings:?}") };
        assert!(warning.contains("persisting"), "{warning}");
        // What the driver sets aside by itself, nobody uses; and an old driver knows of none.
        let run = scenario("cold/lines", &[]).without("cuCtxGetLimit").run();
        assert_eq!(caches(&run), ["cold", "cold-dirty"]);
        assert!(run.report().warnings().is_empty(), "{:?}", run.report().warnings());
    }

    /// Our own stream gets nowhere: nobody waits for it for ever, and nothing is claimed.
    #[test]
    fn a_gpu_that_is_busy() {
        let run = lines("", "stream:hang=2");
        assert_eq!(caches(&run), ["partial", "partial"]);
        let device = &run.report().devices[0];
        assert_eq!((device.flush_bytes, device.flush_proof.is_some()), (Some(L2), false));
        let busy = device.warnings.iter().filter(|warning| warning.contains("busy")).count();
        assert_eq!(busy, 2, "{:?}", device.warnings);
    }

    /// So many calls with a report after every so many.
    fn calls(times: u64, every: u64, faults: &str) -> Run {
        let configure = |sim: gpu_time_sim_driver::SimDriver| sim.faults(faults);
        let arguments = [times, every].map(|count| count.to_string());
        let calls = scenario("cold/calls", &[&arguments[0], &arguments[1]]).simulated(configure);
        calls.reports((times / every) as usize).run()
    }

    /// The states that calls of a function met, and how often.
    fn states<'a>(run: &'a Run, name: &str) -> Vec<(&'a str, u64)> {
        let series = run.site(&format!("cold::spin_{name}")).series.iter();
        series.filter(|row| row.launch.is_none()).map(|row| (&*row.cache, row.timed)).collect()
    }

    /// What could not be seen at first is looked at again when a report is made.
    #[test]
    fn a_proof_that_comes_later() {
        // What is watched for the one and for the other.
        let run = calls(10, 7, "cuMemAlloc_v2:2=2;cuMemAlloc_v2:4=2");
        for (name, proved) in [("clean", "cold"), ("dirty", "cold-dirty")] {
            assert_eq!(states(&run, name), [(proved, 3), ("partial", 7)], "{name}");
        }
        assert!(seen(&run).iter().all(|seen| seen.proved));
        let warnings = run.report().warnings();
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings.iter().all(|warning| warning.contains("at first")), "{warnings:?}");
    }

    /// No call does so, and nobody for ever.
    #[test]
    fn a_proof_that_never_comes() {
        let looks = |times, every| {
            let run = calls(times, every, "cuMemAlloc_v2:2+=2");
            assert_eq!(states(&run, "clean"), [("partial", times)]);
            ["cuMemAlloc_v2", "cuStreamQuery"]
                .map(|name| run.trace.calls().filter(|call| call.name == name).count())
        };
        // One for the clean flush's buffer, four for those of a dirty one; what is watched is asked for at
        // the first call and at the end.
        assert_eq!(looks(4, 5), [5 + 2, 1]);
        assert_eq!(looks(600, 601), [5 + 2, 1]);
        // And then four times.
        assert_eq!(looks(10, 1)[0], 5 + 4);
    }

    /// The buffer, what is watched, or what a larger flush needs.
    #[test]
    fn short_of_memory() {
        let run = lines("", "cuMemAlloc_v2:1+=2");
        assert_eq!(caches(&run), ["as-found", "as-found"]);
        assert!(run.report().warnings()[0].contains("timed as found"), "{}", run.stderr);
        assert_eq!(run.report().devices[0].flush_bytes, None);

        // What is watched for the one and for the other, and at the end again.
        let run = lines("", "cuMemAlloc_v2:2=2;cuMemAlloc_v2:4+=2");
        assert_eq!(caches(&run), ["partial", "partial"]);
        assert!(run.report().devices[0].flush_proof.is_none());
        assert!(run.report().warnings()[0].contains("was not shown"), "{}", run.stderr);

        // The seventh is the least buffer of the other flush, the eighth what is watched for it.
        let all_but_the_least = [3, 4, 5, 6, 9, 10, 11].map(|n| format!("cuMemAlloc_v2:{n}=2"));
        let run = lines("l2_usable_bytes=70000000", &all_but_the_least.join(";"));
        assert_eq!(caches(&run), ["partial", "partial"]);
        assert!(seen(&run).iter().all(|seen| !seen.proved && seen.multiple == 1));
    }
}
