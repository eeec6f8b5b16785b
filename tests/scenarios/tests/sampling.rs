//! Totals of sampled functions are estimated, and counts stay exact; keys split functions.

use crate::harness::report::{Series, Site};
use crate::harness::{Run, scenario};

/// How far the estimate is from the truth, in its standard errors.
fn errors(row: &Series, truth: f64) -> f64 {
    let (total, error) = row.estimate();
    (total - truth).abs() / error
}

/// All calls that were sampled were measured.
fn assert_sampled(site: &Site, calls: u64) {
    assert_eq!(site.calls, calls);
    assert_eq!(site.unsampled + site.timed + site.warmup, calls, "{site:?}");
    assert_eq!(site.row().brackets(), (site.timed, site.timed, 0, 0), "{site:?}");
}

/// A count that keeps step with the program sees the long calls only, and a share does not.
#[test]
fn a_periodic_program_is_judged_by_a_share_and_not_by_a_count() {
    let run = scenario("sampling/periodic", &[]).untraced().run();
    let all = run.row("sampling::all");
    let (truth, none) = all.estimate();
    assert_eq!((all.measured, none), (20_000, 0.0));
    for name in ["drawn", "counted"] {
        assert_sampled(run.site(&format!("sampling::{name}")), 20_000);
    }
    let counted = run.row("sampling::counted");
    assert_eq!(counted.measured, 200);
    assert!(counted.estimate().0 > 10.0 * truth, "{counted:?}");

    let drawn = run.row("sampling::drawn");
    // Eight standard errors of a number that is binomial, with 198 as its variance.
    assert!(drawn.measured.abs_diff(200) < 8 * 15, "{drawn:?}");
    // Few of its samples are the long ones, two in the mean: the error itself is known badly.
    let (total, error) = drawn.estimate();
    assert!((total - truth).abs() < 8.0 * error.max(truth * 0.35), "{total} {error} {truth}");

    let warmed = run.site("sampling::warmed");
    assert_eq!((warmed.calls, warmed.warmup), (20_000, 20));
    assert_eq!(warmed.sample_rate, 0.1);
}

/// The error is that of calls. Samples of which a call gives several do not tell it.
#[test]
fn a_launch_in_a_loop_is_estimated_without_a_claim_to_its_error() {
    let run = scenario("sampling/loops", &[]).untraced().run();
    let site = run.site("sampling::looping");
    assert_eq!(site.calls, 400);
    let (once, looped, all) = (site.launch(0), site.launch(1), site.row());
    assert!(looped.measured > 0 && looped.measured < site.timed, "{looped:?}");
    assert!(once.estimated_total_error_ns.is_some() && all.estimated_total_error_ns.is_some());
    assert!(looped.estimated_total_ns.is_some_and(|ns| ns > 0.0), "{looped:?}");
    assert_eq!(looped.estimated_total_error_ns, None);
}

#[test]
fn what_is_counted_is_counted_on_over_threads() {
    let run = scenario("sampling/threads", &[]).untraced().run();
    for name in ["drawn", "counted"] {
        assert_sampled(run.site(&format!("sampling::{name}")), 4_000);
    }
    // A lane has one thread at a time. There were four at once, and others on their way out.
    let counted = run.row("sampling::counted").measured;
    assert!((30..=40).contains(&counted), "{counted}");
}

#[test]
fn the_environment_overrides_what_functions_say() {
    let run = scenario("sampling/periodic", &[]).env("GPU_TIME_SAMPLE", "0.5").untraced().run();
    let truth = 20_000.0 * 1_990.0;
    for name in ["all", "drawn", "counted"] {
        let site = run.site(&format!("sampling::{name}"));
        assert_sampled(site, 20_000);
        assert_eq!(site.sample_rate, 0.5);
        assert!(site.timed.abs_diff(10_000) < 8 * 71, "{site:?}");
        // A spin lasts a little longer than asked.
        let (total, error) = site.row().estimate();
        assert!(total > truth - 8.0 * error, "{name}: {total} {error}");
        assert!(error < 0.1 * total, "{name}: {total} {error}");
    }
    let (one, other) = (run.row("sampling::drawn"), run.row("sampling::counted"));
    assert!(errors(one, other.estimate().0) < 16.0, "{one:?} {other:?}");

    let run = scenario("sampling/periodic", &[]).env("GPU_TIME_SAMPLE", "0").run();
    for name in ["all", "drawn", "counted"] {
        assert_eq!(run.site(&format!("sampling::{name}")).counts(), (20_000, 0, 20_000, 0));
    }
}

/// Programs that make everything difficult, with half of their calls timed.
#[test]
fn identities_hold_where_not_all_is_timed() {
    let scenarios: [(&str, &[&str]); 4] = [
        ("threads/teardown", &[]),
        ("threads/streams", &[]),
        ("threads/short", &[]),
        ("threads/warmup", &["even"]),
    ];
    for (name, arguments) in scenarios {
        let run = scenario(name, arguments).env("GPU_TIME_SAMPLE", "0.5").untraced().run();
        assert!(run.report().sites.iter().any(|site| site.unsampled > 0), "{name}");
        if name == "threads/short" {
            // A hundred calls, each on a thread of its own: by fair draws one in a million of such runs
            // is outside of this.
            let unsampled = run.site("threads::timed").unsampled;
            assert!((25..=75).contains(&unsampled), "{unsampled}");
        }
    }
}

/// A graph keeps its shape, whatever is sampled of the calls that are not captured.
#[test]
fn captured_calls_are_not_sampled() {
    let arguments = ["relaxed", "first", "20"];
    for share in ["0", "0.5"] {
        let run = scenario("graph/replay", &arguments).env("GPU_TIME_SAMPLE", share).run();
        assert_eq!((run.fact("nodes"), run.fact("raw_nodes")), (4, 4), "{share}");
        let graph = run.site("graph::node").in_graphs(0);
        assert_eq!(graph.brackets(), (30, 30, 0, 0), "{share}: {graph:?}");
        assert_eq!(graph.estimated_total_ns, None);
    }
}

/// The series of these keys, and how many brackets each has.
fn by_key<'a>(run: &'a Run, name: &str, launch: Option<u32>) -> Vec<(Option<&'a str>, u64)> {
    let mut keys: Vec<_> =
        run.site(name).rows(launch).map(|row| (row.key.as_deref(), row.measured)).collect();
    keys.sort();
    keys
}

#[test]
fn keys_split_a_function() {
    let run = scenario("sampling/keys", &[]).panics().run();
    let keys = [(Some("10000"), 40), (Some("20000"), 40), (Some("40000"), 40)];
    for launch in [None, Some(0)] {
        assert_eq!(by_key(&run, "sampling::by_time", launch), keys);
        for row in run.site("sampling::by_time").rows(launch) {
            let ns: f64 = row.key.as_ref().unwrap().parse().unwrap();
            assert!(row.raw().median > ns && row.raw().median < 1.9 * ns, "{row:?}");
        }
    }
    // `?` leaves a call without a key; those that are not timed are not asked.
    let name = "<7>\n\u{1b}[31m";
    assert_eq!(by_key(&run, "sampling::by_name", None), [(None, 33), (Some(name), 32)]);
    assert_eq!(run.fact("formatted"), 32);
    assert!(run.stderr.contains("[<7>\\n\\u{1b}[31m]"), "{}", run.stderr);

    let keys = by_key(&run, "sampling::without_end", None);
    assert_eq!(keys.len(), 65);
    let other = keys.iter().find(|(key, _)| *key == Some("<other>")).unwrap();
    assert_eq!(other.1, 4 * (1_000 - 64));
    assert_eq!(run.site("sampling::panicking").counts(), (2, 0, 1, 1));
}

#[test]
fn a_budget_has_calls_passed_over() {
    let run = scenario("sampling/budget", &[]).env("GPU_TIME_BUDGET", "1%").untraced().run();
    let site = run.site("sampling::all");
    assert!(site.unsampled > 0 && site.sample_rate < 1.0, "{site:?}");
    assert_sampled(site, site.calls);
    let budget = run.report().process.budget.as_ref().unwrap();
    assert_eq!(budget.share, 0.01);
    assert!(budget.cost_share > 0.0, "{budget:?}");
    assert!(run.stderr.contains("budget: timing took"), "{}", run.stderr);
    let (total, error) = site.row().estimate();
    let kernels = site.calls as f64 * 1_000.0;
    assert!(total + 8.0 * error > kernels, "{total} {error}");
}

/// Passed over, they still take something. A warning says so, and of what to have less.
#[test]
fn a_budget_that_cannot_be_kept_is_warned_of() {
    for (budget, is_kept) in [("0.0001%", false), ("90%", true)] {
        let run = scenario("sampling/passing", &["not asked"])
            .env("GPU_TIME_BUDGET", budget)
            .env("GPU_TIME_SAMPLE", "0")
            .untraced()
            .run();
        let overrun = run.report().process.overrun.as_deref().unwrap_or_default();
        assert_eq!(overrun.is_empty(), is_kept, "{budget}: {overrun}");
        assert!(is_kept || overrun.contains("`!scenario::sampling::all`"), "{overrun}");
    }
}

/// Of each call that is timed, all that it takes, but no more than may be an interruption.
#[test]
fn a_budget_counts_what_timed_calls_take_of_the_host() {
    let run = scenario("sampling/dear", &[]).env("GPU_TIME_BUDGET", "99%").untraced().run();
    let timed = run.site("sampling::dear_to_time").timed;
    let host_ns = run.report().process.budget.as_ref().unwrap().host_ns;
    // The very first count as what is guessed. A call is 100 µs at most when it begins, and when it ends.
    let fewest = timed.saturating_sub(100) * 50_000;
    assert!(fewest > 0 && (fewest..timed * 250_000).contains(&host_ns), "{timed}: {host_ns}");
}

/// Calls that come every two seconds, of which each could be timed.
#[test]
fn a_budget_notices_that_calls_have_become_rare() {
    let run = scenario("sampling/drop", &[]).env("GPU_TIME_BUDGET", "0.1%").untraced().run();
    assert!(run.fact("waited") < 15, "{}", run.fact("waited"));
}

mod simulated {
    use super::*;

    /// How long the commands of the stream that the copies are in kept it busy.
    fn busy_ns(run: &Run) -> u64 {
        let copy = run.trace.commands().find(|command| command.name == "copy_f4");
        let stream = copy.expect("there are copies").stream;
        let own = run.trace.commands().filter(|command| command.stream == stream);
        own.map(|command| command.end_ns - command.start_ns).sum()
    }

    /// What timing adds to a stream is all counted: events, flushes and holds, and the L2 that copies must
    /// fill again. What is counted in vain is a hold behind other work, which is over when it begins.
    #[test]
    fn a_budget_counts_what_timing_takes_of_the_device() {
        let mut wrong = Vec::new();
        for pace in ["queued", "idle"] {
            let cost = |env: &[(&str, &str)]| {
                let run = scenario("sampling/cost", &[pace]);
                env.iter().fold(run, |run, (name, value)| run.env(name, value)).run()
            };
            let plain_ns = busy_ns(&cost(&[("GPU_TIME_SAMPLE", "0")]));
            for option in [
                ("GPU_TIME_COLD", "off"),
                ("GPU_TIME_COLD", "clean"),
                ("GPU_TIME_COLD", "dirty"),
                ("GPU_TIME_SLEEP", "on"),
                ("GPU_TIME_SLEEP", "20us"),
            ] {
                let run = cost(&[("GPU_TIME_BUDGET", "99%"), option]);
                let counted_ns = run.report().process.budget.as_ref().unwrap().device_ns;
                let added_ns = busy_ns(&run) - plain_ns;
                let timed = run.site("sampling::copies").timed;
                if counted_ns < added_ns || counted_ns > 4 * added_ns {
                    wrong.push((pace, option, timed, added_ns, counted_ns));
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// Where it takes longer to find out that a call is passed over, that is counted; what no call takes
    /// that is timed.
    #[test]
    fn a_budget_counts_what_passing_over_takes_of_the_host() {
        let host_ns = |function: &str| {
            let run = scenario("sampling/passing", &[function])
                .env("GPU_TIME_BUDGET", "1%")
                .env("GPU_TIME_SAMPLE", "0")
                .untraced()
                .run();
            let budget = run.report().process.budget.as_ref().unwrap();
            assert_eq!(budget.device_ns, 0);
            budget.host_ns - 6 * 20_000
        };
        // One call in eight is looked at, or one in 512, and none for more than a microsecond.
        let (asked, not_asked) = (host_ns("asked"), host_ns("not asked"));
        assert!(not_asked > 0 && asked > 2 * not_asked, "{asked} {not_asked}");
    }

    #[test]
    fn functions_that_were_called_are_reconfigured() {
        let run = scenario("sampling/reconfigured", &[]).run();
        let rows = |name: &str| -> Vec<_> {
            let rows =
                run.site(name).rows(None).map(|row| (&*row.cache, row.brackets().0, row.fed));
            rows.collect()
        };
        // A flush or a hold before it is longer than it takes to enqueue a call, which is fed then.
        assert_eq!(run.site("sampling::all").counts(), (50, 3, 0, 47));
        assert_eq!(rows("sampling::all"), [("as-found", 37, 10), ("cold-dirty", 10, 10)]);
        assert_eq!(run.site("sampling::cold_and_warmed").counts(), (50, 3, 0, 47));
        let cold = [("as-found", 10, 10), ("cold", 27, 27), ("cold-dirty", 10, 10)];
        assert_eq!(rows("sampling::cold_and_warmed"), cold);

        // The environment wins.
        let run = scenario("sampling/reconfigured", &[])
            .env("GPU_TIME_COLD", "off")
            .env("GPU_TIME_WARMUP", "5")
            .run();
        for name in ["sampling::all", "sampling::cold_and_warmed"] {
            assert_eq!(run.site(name).counts(), (50, 5, 0, 45));
            assert_eq!(run.row(name).cache, "as-found");
        }
    }
}

#[test]
fn a_program_configures_itself_while_it_runs() {
    let complaint = "gpu-time: `configure().budget`: `2` makes no sense";
    let warning = "`configure().budget`: `2` makes no sense";
    let configured = || scenario("sampling/configured", &[]).complains(complaint).warns(warning);
    let run = configured().untraced().run();
    assert_eq!((run.fact("all_timed"), run.fact("all_warmup")), (0, 0));
    let (all, drawn, counted) = ("sampling::all", "sampling::drawn", "sampling::counted");
    // Nothing, then everything with the warm-up, then everything.
    assert_eq!(run.site(all).counts(), (30_000, 3, 10_000, 19_997));
    let drawn = run.site(drawn);
    assert_eq!((drawn.warmup, drawn.calls), (3, 30));
    // Ten of it were called for while it was filtered out.
    let counted = run.site(counted);
    assert_eq!((counted.warmup, counted.timed + counted.unsampled), (3, 17), "{counted:?}");

    // The environment wins.
    let run = configured().env("GPU_TIME_SAMPLE", "1").env("GPU_TIME_WARMUP", "0").untraced().run();
    assert_eq!((run.fact("all_timed"), run.fact("all_warmup")), (10_000, 0));
    assert_eq!(run.site(all).counts(), (30_000, 0, 0, 30_000));
}

#[test]
fn a_sampled_function_settles() {
    let run = scenario("sampling/settle", &[]).untraced().run();
    assert_eq!(run.fact("settled"), 1);
    assert!(run.row("sampling::drawn").measured >= 50);
}
