//! Tests for sampling, in which totals are estimated and counts are exact, and for keys, which
//! divide functions into series.

use crate::harness::report::{Series, Site};
use crate::harness::{Run, is_real, scenario};

/// Returns the difference between the estimate and the truth, in standard errors.
fn errors(row: &Series, truth: f64) -> f64 {
    let (total, error) = row.estimate();
    (total - truth).abs() / error
}

/// Asserts that all sampled calls were measured.
fn assert_sampled(site: &Site, calls: u64) {
    assert_eq!(site.calls, calls);
    assert_eq!(site.unsampled + site.timed + site.warmup, calls, "{site:?}");
    assert_eq!(site.row().brackets(), (site.timed, site.timed, 0, 0), "{site:?}");
}

/// Timing every n-th call in step with the program samples only the long calls; random sampling
/// does not.
#[test]
fn periodic_program_biases_every_but_not_sample() {
    let run = scenario("sampling/periodic", &[]).untraced().run();
    let all = run.row("sampling::all");
    let (truth, none) = all.estimate();
    assert_eq!((all.measured, none), (20_000, 0.0));
    for name in ["drawn", "counted"] {
        assert_sampled(run.site(&format!("sampling::{name}")), 20_000);
    }
    let counted = run.row("sampling::counted");
    assert_eq!(counted.measured, 200);
    assert!(counted.total() > 10.0 * truth, "{counted:?}");
    assert_eq!(counted.unknown_error.as_deref(), Some("counted"));
    let node =
        |name: &str| run.report().tree.iter().find(|node| node.name.ends_with(name)).unwrap();
    let errors = ["counted", "drawn"].map(|name| node(name).self_error_ns);
    assert!(errors[0].is_nan() && errors[1] > 0.0, "{errors:?}");

    let drawn = run.row("sampling::drawn");
    // Eight standard errors for a binomial count with variance 198.
    assert!(drawn.measured.abs_diff(200) < 8 * 15, "{drawn:?}");
    // There are about 200 samples, of which two on average are long, so the error is unknown.
    assert_eq!(drawn.unknown_error.as_deref(), Some("few"));
    let total = drawn.total();
    assert!((total - truth).abs() < 8.0 * truth * 0.35, "{total} {truth}");

    let warmed = run.site("sampling::warmed");
    assert_eq!((warmed.calls, warmed.warmup), (20_000, 20));
    assert_eq!(warmed.sample_rate, 0.1);
}

/// The estimated error refers to calls, so it cannot be computed if there are several samples per
/// call.
#[test]
fn looped_launch_has_estimate_without_error() {
    let run = scenario("sampling/loops", &[]).untraced().run();
    let site = run.site("sampling::looping");
    assert_eq!(site.calls, 400);
    let (once, looped, all) = (site.launch(0), site.launch(1), site.row());
    assert!(looped.measured > 0 && looped.measured < site.timed, "{looped:?}");
    assert!(looped.estimated_total_ns.is_some_and(|ns| ns > 0.0), "{looped:?}");
    // The other rows have too few samples.
    for (row, unknown) in [(once, "few"), (all, "few"), (looped, "repeated")] {
        let found = (row.estimated_total_error_ns, row.unknown_error.as_deref());
        assert_eq!(found, (None, Some(unknown)), "{row:?}");
    }
}

#[test]
fn every_counts_on_across_threads() {
    let run = scenario("sampling/threads", &[]).untraced().run();
    for name in ["drawn", "counted"] {
        assert_sampled(run.site(&format!("sampling::{name}")), 4_000);
    }
    // Each recorder belongs to one thread at a time. Four threads were running, while others were
    // ending.
    let counted = run.row("sampling::counted").measured;
    assert!((30..=40).contains(&counted), "{counted}");
}

#[test]
fn environment_overrides_sampling() {
    let run = scenario("sampling/periodic", &[]).env("GPU_TIME_SAMPLE", "0.5").untraced().run();
    // 200 calls of 100 µs and 19,800 of 1 µs, each of which is in the sample with a probability of
    // a half.
    let truth = 20_000.0 * 1_990.0;
    let true_error = (200.0 * 100_000_f64.powi(2) + 19_800.0 * 1_000_f64.powi(2)).sqrt();
    for name in ["all", "drawn", "counted"] {
        let site = run.site(&format!("sampling::{name}"));
        assert_sampled(site, 20_000);
        assert_eq!(site.sample_rate, 0.5);
        assert!(site.timed.abs_diff(10_000) < 8 * 71, "{site:?}");
        let row = site.row();
        let (total, measured_ns) = (row.total(), row.net_ns.as_ref().unwrap().sum);
        assert!(
            (total * row.measured as f64 / 20_000.0 / measured_ns - 1.0).abs() < 1e-6,
            "{row:?}"
        );
        // A spin lasts slightly longer than requested.
        assert!(total > truth - 8.0 * true_error, "{row:?}");
        match row.estimated_total_error_ns {
            Some(error) => assert!(error < 0.1 * total, "{row:?}"),
            // On a GPU, a few starved samples may contain long pauses of the host.
            None => {
                assert!(is_real() && row.unknown_error.as_deref() == Some("dominated"), "{row:?}")
            }
        }
    }
    if !is_real() {
        let (one, other) = (run.row("sampling::drawn"), run.row("sampling::counted"));
        assert!(errors(one, other.total()) < 16.0, "{one:?} {other:?}");
    }

    let run = scenario("sampling/periodic", &[]).env("GPU_TIME_SAMPLE", "0").run();
    for name in ["all", "drawn", "counted"] {
        assert_eq!(run.site(&format!("sampling::{name}")).counts(), (20_000, 0, 20_000, 0));
    }
}

/// Runs the programs with the most complicated bookkeeping, with half of their calls timed.
#[test]
fn identities_hold_with_sampling() {
    let scenarios: [(&str, &[&str]); 4] = [
        ("threads/teardown", &[]),
        ("threads/own_streams", &[]),
        ("threads/short", &[]),
        ("threads/warmup", &["even"]),
    ];
    for (name, arguments) in scenarios {
        let run = scenario(name, arguments).env("GPU_TIME_SAMPLE", "0.5").untraced().run();
        assert!(run.report().sites.iter().any(|site| site.unsampled > 0), "{name}");
        if name == "threads/short" {
            // A hundred calls, each on its own thread: with fair draws, one run in a million is
            // outside this range.
            let unsampled = run.site("threads::timed").unsampled;
            assert!((25..=75).contains(&unsampled), "{unsampled}");
        }
    }
}

/// A graph keeps its shape, regardless of how calls outside captures are sampled.
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

/// Returns the keys for a function's series, and the number of samples for each.
fn by_key<'a>(run: &'a Run, name: &str, launch: Option<u32>) -> Vec<(Option<&'a str>, u64)> {
    let mut keys: Vec<_> =
        run.site(name).rows(launch).map(|row| (row.key.as_deref(), row.measured)).collect();
    keys.sort();
    keys
}

#[test]
fn keys_split_a_function() {
    let run = scenario("sampling/keys", &[]).panics().run();
    // Ten of the 130 calls are warm-up calls for each key.
    let keys = [(Some("10000"), 34), (Some("20000"), 33), (Some("40000"), 33)];
    for launch in [None, Some(0)] {
        assert_eq!(by_key(&run, "sampling::by_time", launch), keys);
        for row in run.site("sampling::by_time").rows(launch) {
            let ns: f64 = row.key.as_ref().unwrap().parse().unwrap();
            assert!(row.raw().median > ns && row.raw().median < 1.9 * ns, "{row:?}");
        }
    }
    // A `?` leaves a call without a key. The key is not evaluated for untimed calls.
    let name = "<7>\\n\\u{1b}[31m";
    assert_eq!(by_key(&run, "sampling::by_name", None), [(None, 33), (Some(name), 32)]);
    assert_eq!(run.fact("formatted"), 32);
    assert!(run.stderr.contains("[<7>\\n\\u{1b}[31m]"), "{}", run.stderr);

    let keys = by_key(&run, "sampling::unbounded", None);
    assert_eq!(keys.len(), 65);
    let other = keys.iter().find(|(key, _)| *key == Some("<other>")).unwrap();
    assert_eq!(other.1, 4 * (1_000 - 64));
    assert_eq!(run.site("sampling::panicking").counts(), (2, 0, 1, 1));
}

#[test]
fn budget_skips_calls() {
    let run = scenario("sampling/budget", &[]).env("GPU_TIME_BUDGET", "1%").untraced().run();
    let site = run.site("sampling::all");
    assert!(site.unsampled > 0 && site.sample_rate < 1.0, "{site:?}");
    assert_sampled(site, site.calls);
    let budget = run.report().process.budget.as_ref().unwrap();
    assert_eq!(budget.share, 0.01);
    assert!(budget.cost_share > 0.0, "{budget:?}");
    assert!(run.stderr.contains("budget: timing "), "{}", run.stderr);
    let kernels = site.calls as f64 * 1_000.0;
    assert!(site.row().total() > 0.999 * kernels, "{:?}", site.row());
}

/// What timing adds is known, wherever it comes from: here, the program itself becomes slower after calls that were
/// timed.
#[test]
fn report_measures_what_timing_adds() {
    let run = scenario("sampling/effect", &[]).env("GPU_TIME_BUDGET", "90%").run();
    let budget = run.report().process.budget.as_ref().unwrap();
    let (added, error) = budget.added_share.zip(budget.added_error_share).expect("it is known");
    let truth = run.fact("added_ns") as f64 / run.fact("all_ns") as f64;
    assert!((added - truth).abs() < 0.5 * error + 0.1 * truth, "{truth} {budget:?}");
    let step = run.site("sampling::inner_step");
    assert_sampled(step, 4_000);
    assert!(step.unsampled > 400, "some calls are left alone: {step:?}");
    assert!(run.stderr.contains("budget: timing made "), "{}", run.stderr);
}

/// Skipped calls also have a cost. A warning says so and suggests a filter.
#[test]
fn unattainable_budget_warns() {
    for (budget, is_kept) in [("0.0001%", false), ("90%", true)] {
        let run = scenario("sampling/skipping", &["not evaluated"])
            .env("GPU_TIME_BUDGET", budget)
            .env("GPU_TIME_SAMPLE", "0")
            .untraced()
            .run();
        let overrun = run.report().process.overrun.as_deref().unwrap_or_default();
        assert_eq!(overrun.is_empty(), is_kept, "{budget}: {overrun}");
        assert!(is_kept || overrun.contains("`!scenario::sampling::all`"), "{overrun}");
    }
}

/// The full cost of each timed call counts, up to a limit beyond which it may be an interruption.
#[test]
fn budget_counts_host_time_of_timed_calls() {
    let run = scenario("sampling/costly", &[]).env("GPU_TIME_BUDGET", "99%").untraced().run();
    let timed = run.site("sampling::costly_to_time").timed;
    let host_ns = run.report().process.budget.as_ref().unwrap().host_ns;
    // The first calls count with an assumed cost. A call counts at most 100 µs at its start and at
    // its end.
    let fewest = timed.saturating_sub(100) * 50_000;
    assert!(fewest > 0 && (fewest..timed * 250_000).contains(&host_ns), "{timed}: {host_ns}");
}

mod simulated {
    use super::*;

    /// Returns how long the commands on the copies' stream kept it busy.
    fn busy_ns(run: &Run) -> u64 {
        let copy = run.trace.commands().find(|command| command.name == "copy_f4");
        let stream = copy.expect("there are copies").stream;
        let own = run.trace.commands().filter(|command| command.stream == stream);
        own.map(|command| command.end_ns - command.start_ns).sum()
    }

    /// Everything that timing adds to a stream is counted: events, flushes, holds, and the L2 that
    /// copies must refill. A hold behind other work, which has already expired when it begins, is
    /// counted without having an effect.
    #[test]
    fn budget_counts_device_time() {
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

    /// If skipping a call takes longer, the additional cost is counted, but not the cost that only timed
    /// calls have.
    #[test]
    fn budget_counts_host_time_of_skipped_calls() {
        let host_ns = |function: &str| {
            let run = scenario("sampling/skipping", &[function])
                .env("GPU_TIME_BUDGET", "1%")
                .env("GPU_TIME_SAMPLE", "0")
                .untraced()
                .run();
            let budget = run.report().process.budget.as_ref().unwrap();
            assert_eq!(budget.device_ns, 0);
            budget.host_ns - 6 * 20_000
        };
        // Either one call in eight is metered, or one in 512, for at most a microsecond each.
        let (evaluated, not_evaluated) = (host_ns("stream evaluated"), host_ns("not evaluated"));
        assert!(not_evaluated > 0 && evaluated > 2 * not_evaluated, "{evaluated} {not_evaluated}");
    }

    #[test]
    fn configure_applies_to_known_functions() {
        let run = scenario("sampling/reconfigured", &[]).run();
        let rows = |name: &str| -> Vec<_> {
            let rows =
                run.site(name).rows(None).map(|row| (&*row.cache, row.brackets().0, row.fed));
            rows.collect()
        };
        // A flush or a hold takes longer than enqueueing a call, so the call is fed.
        assert_eq!(run.site("sampling::all").counts(), (50, 3, 0, 47));
        assert_eq!(rows("sampling::all"), [("as-found", 37, 10), ("cold-dirty", 10, 10)]);
        assert_eq!(run.site("sampling::cold_and_warmed").counts(), (50, 3, 0, 47));
        let cold = [("as-found", 10, 10), ("cold", 27, 27), ("cold-dirty", 10, 10)];
        assert_eq!(rows("sampling::cold_and_warmed"), cold);

        // The environment takes precedence.
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
fn program_configures_while_running() {
    let complaint = "gpu-time: invalid value `2` for `configure().budget`: expected";
    let warning = "invalid value `2` for `configure().budget`: expected";
    let configured = || scenario("sampling/configured", &[]).complains(complaint).warns(warning);
    let run = configured().untraced().run();
    assert_eq!((run.fact("all_timed"), run.fact("all_warmup")), (0, 0));
    let (all, drawn, counted) = ("sampling::all", "sampling::drawn", "sampling::counted");
    // First nothing is timed, then everything with a warm-up, then everything.
    assert_eq!(run.site(all).counts(), (30_000, 3, 10_000, 19_997));
    let drawn = run.site(drawn);
    assert_eq!((drawn.warmup, drawn.calls), (3, 30));
    // Ten calls of `counted` were made while the filter excluded it.
    let counted = run.site(counted);
    assert_eq!((counted.warmup, counted.timed + counted.unsampled), (3, 17), "{counted:?}");

    // The environment takes precedence.
    let run = configured().env("GPU_TIME_SAMPLE", "1").env("GPU_TIME_WARMUP", "0").untraced().run();
    assert_eq!((run.fact("all_timed"), run.fact("all_warmup")), (10_000, 0));
    assert_eq!(run.site(all).counts(), (30_000, 0, 0, 30_000));
}

#[test]
fn sampled_function_settles() {
    let run = scenario("sampling/settle", &[]).untraced().run();
    assert_eq!(run.fact("settled"), 1);
    assert!(run.row("sampling::drawn_often").measured >= 50);
}
