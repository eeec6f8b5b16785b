//! Tests for budgets that have no room for recording the whole run.

use crate::harness::{Run, Scenario, scenario};

const FUNCTIONS: [&str; 2] = ["surcharge::without_stream", "surcharge::on_stream"];
const WHY: &str = "the budget of 1.0% has no room for it, because recorded calls take longer: set \
                   `GPU_TIME_RECORD=start:30s` to record the first 30 s, or `20ms/1s` to record phases";

/// A program that asks for its kernels and for phases. Its bias is given, so that CUPTI need not measure it.
fn kernels(budget: &str) -> Scenario {
    let kernels = scenario("surcharge/kernels", &[]).with_cupti().env("GPU_TIME_BIAS", "2us");
    kernels.env("GPU_TIME_BUDGET", budget)
}

/// Returns the numbers of opened calls of [`FUNCTIONS`].
fn opened(run: &Run) -> [u64; 2] {
    FUNCTIONS.map(|name| run.site(name).series.iter().map(|row| row.opened).sum())
}

/// Returns the reason why no call was opened.
fn why(run: &Run) -> Option<&str> {
    run.report().process.kernels.as_deref()
}

#[track_caller]
fn assert_cupti_is_not_loaded(run: &Run) {
    assert!(!run.trace.calls().any(|call| call.name.starts_with("cupti")));
    assert_eq!(run.report().process.cupti_version, None);
}

#[test]
fn budget_has_no_room_for_kernels() {
    let complaint = "gpu-time: the requested phase cannot begin: the budget of 1.0% has";
    let run = kernels("1%").env("GPU_TIME_RECORD", "on").complains(complaint).run();
    assert_cupti_is_not_loaded(&run);
    assert_eq!((opened(&run), why(&run)), ([0, 0], Some(WHY)));
    let clocks = FUNCTIONS.map(|name| {
        let row = run.row(name);
        assert!(row.measured > 0, "{name}");
        row.clock.clone()
    });
    assert_eq!(clocks, ["host", "events"]);
    assert!(run.report().devices.iter().all(|device| device.coverage.is_none()));
}

#[test]
fn ample_budget_records_from_the_first_call_on() {
    let run = kernels("60%").env("GPU_TIME_RECORD", "on").run();
    assert!(opened(&run).iter().all(|opened| *opened > 0), "{:?}", opened(&run));
    assert_eq!(why(&run), None);
}

#[test]
fn only_what_was_wanted_is_explained() {
    let events = |name, value| {
        let events = scenario("surcharge/events", &[]).with_cupti().env("GPU_TIME_BIAS", "2us");
        let run = events.env("GPU_TIME_BUDGET", "1%").env(name, value).run();
        assert_cupti_is_not_loaded(&run);
        why(&run).map(str::to_owned)
    };
    let why = Some(WHY.to_owned());
    assert_eq!(events("GPU_TIME_RECORD", "on"), why);
    assert_eq!(events("GPU_TIME_RECORD", "off"), None);
}

#[test]
fn spans_that_may_not_be_recorded_are_explained() {
    let run = scenario("spans/nested", &["50"]).with_cupti().keeps_counting();
    let run = run.env("GPU_TIME_BUDGET", "1%").run();
    assert_cupti_is_not_loaded(&run);
    assert_eq!(why(&run), Some(WHY));
    assert!(run.report().tree.is_empty());
}

#[test]
fn budget_may_be_set_and_removed_while_the_program_runs() {
    let run = scenario("surcharge/later", &[]).with_cupti().run();
    let rows = &run.site(FUNCTIONS[0]).series;
    assert_eq!(rows.iter().map(|row| row.opened).sum::<u64>(), 40);
    let by_host = rows.iter().filter(|row| row.clock == "host").map(|row| row.measured);
    assert!((1..=20).contains(&by_host.sum::<u64>()));
}
