//! Tests for every kind of bracket, with known durations. In the simulation, the harness compares
//! every sample in every scenario with the driver's trace; these tests also compare them with
//! closed formulas.

use crate::harness::{assert_lasts, scenario};

#[test]
fn times_match_work() {
    let run = scenario("exact/fed", &[]).run();
    assert_lasts(run.row("exact::one"), 10_000.0);
    assert_lasts(run.row("exact::three"), 35_000.0);
    assert_lasts(run.row("exact::body"), 35_000.0);
    assert_lasts(run.row("exact::held"), 10_000.0);
    assert_lasts(run.row("exact::delayed"), 10_000.0);
    let device = &run.report().devices[0];
    assert!(device.event_floor_ns.is_some_and(|ns| (100.0..5_000.0).contains(&ns)), "{device:?}");
    assert!(device.event_step_ns.is_some_and(|ns| ns >= 1.0), "{device:?}");
}

mod simulated {
    use super::*;
    use crate::harness::Run;
    use crate::harness::report::Series;
    use gpu_time_sim_driver::formula::{EMPTY_NS, fed_pair_ns, spin_ns, starved_pair_ns};

    /// The reading of a held empty kernel, minus CUPTI's time for it.
    const BIAS: f64 = (1_280 + 1_472 - EMPTY_NS) as f64;

    /// Asserts that all samples equal `ns`.
    #[track_caller]
    fn assert_all(row: &Series, count: u64, ns: u64) {
        assert_eq!((row.measured, row.at_floor), (count, 0));
        let raw = row.raw();
        let near = |found: f64| (found - ns as f64).abs() < 0.1;
        assert!(near(raw.min) && near(raw.max), "{ns}: {raw:?}");
        assert!((raw.sum - (count * ns) as f64).abs() < 1.0, "{ns}: {raw:?}");
    }

    #[test]
    fn fed_brackets_match_formula() {
        let run = scenario("exact/fed", &[]).run();
        let spins = [5_000, 10_000, 20_000].map(spin_ns);
        assert_all(run.row("exact::one"), 30, fed_pair_ns(&[spins[1]]));
        for (launch, spin) in (0..).zip(spins) {
            assert_all(run.site("exact::three").launch(launch), 30, fed_pair_ns(&[spin]));
        }
        let sum = spins.iter().map(|spin| fed_pair_ns(&[*spin])).sum();
        assert_all(run.row("exact::three"), 30, sum);
        assert_all(run.row("exact::body"), 30, fed_pair_ns(&spins));
        let nothing = run.row("exact::nothing");
        assert_eq!((nothing.measured, nothing.at_floor), (30, 30));
        // The first call is not held.
        let held = run.row("exact::held");
        assert_eq!((held.fed, held.starved), (9, 1));
        assert!((held.raw().max - fed_pair_ns(&[spins[1]]) as f64).abs() < 0.1);
        assert!((held.raw().min - held.raw().max).abs() < 0.1);
        let delayed = run.row("exact::delayed");
        assert_all(delayed, 10, fed_pair_ns(&[spins[1]]));
        assert_eq!(delayed.fed, 10);
        let device = &run.report().devices[0];
        assert!(device.event_floor_ns.is_some_and(|ns| (ns - 1_280.0).abs() < 0.1), "{device:?}");
        assert_eq!(device.l2_bytes, Some(62_914_560));
        assert!(device.event_step_ns.is_some_and(|ns| (ns - 32.0).abs() < 0.1), "{device:?}");
        // The bias is subtracted once per bracket. The result is the time that CUPTI would report,
        // rounded to steps.
        let net = |name: &str| run.row(name).net_ns.as_ref().unwrap().median;
        let raw = |name: &str| run.row(name).raw().median;
        assert!((raw("exact::one") - net("exact::one") - BIAS).abs() < 0.1);
        assert!((raw("exact::three") - net("exact::three") - 3.0 * BIAS).abs() < 0.1);
        let off = |found: f64, length: u64| found - length as f64;
        for name in ["exact::one", "exact::held", "exact::delayed"] {
            assert!((-2.0..30.0).contains(&off(net(name), spins[1])), "{name}: {}", net(name));
        }
        assert!((-6.0..90.0).contains(&off(net("exact::three"), spins.iter().sum())));
    }

    /// Returns the formula's durations for brackets around these kernels, computed from the times
    /// at which the host's calls returned.
    fn expected(run: &Run, place: &str, kernels: &[u64]) -> Vec<f64> {
        let handle = run.kernel(place);
        let calls: Vec<_> = run.trace.calls().collect();
        let is_record = |name: &str| name == "cuEventRecord";
        let launches: Vec<usize> = (0..calls.len())
            .filter(|&i| calls[i].args.get("f").and_then(|f| f.as_u64()) == Some(handle))
            .collect();
        let pairs = launches.chunks(kernels.len()).map(|launches| {
            let first = launches[0];
            let last = launches[launches.len() - 1];
            let start = calls[..first].iter().rfind(|call| is_record(&call.name)).unwrap();
            let stop = calls[last..].iter().find(|call| is_record(&call.name)).unwrap();
            let returned: Vec<u64> = launches.iter().map(|&i| calls[i].after_ns).collect();
            starved_pair_ns(start.after_ns, &returned, kernels, stop.after_ns) as f64
        });
        let mut pairs: Vec<f64> = pairs.collect();
        pairs.sort_by(f64::total_cmp);
        pairs
    }

    #[test]
    fn starved_brackets_match_formula() {
        let run = scenario("exact/starved", &[]).run();
        for (place, spins) in
            [("exact::one", &[10_000][..]), ("exact::body", &[5_000, 10_000, 20_000])]
        {
            let kernels: Vec<u64> = spins.iter().map(|&ns| spin_ns(ns)).collect();
            let expected = expected(&run, place, &kernels);
            assert_eq!(expected.len(), 30);
            let row = run.row(place);
            assert_eq!(row.measured, 30);
            assert!((row.raw().min - expected[0]).abs() < 0.1, "{place}: {:?}", row.raw());
            assert!((row.raw().max - expected[29]).abs() < 0.1, "{place}: {:?}", row.raw());
            assert!((row.raw().sum - expected.iter().sum::<f64>()).abs() < 1.0, "{place}");
        }
        assert_eq!(run.row("exact::nothing").at_floor, 30);
    }
}
