//! Tests for the attribute's keys, and how the environment and the program can override them.

use crate::harness::report::Series;
use crate::harness::{Run, Scenario, assert_lasts, is_real, scenario};

fn keys() -> Scenario {
    scenario("options/keys", &[])
}

/// Returns the distinct L2 states found by a function's launches.
fn caches(run: &Run, name: &str) -> Vec<String> {
    let site = run.site(name);
    let mut caches: Vec<String> = site.series.iter().map(|row| row.cache.clone()).collect();
    caches.sort();
    caches.dedup();
    caches
}

#[test]
fn keys_take_effect() {
    let run = keys().run();
    for name in ["hot", "cold", "cold_dirty", "cold_thrice", "delayed"] {
        let site = run.site(&format!("options::{name}"));
        let calls = if name == "hot" { 40 } else { 20 };
        assert_eq!(site.counts(), (calls, 0, 0, calls), "{name}");
        assert_eq!(site.row().brackets(), (calls, calls, 0, 0), "{name}");
        assert!(site.warnings.is_empty(), "{name}: {:?}", site.warnings);
    }
    assert_eq!(caches(&run, "options::hot"), ["as-found"]);
    assert_eq!(caches(&run, "options::cold"), ["cold"]);
    assert_eq!(caches(&run, "options::cold_dirty"), ["cold-dirty"]);
    let thrice = run.site("options::cold_thrice");
    let found = [0, 1, 2].map(|launch| thrice.launch(launch).cache.as_str());
    assert_eq!(found, ["cold", "after-cold", "after-cold"]);
    assert_eq!(thrice.row().cache, "cold");
    let warmed = run.site("warm it up");
    assert_eq!(warmed.counts(), (20, 4, 0, 16));
    assert!(warmed.options.contains("WARMUP"), "{}", warmed.options);
    assert_eq!(warmed.row().brackets(), (16, 16, 0, 0));

    // A hold hides every gap from the GPU, except in the first call, which is not held.
    for name in ["options::hot", "options::cold", "options::cold_dirty"] {
        let row = run.row(name);
        assert!(row.fed >= row.measured - 1, "{name}: {row:?}");
    }
    let median = |name: &str| run.row(name).raw().median;
    let (hot, cold, dirty) =
        (run.row("options::hot").raw().min, median("options::cold"), median("options::cold_dirty"));
    assert!(hot < cold && cold < dirty, "{hot}, {cold}, {dirty}");
    assert_lasts(run.row("options::delayed"), 5_000.0);
}

#[test]
fn filter_selects_functions() {
    let run = keys().env("GPU_TIME_FILTER", "*::cold*,!*_dirty").run();
    for (name, is_timed) in [
        ("options::hot", false),
        ("options::cold", true),
        ("options::cold_dirty", false),
        ("options::cold_thrice", true),
        ("warm it up", false),
    ] {
        let site = run.site(name);
        let skipped = if is_timed { 0 } else { site.calls };
        assert_eq!(site.counts(), (site.calls, 0, skipped, site.calls - skipped), "{name}");
        assert_eq!(site.series.is_empty(), !is_timed, "{name}");
    }
}

#[test]
fn filter_without_match_warns() {
    let warning = "the filter matches none of the ";
    let run = keys().env("GPU_TIME_FILTER", "no_such_function").warns(warning).run();
    let hot = run.site("options::hot");
    assert_eq!(hot.counts(), (40, 0, 40, 0));
    assert_eq!(run.report().total(|row| row.timed), 0);
}

#[test]
fn filter_without_path_gets_suggestion() {
    let run =
        keys().env("GPU_TIME_FILTER", "cold_thrice").warns("the filter matches none of the ").run();
    let hint = "functions: did you mean `*::cold_thrice`?";
    assert!(run.stderr.contains(hint), "{}", run.stderr);
}

/// A misspelled variable would otherwise go unnoticed, because nothing reads it.
#[test]
fn unknown_variable_complains_once() {
    let run = keys()
        .env("GPU_TIME_REPROT", "none")
        .env("GPU_TIME_TEST_ANYTHING", "1")
        .complains("gpu-time: unknown variable `GPU_TIME_REPROT`: did you mean `GPU_TIME_REPORT`?")
        .warns("unknown variable `GPU_TIME_REPROT`: ")
        .run();
    assert_eq!(run.stderr.matches("unknown variable").count(), 1, "{}", run.stderr);
}

#[test]
fn reports_say_where_they_are_from() {
    let run = keys().env("GPU_TIME_LABEL", "fused, take 2").run();
    let process = &run.report().process;
    assert_eq!(process.label.as_deref(), Some("fused, take 2"));
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert_eq!(process.host.as_deref(), Some(host.trim()));
    // The program's version is that of the package whose crate has the program's name.
    assert_eq!(process.program_version.as_deref(), Some(env!("CARGO_PKG_VERSION")));
    let uuid = run.report().devices[0].uuid.as_deref().unwrap();
    let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
    assert_eq!(lengths, [3, 8, 4, 4, 4, 12], "{uuid}");
    let version = env!("CARGO_PKG_VERSION");
    let footer = format!("\nlabel fused, take 2, scenario {version}, host {}\n", host.trim());
    assert!(run.stderr.contains(&footer), "{}", run.stderr);
    assert!(run.stderr.contains(&format!("\ncuda:0: {uuid}, driver ")), "{}", run.stderr);
}

#[test]
fn environment_overrides_keys() {
    let run = keys().env("GPU_TIME_WARMUP", "7").run();
    for name in ["options::hot", "options::cold", "warm it up"] {
        assert_eq!(run.site(name).warmup, 7, "{name}");
    }
    let run = keys().env("GPU_TIME_COLD", "off").run();
    for name in ["options::hot", "options::cold", "options::cold_dirty", "options::cold_thrice"] {
        assert_eq!(caches(&run, name), ["as-found"], "{name}");
    }
    let run = keys().env("GPU_TIME_COLD", "dirty").run();
    for name in ["options::hot", "options::cold", "options::cold_dirty", "warm it up"] {
        assert_eq!(caches(&run, name), ["cold-dirty"], "{name}");
    }
    let run = keys().env("GPU_TIME_SLEEP", "on").run();
    let row = run.row("warm it up");
    assert!(row.fed >= row.measured - 1, "{row:?}");
}

#[test]
fn program_switches_timing() {
    let run = scenario("options/switched", &[]).run();
    for name in ["options::cold", "options::cold_thrice", "options::delayed"] {
        assert_eq!(run.site(name).counts(), (30, 0, 20, 10), "{name}");
        assert_eq!(run.row(name).brackets(), (10, 10, 0, 0), "{name}");
    }
    assert_eq!(run.site("warm it up").counts(), (30, 4, 20, 6));
}

#[test]
fn snapshots_while_working() {
    let run = scenario("options/snapshots", &[]).reports(2).run();
    assert_eq!(run.row("options::delayed").brackets(), (20, 20, 0, 0));
}

/// A function that waits for its own work is released by the deadline a few times, and is then no
/// longer held.
#[test]
fn hold_switches_off_for_waiting_function() {
    let run = scenario("options/waits", &[]).run();
    let site = run.site("options::waits_inside");
    assert_eq!(site.row().brackets(), (40, 40, 0, 0));
    // The first call is not held, and there is no fifth deadline.
    assert_eq!((site.holds_released, site.holds_expired), (0, 4));
    if !is_real() {
        // Four deadlines of 200 µs, and 39 calls of about 15 µs each.
        let took_us = run.fact("all_but_the_first_us");
        assert!((800..1_600).contains(&took_us), "{took_us} µs");
    }
    let [warning] = &site.warnings[..] else { panic!("{:?}", site.warnings) };
    assert!(warning.contains("switched off"), "{warning}");
    assert!(run.stderr.contains(warning), "{}", run.stderr);
}

/// If every launch waits for its kernel, a held stream would never be released.
#[test]
fn blocking_launches_are_not_held() {
    let run = keys().env("CUDA_LAUNCH_BLOCKING", "1").run();
    for name in ["options::hot", "options::cold", "options::cold_thrice", "warm it up"] {
        let row = run.row(name);
        assert_eq!((row.measured, row.in_flight), (row.timed, 0), "{name}");
    }
}

#[test]
fn false_switches_timing_off() {
    for off in ["0", "false", "no", "OFF"] {
        let run = keys().env("GPU_TIME", off).reports_nothing().run();
        assert_eq!(run.stderr, "", "{off}");
    }
}

/// With `GPU_TIME=off` the runtime makes no driver calls and prints nothing.
#[test]
fn environment_switches_timing_off() {
    let run = keys().env("GPU_TIME", "off").reports_nothing().run();
    assert_eq!(run.stderr, "");
    if !is_real() {
        let foreign =
            ["cuEventRecord", "cuStreamIsCapturing", "cuEventCreate", "cuMemHostRegister_v2"];
        assert!(run.trace.calls().count() > 100);
        assert!(run.trace.calls().all(|call| !foreign.contains(&call.name.as_str())));
    }
}

mod simulated {
    use super::*;
    use gpu_time_sim_driver::formula;

    /// 3.75 MiB in units of 16 bytes.
    const N16: u64 = 15 << 14;

    #[track_caller]
    fn assert_median(row: &Series, ns: u64) {
        assert!((row.raw().median - ns as f64).abs() < 1.0, "{ns}: {:?}", row.raw());
    }

    /// The expected values are closed formulas, independent of the model's code.
    #[test]
    fn copy_times_match_cache_states() {
        let run = keys().run();
        let pair = |ns| formula::fed_pair_ns(&[ns]);
        assert_median(run.row("options::cold"), pair(formula::cold_copy_ns(N16)));
        assert_median(run.row("options::cold_dirty"), pair(formula::cold_dirty_copy_ns(N16)));
        let hot = run.row("options::hot").raw().min;
        assert!((hot - pair(formula::hot_copy_ns(N16)) as f64).abs() < 1.0, "{hot}");
    }
}
