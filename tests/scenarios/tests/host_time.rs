//! Tests for the host time of calls that events time.

use crate::harness::scenario;

/// The runtime measures the host times of the first 16 calls and of an eighth of the others. They lie
/// between the function's own time and the time that its caller sees.
#[test]
fn calls_timed_by_events_have_their_host_time() {
    let run = scenario("host_time", &[]).run();
    for name in ["several", "single", "body"] {
        let row = run.row(&format!("host_time::{name}"));
        assert_eq!((row.timed, row.measured, row.opened), (816, 816, 0), "{row:?}");
        let host = row.kernels.host_ns.as_ref().unwrap();
        let calls = (host.sum / host.mean).round();
        assert!((16.0 + 95.0..=16.0 + 105.0).contains(&calls), "{name}: {calls} calls");
        let seen_ns = run.fact(name) as f64 / 816.0;
        assert!(60_000.0 <= host.min && host.median <= seen_ns, "{name}: {seen_ns}, {host:?}");
    }
    let several = run.site("host_time::several");
    assert!([0, 1].iter().all(|at| several.launch(*at).kernels.host_ns.is_none()), "{several:?}");
    let asynchronous = run.row("host_time::asynchronous");
    assert!(asynchronous.measured == 816 && asynchronous.kernels.host_ns.is_none());
}
