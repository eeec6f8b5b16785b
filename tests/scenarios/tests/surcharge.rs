//! Tests for budgets that have no room for what CUPTI adds to every launch.

use crate::harness::tree::paths;
use crate::harness::{Run, Scenario, scenario};

const FUNCTIONS: [&str; 2] = ["surcharge::without_stream", "surcharge::on_stream"];

fn program(pace: &str, ms: &str) -> Scenario {
    scenario("surcharge/launches", &[pace, ms]).with_cupti().untraced()
}

/// Returns the numbers of opened calls of [`FUNCTIONS`].
fn opened(run: &Run) -> [u64; 2] {
    FUNCTIONS.map(|name| run.site(name).series.iter().map(|row| row.opened).sum())
}

/// Returns the reason why no call was opened.
fn why(run: &Run) -> &str {
    run.report().process.kernels.as_deref().unwrap_or_default()
}

#[test]
fn program_with_many_launches_keeps_its_budget() {
    for pace in ["often", "late"] {
        let run = program(pace, "1200")
            .env("GPU_TIME_BUDGET", "0.1%")
            .env("GPU_TIME_WINDOWS", "1ms/20ms")
            .complains("gpu-time: the requested window cannot be opened: the budget of 0.10% has")
            .run();
        assert!(
            why(&run).starts_with("the budget of 0.10% has no room for it. From"),
            "{}",
            why(&run)
        );
        assert_eq!(opened(&run), [0, 0]);
        // Without kernels, a stream's events and the host's clock are left.
        let called = if pace == "late" { &FUNCTIONS[..1] } else { &FUNCTIONS };
        assert!(called.iter().all(|name| run.site(name).timed > 0));
        assert!(run.report().devices.iter().all(|device| device.coverage.is_none()));
    }
}

#[test]
fn program_that_ends_before_the_verdict_says_so() {
    for pace in ["often", "seldom", "late"] {
        let run = program(pace, "50").env("GPU_TIME_BUDGET", "1%").run();
        let why = why(&run);
        assert!(why.starts_with("the budget of 1.0% may have no room for it"), "{pace}: {why}");
        assert_eq!(opened(&run), [0, 0]);
    }
}

/// A second context is calibrated while nothing may be recorded.
#[test]
fn nothing_is_recorded_before_the_verdict() {
    let run = program("often", "50").env("GPU_TIME_BUDGET", "1%").run();
    let sources: Vec<_> =
        run.report().devices.iter().map(|device| device.event_bias_source.as_deref()).collect();
    assert!(!sources.contains(&Some("cupti")), "{sources:?}");
}

#[test]
fn program_with_few_launches_has_room_for_kernels() {
    let run = program("seldom", "1700").env("GPU_TIME_BUDGET", "1%").run();
    assert!(opened(&run)[0] > 0, "{:?}", opened(&run));
    assert_eq!(why(&run), "");
    let unsampled = run.site(FUNCTIONS[0]).unsampled;
    assert!(unsampled > 0, "calls were opened before the launches were counted");
}

/// The call around them could not be opened when it began, so it does not make them more likely.
#[test]
fn calls_begun_before_verdict_represent_others() {
    let run = scenario("surcharge/outer", &[]).with_cupti().untraced();
    let run = run.env("GPU_TIME_BUDGET", "1%").run();
    let paths = paths(&run);
    let inner = paths["serves/sometimes"];
    let represented = inner.calls / inner.recorded as f64;
    assert!(inner.recorded > 20 && represented > 2.5, "{inner:?}");
}

#[test]
fn spans_that_may_not_be_recorded_are_explained() {
    let run = scenario("spans/nested", &["50"]).with_cupti().keeps_counting();
    let run = run.env("GPU_TIME_BUDGET", "1%").run();
    assert!(why(&run).starts_with("the budget of 1.0% may have no room for it"), "{}", why(&run));
    assert!(run.report().tree.is_empty());
}

#[test]
fn ample_budget_records_from_the_first_call_on() {
    let run = program("often", "50").env("GPU_TIME_BUDGET", "60%").run();
    assert!(opened(&run).iter().all(|opened| *opened > 0), "{:?}", opened(&run));
}
