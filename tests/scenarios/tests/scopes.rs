//! Tests for the extent of brackets, and for the ways in which a function can leave one.

use crate::harness::report::Series;
use crate::harness::{assert_lasts, is_real, scenario};

/// Returns `(timed, measured, lost for this reason)`. Asserts that no sample was lost for another
/// reason or is in flight.
#[track_caller]
fn outcome(row: &Series, reason: &str) -> (u64, u64, u64) {
    assert_eq!(row.measured + row.lost(reason), row.timed, "{row:?}");
    (row.timed, row.measured, row.lost(reason))
}

#[test]
fn brackets_inside_are_removed_from_the_one_around_them() {
    for ns in ["3000", "10000"] {
        let run = scenario("scopes/inner", &[ns]).run();
        let [alone, around] =
            ["scopes::pass_alone", "scopes::pass_around"].map(|name| run.row(name));
        let median = |row: &Series| row.net_ns.as_ref().unwrap().median;
        let (alone_net, around_net) = (median(alone), median(around));
        // A bracket with a dozen more behind it adds more time than a single bracket does.
        let device = &run.report().devices[0];
        let least_ns = device.event_inner_ns.expect("it is measured");
        let most_ns = device.event_queued_inner_ns.expect("it is measured");
        let error_ns = device.event_inner_error_ns.expect("it is measured");
        assert!(error_ns >= (most_ns - least_ns).abs() && error_ns < most_ns, "{error_ns}");
        let off_ns = (around_net - alone_net).abs();
        assert!(off_ns <= 28.0 * error_ns, "{off_ns} off, with ±{error_ns} for each");
        let ratio = around_net / alone_net;
        assert!((ratio - 1.0).abs() < 0.03, "{ns}: {around_net} and {alone_net}");
        let inner = around.inner_brackets.as_ref().expect("they are known");
        assert_eq!((inner.min, inner.max), (28, 28));
        assert!(alone.inner_brackets.is_none());
    }
}

/// Each sample loses what its own inner brackets add, not what those of the others do on average.
#[test]
fn any_mixture_of_brackets_inside_is_removed() {
    let run = scenario("scopes/mixture", &[]).run();
    let error_ns = run.report().devices[0].event_inner_error_ns.expect("it is measured");
    let [alone, around, recursive] = ["pass_alone", "pass_around", "descend"]
        .map(|function| run.row(&format!("scopes::{function}")).net_ns.as_ref().unwrap());
    let pairs = [(alone.min, around.min, 1.0), (alone.p5, around.p5, 1.0)];
    let pairs =
        pairs.into_iter().chain([(alone.p95, around.p95, 20.0), (alone.max, around.max, 20.0)]);
    for (truth, measured, inner) in pairs {
        let off_ns = (measured - truth).abs();
        assert!(off_ns <= inner * error_ns.min(400.0), "{measured} for {truth}");
    }
    // 30 passes with one bracket inside, and 30 with 20.
    let off_ns = (around.sum - alone.sum).abs();
    assert!(off_ns <= 630.0 * error_ns.min(400.0), "{off_ns}: {} and {}", around.sum, alone.sum);
    // From one kernel to nine.
    let step_ns = (alone.max - alone.min) / 19.0;
    for (measured, kernels) in [(recursive.min, 1.0), (recursive.max, 9.0)] {
        let off_ns = measured - (alone.min + (kernels - 2.0) * step_ns);
        assert!(off_ns.abs() <= kernels * error_ns.min(400.0), "{off_ns} off: {recursive:?}");
    }
}

#[test]
fn launches_bodies_sums() {
    let run = scenario("scopes/shapes", &[]).run();
    let one = run.site("scopes::one");
    assert_eq!((one.scope.as_str(), one.launches_seen), ("launches", 1));
    assert_eq!(one.row().brackets(), (20, 20, 0, 0));
    assert_lasts(one.launch(0), 20_000.0);
    assert_eq!(one.row().raw().sum, one.launch(0).raw().sum);

    let three = run.site("scopes::three");
    assert_eq!((three.launches_seen, three.row().measure.as_str()), (3, "sum"));
    let mut sum = 0.0;
    for (index, ns) in [(0, 5_000.0), (1, 10_000.0), (2, 20_000.0)] {
        let launch = three.launch(index);
        assert_eq!((launch.brackets(), launch.measure.as_str()), ((20, 20, 0, 0), "launch"));
        assert_lasts(launch, ns);
        sum += launch.raw().sum;
    }
    assert_eq!(three.row().brackets(), (20, 20, 0, 0));
    assert!((three.row().raw().sum - sum).abs() < 1.0);

    // Five of the calls made no launch, so they took no time.
    let looped = run.site("scopes::looped");
    assert_eq!((looped.row().measured, looped.row().at_floor), (20, 5));
    assert_eq!(looped.launch(0).brackets(), (30, 30, 0, 0));
    assert!((looped.row().raw().sum - looped.launch(0).raw().sum).abs() < 1.0);

    let body = run.site("scopes::body");
    assert_eq!((body.scope.as_str(), body.launches_seen), ("body", 0));
    assert_eq!((body.row().brackets(), body.row().measure.as_str()), ((20, 20, 0, 0), "span"));
    assert_lasts(body.row(), 20_000.0);

    assert_eq!(run.site("scopes::clears").scope, "body");
    assert_eq!(run.row("scopes::clears").brackets(), (20, 20, 0, 0));
    let nothing = run.row("scopes::nothing");
    assert_eq!(nothing.brackets(), (20, 20, 0, 0));
    // On a real GPU that waits for the host between two events, an empty bracket may read more than
    // the floor.
    let least = if is_real() { 10 } else { 20 };
    assert!((least..=20).contains(&nothing.at_floor), "{nothing:?}");
}

#[test]
fn early_returns() {
    let run = scenario("scopes/early", &[]).run();
    let early = run.site("scopes::early");
    assert_eq!((early.row().measured, early.row().at_floor), (12, 4));
    assert_eq!(early.launch(0).brackets(), (8, 8, 0, 0));
    assert_eq!(early.launch(1).brackets(), (4, 4, 0, 0));
    // The start was recorded, but no launch followed.
    let leaves = run.site("scopes::leaves_in_arguments");
    assert_eq!(outcome(leaves.launch(0), "failed"), (12, 6, 6));
    assert_eq!(outcome(leaves.row(), "failed"), (12, 6, 6));
}

#[test]
fn failed_launches() {
    let run = scenario("scopes/errors", &[]).run();
    let fails = run.site("scopes::fails");
    assert_eq!(outcome(fails.launch(0), "failed"), (10, 10, 0));
    assert_eq!(outcome(fails.launch(1), "failed"), (5, 0, 5));
    assert_eq!(outcome(fails.launch(2), "failed"), (5, 5, 0));
    assert_eq!(outcome(fails.row(), "failed"), (10, 5, 5));
    let forgives = run.site("scopes::forgives");
    assert_eq!(outcome(forgives.launch(0), "failed"), (10, 0, 10));
    assert_eq!(outcome(forgives.launch(1), "failed"), (10, 10, 0));
    assert_eq!(outcome(forgives.row(), "failed"), (10, 0, 10));
    assert_eq!(outcome(run.row("scopes::fails_in_body"), "failed"), (10, 10, 0));
}

#[test]
fn panicking_calls() {
    let run = scenario("scopes/panics", &[]).panics().run();
    let somewhere = run.site("scopes::panics_somewhere");
    // Three panics come before the start is recorded, and three between start and launch.
    assert_eq!(outcome(somewhere.launch(0), "failed"), (9, 6, 3));
    // Three more panics come after the only launch, so their sums are complete.
    assert_eq!(outcome(somewhere.row(), "failed"), (12, 6, 6));
    let body = run.site("scopes::panics_in_body");
    let lost: u64 = body.rows(None).map(|row| outcome(row, "failed").2).sum();
    assert_eq!((body.timed, lost), (12, 6));
    // A call in a destructor did not cause the panic that is unwinding through it.
    assert_eq!(outcome(run.row("scopes::in_drop"), "failed"), (12, 12, 0));
}

#[test]
fn recursion() {
    let run = scenario("scopes/recursion", &[]).run();
    let site = run.site("scopes::recurses");
    assert_eq!(site.counts(), (40, 0, 0, 40));
    // Only the outermost call flushes the L2, and only the innermost one contains no other call.
    let [found, cold] = ["as-found", "cold"].map(|cache| {
        let mut rows = site.rows(None).filter(move |row| row.cache == cache);
        rows.next().unwrap_or_else(|| panic!("no row `{cache}`"))
    });
    assert_eq!((cold.brackets(), cold.nested), ((10, 10, 0, 0), 10));
    assert_eq!((found.brackets(), found.nested), ((30, 30, 0, 0), 20));
}

#[test]
fn nested_brackets() {
    let run = scenario("scopes/nested", &[]).run();
    let outer = run.row("scopes::outer");
    assert_eq!(
        (outer.brackets(), outer.nested, outer.cache.as_str()),
        ((10, 10, 0, 0), 10, "cold")
    );
    let inner = run.site("scopes::inner");
    for row in [inner.row(), inner.launch(0)] {
        assert_eq!(
            (row.brackets(), row.nested, row.cache.as_str()),
            ((10, 10, 0, 0), 0, "as-found")
        );
    }
    // `beside` is on its own stream, so it is independent of the other functions.
    let beside = run.site("scopes::beside");
    for row in [beside.row(), beside.launch(0)] {
        assert_eq!((row.brackets(), row.nested, row.cache.as_str()), ((10, 10, 0, 0), 0, "cold"));
    }
}

#[test]
fn futures() {
    let run = scenario("scopes/futures", &[]).run();
    let twice = run.site("scopes::launches_twice");
    assert_eq!(outcome(twice.launch(0), "cancelled"), (30, 30, 0));
    assert_eq!(outcome(twice.launch(1), "cancelled"), (20, 20, 0));
    assert_eq!(outcome(twice.row(), "cancelled"), (30, 20, 10));
    for name in ["scopes::waits_in_body", "scopes::boxed"] {
        assert_eq!(outcome(run.row(name), "cancelled"), (30, 20, 10), "{name}");
        assert_lasts(run.row(name), 10_000.0);
    }
    // For two threads, the same handle refers to two different streams.
    assert_eq!(outcome(run.row("scopes::on_per_thread"), "thread"), (20, 10, 10));
}

#[test]
fn blocks_and_guards() {
    let run = scenario("scopes/blocks", &[]).run();
    let left = run.site("a block left early");
    assert_eq!((left.scope.as_str(), left.launches_seen), ("launches", 1));
    assert_eq!(left.row().brackets(), (20, 20, 0, 0));
    assert_lasts(left.launch(0), 20_000.0);
    let waits = run.site("a block that waits");
    assert_eq!(waits.counts(), (11, 0, 0, 11));
    assert_eq!(outcome(waits.launch(0), "cancelled"), (11, 11, 0));
    assert_lasts(waits.launch(0), 20_000.0);
    let guard = run.site("a guard");
    assert_eq!((guard.scope.as_str(), guard.row().brackets()), ("body", (10, 10, 0, 0)));
    // A host that is interrupted may let one hold expire.
    assert!(guard.row().fed >= 9, "{:?}", guard.row());
    assert_lasts(guard.row(), 20_000.0);
}

#[test]
fn keys_of_an_impl() {
    // In a program that also needs records, the few calls may all be in one phase.
    let run = scenario("scopes/members", &[]).env("GPU_TIME_RECORD", "off").run();
    for (name, warmup) in [("forward", 2), ("backward", 0)] {
        let site = run.site(&format!("scopes::Net::{name}"));
        assert_eq!(site.counts(), (10, warmup, 0, 10 - warmup), "{name}");
        assert_eq!(site.row().cache, "cold", "{name}");
        assert_lasts(site.row(), 20_000.0);
    }
    assert_eq!(run.site("scopes::Net::new").options, "warmup = 2");
    assert!(run.report().sites.iter().all(|site| site.name != "scopes::Net::layers"));
}
