//! Tests for forks, destroyed contexts, other tools and exit while CUPTI records, and that scenarios
//! find CUPTI if, and only if, they ask for it.

use crate::harness::{cupti_dir, scenario};

#[test]
fn forked_child_leaves_records_alone() {
    let run = scenario("cupti/forked", &[]).with_cupti().run();
    let row = run.row("cupti::recorded");
    assert_eq!((row.timed, row.opened, row.all_lost()), (10, 10, 0));
    assert_eq!(row.kernels.kernels_per_call, Some(1.0));
    assert!(run.others.is_empty());
    assert_eq!(run.trace.notes("forked_call").count(), 0);
}

#[test]
fn context_destroyed_with_records_outstanding() {
    let run = scenario("cupti/context_gone", &[]).with_cupti().run();
    let rows = &run.site("cupti::recorded").series;
    let sum = |of: fn(&crate::harness::report::Series) -> u64| rows.iter().map(of).sum::<u64>();
    assert_eq!(sum(|row| row.timed), 10);
    // Calls in the new context always have records.
    assert!(sum(|row| row.opened) >= 5, "{rows:?}");
    assert_eq!(sum(|row| row.opened + row.all_lost()), 10, "{rows:?}");
}

mod simulated {

    use gpu_time_sim_cupti::{SimCupti, Version};

    use super::*;
    use crate::harness::{Run, Scenario};

    /// Creates a scenario on a driver of CUDA 12.4, on which CUPTI of CUDA 13 does not work.
    fn on_old_driver() -> Scenario {
        scenario("kernels/nested", &["5"]).simulated(|sim| sim.model("driver_version=12_040"))
    }

    #[test]
    fn newest_library_that_fits_the_driver_is_used() {
        let both = [Version::V13_0, Version::V12_4].map(SimCupti::new);
        let run = both.into_iter().fold(on_old_driver(), Scenario::on_cupti).run();
        assert_eq!(run.report().process.cupti_version, Some(Version::V12_4.number()));
        assert_eq!(run.row("kernels::outer").opened, 5);
        assert_eq!(run.trace.calls_of("cuptiSubscribe").count(), 1);
    }

    #[test]
    fn only_library_is_tried_although_too_new() {
        let run = on_old_driver().on_cupti(SimCupti::new(Version::V13_2)).run();
        let why = "CUPTI of CUDA 13.2 cannot record kernels with a driver of CUDA 12.4 \
                   (CUPTI_ERROR_NOT_INITIALIZED): install the PyPI package `nvidia-cuda-cupti-cu12`";
        assert_eq!(run.report().process.kernels.as_deref(), Some(why));
        assert_eq!(run.row("kernels::outer").clock, "host");
    }

    #[test]
    fn named_library_is_tried_although_too_new() {
        let named = SimCupti::new(Version::V13_0);
        let path = cupti_dir(&named).join(Version::V13_0.file());
        let run = on_old_driver().on_cupti(SimCupti::new(Version::V12_4));
        let run = run.on_cupti(named).env("GPU_TIME_CUPTI", path.to_str().unwrap()).run();
        let why = run.report().process.kernels.as_deref().unwrap_or_default();
        assert!(why.starts_with("CUPTI of CUDA 13.0 "), "{why}");
    }

    #[test]
    fn next_library_is_used_if_one_does_not_work() {
        for code in ["2", "15", "27"] {
            let faults = format!("cuptiSubscribe:1={code}");
            let run = scenario("kernels/nested", &["5"])
                .simulated(|sim| sim.faults(&faults))
                .on_cupti(SimCupti::new(Version::V13_0))
                .on_cupti(SimCupti::new(Version::V12_4))
                .run();
            assert_eq!(run.report().process.cupti_version, Some(Version::V12_4.number()), "{code}");
            assert_eq!(run.row("kernels::outer").opened, 5, "{code}");
        }
    }

    #[test]
    fn held_cupti_stops_search_for_libraries() {
        let run = scenario("kernels/nested", &["5"])
            .simulated(|sim| sim.faults("cuptiSubscribe:1+=39"))
            .on_cupti(SimCupti::new(Version::V13_0))
            .on_cupti(SimCupti::new(Version::V12_4))
            .run();
        assert_eq!(run.report().process.cupti_version, Some(Version::V13_0.number()));
        assert_eq!(run.trace.calls_of("cuptiSubscribe").count(), 1);
    }

    #[test]
    fn buffers_that_come_back_at_exit_are_ignored() {
        let cupti = SimCupti::default().script("exit,records=3");
        let run = scenario("kernels/nested", &["5"]).on_cupti(cupti).run();
        assert_eq!(run.row("kernels::outer").kernels.kernels_per_call, Some(8.0));
    }

    #[test]
    fn subscription_is_retried_at_each_report() {
        let run = scenario("cupti/retried", &[])
            .with_cupti()
            .simulated(|sim| sim.faults("cuptiSubscribe:1=39"))
            .reports(1)
            .run();
        let rows = &run.site("cupti::recorded").series;
        assert_eq!(rows.iter().map(|row| row.timed).sum::<u64>(), 12);
        assert_eq!(rows.iter().map(|row| row.opened).sum::<u64>(), 7, "{rows:?}");
        assert_eq!(run.report().process.kernels, None);
        assert_eq!(run.trace.calls_of("cuptiSubscribe").count(), 2);
    }

    #[test]
    fn refused_kind_is_said_once() {
        let run = scenario("cupti/retried", &[])
            .with_cupti()
            .simulated(|sim| sim.faults("cuptiActivityEnable:1+=35"))
            .reports(1)
            .warns("CUPTI cannot record kernels")
            .complains(
                "gpu-time: CUPTI cannot record kernels: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES: run as root or with CAP_SYS_ADMIN"
            )
            .run();
        let rows = &run.site("cupti::recorded").series;
        assert_eq!(rows.iter().map(|row| row.timed).sum::<u64>(), 12);
        assert_eq!(rows.iter().map(|row| row.opened).sum::<u64>(), 0, "{rows:?}");
        // Only the first call tries in vain. The report tries again, so the calls after it do not.
        assert_eq!(rows.iter().map(|row| row.lost("records")).sum::<u64>(), 1, "{rows:?}");
        assert!(run.trace.recorded().next().is_none());
    }

    /// Runs `cupti/memory` on a version, with faults.
    fn memory(version: Version, faults: &str) -> Scenario {
        let faults = faults.to_owned();
        let run = scenario("cupti/memory", &[]).on_cupti(SimCupti::new(version));
        run.simulated(|sim| sim.faults(&faults))
    }

    /// Returns how many calls of each function were opened and how many were lost as `records`.
    fn outcomes(run: &Run) -> [(u64, u64); 3] {
        ["cupti::recorded", "cupti::sets_memory", "cupti::copies_memory"].map(|name| {
            let row = run.row(name);
            (row.opened, row.lost("records"))
        })
    }

    #[test]
    fn refused_kinds_lose_their_calls_at_once() {
        let memsets = "CUPTI could not record memsets: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES";
        let copies = "CUPTI could not record copies: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES";
        // The kinds of copies and memsets.
        for (refused, warning) in [("refuse=1,refuse=2", memsets), ("refuse=1", copies)] {
            let cupti = SimCupti::default().script(refused);
            let run = scenario("cupti/memory", &[]).on_cupti(cupti).warns(warning).run();
            assert_eq!(run.fact("in_flight"), 0);
            let lost = if warning == memsets { [0, 10, 10] } else { [0, 0, 10] };
            assert_eq!(outcomes(&run), lost.map(|lost| (10 - lost, lost)));
        }
    }

    #[test]
    fn window_with_refused_kinds_is_incomplete() {
        for (faults, incomplete) in [("", 0), ("cuptiActivityEnable:2+=999", 1)] {
            let run = scenario("cupti/window", &[])
                .with_cupti()
                .env("GPU_TIME_RECORD", "off")
                .simulated(|sim| sim.faults(faults));
            let run =
                if incomplete == 0 { run } else { run.warns("CUPTI could not record memsets") };
            let run = run.run();
            let coverage = run.report().devices[0].coverage.as_ref().unwrap();
            assert_eq!(coverage.incomplete, incomplete, "{coverage:?}");
        }
    }

    #[test]
    fn refused_flush_is_named() {
        let run = memory(Version::V13_0, "cuptiActivityFlushAll:1+=999")
            .warns("CUPTI could not hand over its records: CUPTI_ERROR_UNKNOWN")
            .run();
        assert_eq!(outcomes(&run), [(0, 10); 3]);
    }

    #[test]
    fn refused_stop_is_named() {
        for (version, suffix) in [(Version::V13_0, ""), (Version::V13_5, "_v2")] {
            let run = memory(version, &format!("cuptiActivityDisable{suffix}:1+=999"))
                .warns("CUPTI could not stop recording: CUPTI_ERROR_UNKNOWN")
                .run();
            assert_eq!(outcomes(&run), [(10, 0); 3]);
        }
    }

    #[test]
    fn failed_subscription_is_named_and_ended() {
        let failing = [
            (Version::V13_0, "cuptiSubscribe", 0),
            (Version::V13_0, "cuptiActivityRegisterCallbacks", 1),
            (Version::V13_5, "cuptiActivityRegisterCallbacks_v2", 1),
            (Version::V13_0, "cuptiEnableCallback", 1),
            (Version::V13_5, "cuptiEnableCallback", 1),
        ];
        for (version, function, ended) in failing {
            let run = memory(version, &format!("{function}:1+=999")).run();
            let why = run.report().process.kernels.as_deref();
            assert_eq!(why, Some("CUPTI cannot record kernels: CUPTI_ERROR_UNKNOWN"), "{function}");
            let rows = ["cupti::recorded", "cupti::sets_memory"].map(|name| run.row(name));
            assert!(rows.iter().all(|row| row.clock == "host" && row.opened == 0), "{function}");
            assert_eq!(run.trace.calls_of("cuptiUnsubscribe").count(), ended, "{function}");
        }
    }

    #[test]
    fn exit_at_work_drops_no_record() {
        for fragile in ["", "fragile"] {
            let run = scenario("cupti/busy_exit", &[])
                .on_cupti(SimCupti::default().script(fragile))
                // Of kernels that are still running.
                .may_warn("CUPTI gave ")
                .keeps_counting()
                .untraced()
                .run();
            let warnings = &run.report().process.warnings;
            assert!(!warnings.iter().any(|warning| warning.contains("dropped")), "{warnings:?}");
        }
    }

    /// The stand-in aborts if it is called, or gets a buffer, after its teardown.
    #[test]
    fn nothing_is_asked_of_cupti_after_the_exit_handler() {
        let run = |version, faults: &str| {
            let faults = faults.to_owned();
            let run = scenario("cupti/late_work", &[])
                .on_cupti(SimCupti::new(version))
                .simulated(|sim| sim.faults(&faults));
            let run = if faults.is_empty() { run } else { run.warns("CUPTI could not stop") };
            run.keeps_counting().run();
        };
        run(Version::V13_0, "");
        run(Version::V12_4, "");
        // CUPTI refuses to stop, so recording goes on.
        run(Version::V13_0, "cuptiActivityDisable:1+=999");
    }

    #[test]
    fn stand_in_is_found_in_every_version() {
        for version in [Version::V11_8, Version::V12_4, Version::V13_0, Version::V13_2] {
            let run =
                scenario("cupti/version", &[version.file()]).on_cupti(SimCupti::new(version)).run();
            assert_eq!(run.fact("version"), u64::from(version.number()), "{version:?}");
        }
    }

    #[test]
    fn stand_in_is_not_found_unless_asked_for() {
        let with = scenario("cupti/version", &["libcupti.so.13"]).with_cupti().run();
        assert_eq!(with.fact("version"), u64::from(Version::V13_0.number()));
        // The machine may have a library, but not this version, which does not exist.
        let (file, number) = (Version::V99.file(), u64::from(Version::V99.number()));
        let with = scenario("cupti/version", &[file]).on_cupti(SimCupti::new(Version::V99)).run();
        assert_eq!(with.fact("version"), number);
        let without = scenario("cupti/version", &[file]).run();
        assert_ne!(without.fact("version"), number);
    }
}
