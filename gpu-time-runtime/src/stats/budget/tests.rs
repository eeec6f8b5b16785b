use crate::stats::budget::*;
use proptest::prelude::*;

const STEP_NS: f64 = 10e6;

/// A site, with its true load and costs.
#[derive(Clone, Copy, Debug)]
struct Site {
    calls_per_s: f64,
    host_ns: f64,
    device_ns: f64,
    /// The mean cost of deciding about a call.
    decision_ns: f64,
}

impl Site {
    fn new(calls_per_s: f64, host_ns: f64, device_ns: f64) -> Self {
        Site { calls_per_s, host_ns, device_ns, decision_ns: 0.0 }
    }
}

/// Sites that run in virtual time.
struct World {
    budget: BudgetAccount,
    rates: Vec<f64>,
    step: u64,
}

impl World {
    fn new(share: f64, sites: usize) -> World {
        let mut budget = BudgetAccount::new(share);
        (0..sites).for_each(|_| budget.add(1.0));
        World { budget, rates: vec![1.0; sites], step: 0 }
    }

    /// Runs the sites for a while and returns the fraction of time that timing took.
    fn run(&mut self, sites: &[Site], seconds: f64) -> f64 {
        let steps = (seconds * 1e9 / STEP_NS) as u64;
        let mut cost_ns = 0.0;
        for _ in 0..steps {
            self.step += 1;
            let usages: Vec<Usage> = sites
                .iter()
                .zip(&self.rates)
                .map(|(site, rate)| {
                    let calls = site.calls_per_s * STEP_NS / 1e9;
                    let timed = calls * rate;
                    let passing_ns = PASSING_NS + site.decision_ns;
                    cost_ns += timed * (site.host_ns + site.device_ns) + calls * passing_ns;
                    let metered = timed / 8.0;
                    Usage {
                        calls,
                        timed,
                        preparation_ns: timed * site.device_ns,
                        metered,
                        metered_ns: metered * site.host_ns,
                        decision_ns: calls * site.decision_ns,
                        ..Usage::default()
                    }
                })
                .collect();
            self.rates = self.budget.adjust(STEP_NS, usages.into_iter(), 0.0).collect();
        }
        cost_ns / (steps as f64 * STEP_NS)
    }
}

/// A loop of 3 µs kernels.
const LOOP: Site =
    Site { calls_per_s: 300e3, host_ns: 700.0, device_ns: 3_300.0, decision_ns: 0.0 };

#[test]
fn loop_spends_most_of_the_budget() {
    let mut world = World::new(0.01, 1);
    // Nothing is known at first, and the first adjustment comes after many calls.
    assert!(world.run(&[LOOP], 30.0) < 0.012);
    let settled = world.run(&[LOOP], 10.0);
    assert!(settled < 0.01 && settled > 0.008, "{settled}");
    assert!((world.budget.cost_share() - settled).abs() < 0.001);
    // 9 ms per second, less 1.8 ms for untimed calls, at 4 µs per call.
    assert!((world.rates[0] * 300e3 - 1_800.0).abs() < 100.0, "{:?}", world.rates);
    assert_eq!(world.budget.overrun(), None);
}

#[test]
fn rates_follow_steps_of_load() {
    let mut world = World::new(0.01, 1);
    for calls_per_s in [300e3, 10.0, 1e6, 1e3, 0.1, 50e3, 1e6] {
        let site = Site { calls_per_s, ..LOOP };
        world.run(&[site], 30.0);
        let cost = world.run(&[site], 10.0);
        let demand = calls_per_s * 4e-6;
        assert!(cost < 0.01, "{calls_per_s}: {cost}");
        assert!(cost > 0.75 * demand.min(0.008), "{calls_per_s}: {cost}");
    }
}

#[test]
fn rare_site_is_fully_timed_beside_a_busy_one() {
    let rare = Site { calls_per_s: 0.2, ..LOOP };
    let mut world = World::new(0.01, 2);
    world.run(&[LOOP, rare], 30.0);
    assert_eq!(world.rates[1], 1.0);
    assert!(world.rates[0] < 0.01);
}

/// Each call takes 50 ms between barriers, and every timed call is metered. Other threads adjust
/// the budget every 10 ms. The controller sees the count of metered calls either in the interval in
/// which the call begins, or together with the metered time in the one in which it ends.
#[test]
fn call_longer_than_an_interval_counts_in_full() {
    for counted_at in [0, 5] {
        let mut budget = BudgetAccount::new(0.01);
        budget.add(1.0);
        let (mut rate, mut began, mut spent_ns) = (1.0, 0.0, 0.0);
        for step in 0..12_000u32 {
            let mut usage = Usage::default();
            if step % 10 == 0 {
                began = rate;
                usage = Usage { calls: 1.0, timed: began, ..usage };
            }
            if step % 10 == counted_at {
                usage.metered = began;
            }
            if step % 10 == 5 {
                usage.metered_ns = began * 50e6;
                spent_ns += if step < 6_000 { 0.0 } else { usage.metered_ns };
            }
            rate = budget.adjust(STEP_NS, [usage].into_iter(), 0.0).next().unwrap();
        }
        let share = spent_ns / (6_000.0 * STEP_NS);
        assert!(share > 0.006 && share < 0.0105, "{counted_at}: {share}");
        assert!((budget.cost_share() - share).abs() < 0.002, "{counted_at}: {share}");
    }
}

#[test]
fn limit_keeps_the_learned_rate() {
    let mut world = World::new(0.01, 1);
    world.run(&[LOOP], 30.0);
    assert_eq!(world.budget.limit(0, 1.0), Some(world.rates[0]));
    assert_eq!(world.budget.limit(0, 0.001), Some(0.001));
    world.run(&[LOOP], 1.0);
    assert_eq!(world.rates[0], 0.001);
    assert_eq!(world.budget.limit(0, 0.5), Some(0.5));
    assert_eq!(world.budget.limit(1, 0.5), None);
}

#[test]
fn cost_share_is_exact_from_the_start() {
    let mut budget = BudgetAccount::new(0.01);
    assert_eq!(budget.cost_share(), 0.0);
    for _ in 0..20 {
        drop(budget.adjust(STEP_NS, std::iter::empty(), 0.008 * STEP_NS));
        assert!((budget.cost_share() - 0.008).abs() < 1e-9, "{}", budget.cost_share());
    }
}

#[test]
fn flushes_and_holds_count_in_full() {
    let cold = Site { device_ns: 70_000.0, ..LOOP };
    let mut world = World::new(0.01, 1);
    world.run(&[cold], 30.0);
    let settled = world.run(&[cold], 10.0);
    assert!(settled < 0.01 && settled > 0.008, "{settled}");
}

/// A function with `graph` evaluates its stream on every call, timed or not.
#[test]
fn cost_of_decisions_lowers_the_rate() {
    let asked = Site { decision_ns: 20.0, ..LOOP };
    let mut world = World::new(0.01, 1);
    world.run(&[asked], 30.0);
    let settled = world.run(&[asked], 10.0);
    assert!(settled < 0.01 && settled > 0.008, "{settled}");
    // 9 ms per second, less 7.8 ms for untimed calls, at 4 µs per call.
    assert!((world.rates[0] * 300e3 - 300.0).abs() < 50.0, "{:?}", world.rates);
    assert_eq!(world.budget.overrun(), None);
}

#[test]
fn overrun_by_skipped_calls_is_reported() {
    let (some, many) = (LOOP, Site { calls_per_s: 10e6, ..LOOP });
    let mut world = World::new(0.01, 3);
    assert_eq!(world.budget.overrun(), None);
    world.run(&[some, many, some], 10.0);
    let (passing, busiest) = world.budget.overrun().unwrap();
    assert!((passing - 0.0636).abs() < 0.001, "{passing}");
    assert_eq!(busiest, 1);
    // Only the recent past counts.
    world.run(&[some, some, some], 40.0);
    assert_eq!(world.budget.overrun(), None);
}

#[test]
fn rising_cost_of_a_call_is_learned() {
    let mut world = World::new(0.01, 1);
    world.run(&[LOOP], 30.0);
    let slow = Site { host_ns: 20_000.0, ..LOOP };
    world.run(&[slow], 30.0);
    let settled = world.run(&[slow], 10.0);
    assert!(settled < 0.01 && settled > 0.008, "{settled}");
}

fn site() -> impl Strategy<Value = Site> {
    (-1.0f64..6.0, 2.5f64..4.5, 3.0f64..5.5).prop_map(|(calls, host, device)| {
        let ten = |power: f64| 10f64.powf(power);
        Site::new(ten(calls), ten(host), ten(device))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_load_stays_within_the_budget(
        before in prop::collection::vec(site(), 20),
        after in prop::collection::vec(site(), 20),
        share in 0.002f64..0.1,
    ) {
        let mut world = World::new(share, before.len());
        for sites in [&before, &after] {
            let first = world.run(sites, 30.0);
            let settled = world.run(sites, 10.0);
            let passing: f64 = sites.iter().map(|site| site.calls_per_s * PASSING_NS * 1e-9).sum();
            let demand: f64 = sites
                .iter()
                .map(|site| site.calls_per_s * 1e-9 * (site.host_ns + site.device_ns))
                .sum();
            prop_assert!(settled <= share.max(passing + 0.05 * share), "{settled}");
            prop_assert!(settled >= 0.7 * (share - passing).min(demand), "{settled} {demand}");
            prop_assert!(first.is_finite());
            prop_assert!(world.rates.iter().all(|rate| (0.0..=1.0).contains(rate)));
        }
    }
}

/// Calls of 300 µs, 100 a second, so that most of the time is idle.
#[test]
fn idle_time_earns_nothing() {
    let site = Site::new(100.0, 30_000.0, 0.0);
    let mut world = World::new(0.01, 1);
    world.run(&[site], 10.0);
    assert_eq!(world.rates, [1.0], "it costs 0.3 % of wall time");
    let mean_ns = Some(300_000.0);
    world.budget.set_whole_calls(0, WholeCalls { mean_ns, ..WholeCalls::default() });
    world.run(&[site], 10.0);
    let longer = world.rates[0] * site.host_ns / 300_000.0;
    assert!((0.008..=0.01).contains(&longer), "{longer}");
}

/// A function that is called once a second beside one that fills the time.
#[test]
fn rare_calls_are_spared_as_well() {
    let sites = [Site::new(1.0, 30_000.0, 0.0), Site::new(1_000.0, 30_000.0, 0.0)];
    let mut world = World::new(0.01, 2);
    for index in 0..2 {
        let mean_ns = Some(900_000.0);
        world.budget.set_whole_calls(index, WholeCalls { mean_ns, ..WholeCalls::default() });
    }
    world.run(&sites, 10.0);
    for rate in &world.rates {
        let longer = rate * 30_000.0 / 900_000.0;
        assert!((0.003..=0.01).contains(&longer), "{:?}", world.rates);
    }
}

#[test]
fn inner_calls_share_the_time_of_the_outer_one() {
    let sites = [Site::new(100.0, 3_000.0, 0.0), Site::new(1_000.0, 3_000.0, 0.0)];
    let mut world = World::new(0.01, 2);
    let outer = WholeCalls { mean_ns: Some(300_000.0), ..WholeCalls::default() };
    world.budget.set_whole_calls(0, outer);
    world.budget.set_whole_calls(1, WholeCalls { unit: Some(0), ..WholeCalls::default() });
    world.run(&sites, 10.0);
    let added_ns = 3_000.0 * (world.rates[0] + 10.0 * world.rates[1] * (1.0 - LEFT_ALONE));
    let longer = added_ns / 300_000.0;
    assert!((0.008..=0.01).contains(&longer), "{longer} {:?}", world.rates);
}

/// Timing adds ten times what the model knows of.
#[test]
fn measurement_corrects_the_model() {
    let site = Site::new(1_000.0, 3_000.0, 0.0);
    let rate_after = |error: f64| {
        let mut world = World::new(0.01, 1);
        let mut timed = 0.0;
        for _ in 0..1_000 {
            let added = Added { ns: 30_000.0 * timed, error_ns: error * 30_000.0 * timed };
            let added = (timed > 0.0).then_some(added);
            let whole = WholeCalls { mean_ns: Some(500_000.0), added, ..WholeCalls::default() };
            world.budget.set_whole_calls(0, whole);
            timed += world.rates[0] * site.calls_per_s * STEP_NS / 1e9;
            world.run(&[site], 0.01);
        }
        world.rates[0] * 30_000.0 / 500_000.0
    };
    let [known, unknown] = [0.01, 100.0].map(rate_after);
    assert!((0.008..=0.01).contains(&known), "{known}");
    assert!(unknown > 0.05, "an unknown effect corrects nothing: {unknown}");
}
