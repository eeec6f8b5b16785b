//! Calls that interrupt the runtime on their own thread. The harness compares the number of calls with the
//! program's own count, and checks `calls = warmup + skipped + timed`.

use crate::harness::scenario;

#[test]
fn signal_handler_interrupts_runtime() {
    let run = scenario("reentry/handler", &[])
        .env("GPU_TIME_FILTER", "!scenario::reentry::off")
        .untraced()
        .run();
    for name in ["on_host", "on_gpu"] {
        let (calls, _, skipped, timed) = run.site(&format!("reentry::{name}")).counts();
        assert!(skipped > 0, "no signal came inside the runtime: {calls} calls of `{name}`");
        assert!(timed > 5_000 / 2, "{calls} calls of `{name}`: {skipped} skipped");
    }
    assert_eq!(run.site("reentry::on_host").counts().1, 50);
    let (calls, _, skipped, _) = run.site("reentry::off").counts();
    assert_eq!(skipped, calls);
}

#[test]
fn allocator_interrupts_runtime() {
    let run = scenario("reentry/allocator", &[]).reports(1).run();
    let (calls, _, skipped, timed) = run.site("reentry::in_allocator").counts();
    assert!(skipped > 0 && timed > 800, "{calls} calls: {skipped} skipped, {timed} timed");
    let (calls, _, skipped, timed) = run.site("reentry::on_gpu").counts();
    assert_eq!((calls, skipped, timed), (800, 0, 800));
}
