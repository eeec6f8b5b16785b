//! The trace for viewers: what was timed, in its place in time.

use crate::harness::scenario;

/// Every bracket is there, on its stream and under its call.
#[test]
fn brackets_lie_on_their_streams() {
    let run = scenario("exact/fed", &[]).shows().run();
    let events = run.events();
    events.check_report(run.report());
    for (name, brackets) in [("exact::one", 30), ("exact::three #2", 30), ("exact::body", 30)] {
        let found = events.of(name);
        assert_eq!(found.len(), brackets, "{name}");
        assert!(found.iter().all(|slice| slice.row.starts_with("stream 0x")), "{found:?}");
        assert!(found.iter().all(|slice| slice.process.starts_with("cuda:0 ")), "{found:?}");
    }
    assert_eq!(events.arrows, events.brackets.len());
    assert!(events.calls.iter().all(|slice| slice.row == "main"));
    assert_eq!(events.calls.len(), 4 * 30 + 2 * 10);
}

mod simulated {
    use super::*;

    #[test]
    fn brackets_lie_where_the_model_has_them() {
        for name in ["exact/fed", "exact/starved", "fed/nested", "streams/several"] {
            let run = scenario(name, &[]).simulated(|sim| sim).shows().run();
            run.events().check_report(run.report());
            let (compared, worst) = run.events().check_model(&run.trace);
            eprintln!("{name}: {compared} {worst}");
        }
    }
}
