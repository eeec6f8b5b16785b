//! Tests for work and rates.

use crate::harness::report::Series;
use crate::harness::{Run, scenario};

fn work() -> Run {
    scenario("rates/work", &[]).run()
}

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-9 * expected
}

#[test]
fn work_evaluated_for_timed_calls_only() {
    let run = work();
    assert_eq!(run.site("rates::one").counts(), (13, 3, 1, 9));
    assert_eq!(run.fact("of one"), 9);
    assert_eq!(run.site("rates::host").counts(), (13, 2, 1, 10));
    assert_eq!(run.fact("of host"), 10);
}

#[test]
fn constant_work_rate_uses_median() {
    let run = work();
    let row = run.row("rates::one");
    let (bytes, flops) = (row.bytes.as_ref().unwrap(), row.flops.as_ref().unwrap());
    assert_eq!((bytes.samples, bytes.per_call, bytes.total), (9, Some(1048576.0), 9437184.0));
    assert_eq!((flops.samples, flops.per_call, flops.total), (9, Some(2e9), 18e9));
    let median = row.net_ns.as_ref().unwrap().median;
    assert!(near(bytes.gb_per_s.unwrap(), 1048576.0 / median), "{row:?}");
    assert!(near(flops.tflop_per_s.unwrap(), 2e6 / median), "{row:?}");
    let peak = run.report().devices[0].peak_gb_per_s;
    assert_eq!(bytes.peak_share.is_some(), peak.is_some());
    if let Some((share, peak)) = bytes.peak_share.zip(peak) {
        assert!(near(share * peak, bytes.gb_per_s.unwrap()), "{row:?}");
    }
}

#[test]
fn work_belongs_to_function_not_launches() {
    let run = work();
    let site = run.site("rates::two");
    let row = site.row();
    let (bytes, flops) = (row.bytes.as_ref().unwrap(), row.flops.as_ref().unwrap());
    assert_eq!((bytes.samples, bytes.per_call, bytes.total), (12, None, 66_000.0));
    assert_eq!((flops.per_call, flops.total), (None, 66.0));
    for launch in 0..2 {
        let row = site.launch(launch);
        assert!(row.bytes.is_none() && row.flops.is_none(), "{row:?}");
    }
    if row.starved == 0 {
        let sum = row.net_ns.as_ref().unwrap().sum;
        assert!((bytes.gb_per_s.unwrap() * sum - 66_000.0).abs() < 1.0, "{row:?}");
    }
}

#[test]
fn unknown_work_is_left_out() {
    let run = work();
    let row = run.row("rates::some");
    assert_eq!((row.measured, row.at_floor), (12, 0));
    let bytes = row.bytes.as_ref().unwrap();
    assert_eq!((bytes.samples, bytes.per_call, bytes.total), (6, None, 120.0));
    assert!(row.flops.is_none());

    let lost = run.row("rates::fails");
    assert_eq!((lost.lost("failed"), lost.measured), (12, 0));
    assert!(lost.bytes.is_none());
}

#[test]
fn cpu_work_has_rate_without_peak() {
    let run = work();
    let rate = |row: &Series| {
        let bytes = row.bytes.as_ref().unwrap();
        assert_eq!((bytes.per_call, bytes.peak_share), (Some(64.0), None));
        bytes.gb_per_s.unwrap()
    };
    let none = run.row("rates::none");
    assert!(near(rate(none), 64.0 / none.raw().median), "{none:?}");
    let flops = run.row("rates::host").flops.as_ref().unwrap();
    assert_eq!((flops.samples, flops.per_call, flops.total), (10, Some(7.0), 70.0));
}

#[test]
fn invalid_work_is_left_out_and_warns() {
    let run = scenario("rates/invalid", &[]).run();
    let row = run.row("rates::measured");
    let (bytes, flops) = (row.bytes.as_ref().unwrap(), row.flops.as_ref().unwrap());
    assert_eq!((bytes.samples, flops.samples, flops.total), (5, 2, 2e9));
    assert!(run.row("rates::negative").bytes.is_none());
    for (name, count) in [("measured", 3), ("negative", 1)] {
        let [warning] = &run.site(&format!("rates::{name}")).warnings[..] else {
            panic!("{:?}", run.report().warnings())
        };
        let begins = format!("`bytes` or `flops` of {count} timed calls are invalid");
        assert!(warning.starts_with(&begins), "{warning}");
        assert!(run.stderr.contains(warning), "{}", run.stderr);
    }
}

#[test]
fn panicking_work_skips_call() {
    let run = scenario("rates/panics", &[]).panics().run();
    assert_eq!(run.site("rates::never_entered").counts(), (4, 0, 4, 0));
}

mod simulated {
    use super::*;
    use gpu_time_sim_driver::formula::{EMPTY_NS, fed_pair_ns, spin_ns};

    #[test]
    fn rates_match_formula() {
        let run = work();
        // The nanoseconds that a pair reads in excess of its kernel.
        let bias = fed_pair_ns(&[EMPTY_NS]) - EMPTY_NS;
        let net = |ns: u64| (fed_pair_ns(&[spin_ns(ns)]) - bias) as f64;
        let close = |found: Option<f64>, expected: f64| {
            let found = found.unwrap();
            assert!((found / expected - 1.0).abs() < 1e-5, "{found}, expected {expected}");
        };
        let one = run.row("rates::one");
        assert_eq!(one.fed, 9);
        let bytes = one.bytes.as_ref().unwrap();
        close(bytes.gb_per_s, 1048576.0 / net(10_000));
        // The peak is two transfers per cycle of 3,201 MHz, on a bus of 6,144 bits.
        close(bytes.peak_share, 1048576.0 / net(10_000) / 4_916.736);
        close(one.flops.as_ref().unwrap().tflop_per_s, 2e6 / net(10_000));

        // The first call, whose amount of work is zero, comes before the clocks are aligned.
        let (two, some) = (run.row("rates::two"), run.row("rates::some"));
        assert!(two.starved <= 1 && some.starved <= 1, "{two:?}, {some:?}");
        let sum = (12 - two.starved) as f64 * (net(5_000) + net(10_000));
        close(two.bytes.as_ref().unwrap().gb_per_s, 66_000.0 / sum);
        // Only the times of calls with known work count.
        let sum = (6 - some.starved) as f64 * net(10_000);
        close(some.bytes.as_ref().unwrap().gb_per_s, 120.0 / sum);
    }

    #[test]
    fn unknown_bus_width_has_no_peak() {
        const BUS_WIDTH: u64 = 37;
        let whole = work();
        let mut asked = whole.trace.calls_of("cuDeviceGetAttribute");
        let nth = 1 + asked
            .position(|call| call.args["attrib"].as_u64() == Some(BUS_WIDTH))
            .expect("the runtime queries the bus width");
        let fault = format!("cuDeviceGetAttribute:{nth}=1");
        let run = scenario("rates/work", &[]).simulated(|sim| sim.faults(&fault)).run();
        assert_eq!(run.report().devices[0].peak_gb_per_s, None);
        let bytes = run.row("rates::one").bytes.as_ref().unwrap();
        assert_eq!(bytes.peak_share, None);
        assert!(bytes.gb_per_s.is_some());
    }
}
