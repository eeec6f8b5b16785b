//! Calls that interrupt the runtime on their own thread. The harness compares the number of calls
//! with the program's own count, and checks `calls = warmup + skipped + timed`.

use std::time::Duration;

use crate::harness::scenario;

#[test]
fn signal_handler_interrupts_runtime() {
    let run = scenario("reentry/handler", &[])
        .env("GPU_TIME_FILTER", "!scenario::reentry::off")
        .untraced()
        // The two threads take turns for each signal.
        .timeout(Duration::from_secs(300))
        .run();
    let [rounds, signals, inside] = ["rounds", "signals", "inside"].map(|name| run.fact(name));
    assert!(rounds >= signals - 1, "each signal but the first waits for a round: {rounds}");
    assert!(
        0 < inside && inside < signals,
        "{inside} of {signals} signals came inside the runtime"
    );
    // Only calls from signals that interrupted the runtime are skipped.
    let counts = |name: &str| run.site(&format!("reentry::{name}")).counts();
    let calls = rounds + signals;
    assert_eq!(counts("on_host"), (calls, 50, inside, calls - 50 - inside));
    assert_eq!(counts("on_gpu"), (calls, 0, inside, calls - inside));
    assert_eq!(counts("interrupting"), (signals, 0, inside, signals - inside));
    assert_eq!(counts("off"), (calls, 0, calls, 0));
    let sampled = run.site("reentry::sampled");
    assert!(sampled.skipped - sampled.unsampled <= inside, "{inside}: {sampled:?}");
}

#[test]
fn allocator_interrupts_runtime() {
    let run = scenario("reentry/allocator", &[]).reports(1).run();
    // The program allocates and frees 800 boxes outside the runtime.
    assert_eq!(run.fact("own timed"), 1_600);
    // A report allocates inside the runtime.
    assert!(run.fact("report calls") > 0);
    assert_eq!(run.fact("report timed"), 0);
    assert_eq!(run.site("reentry::on_gpu").counts(), (800, 0, 0, 800));
}
