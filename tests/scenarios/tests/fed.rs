//! Tests for the decision whether a bracket was fed or starved.

use gpu_time_sim_driver::formula::spin_ns;

use crate::harness::{is_real, scenario};

/// Brackets that waited for the host are starved, but held brackets are not.
#[test]
fn host_delays_are_starved() {
    let run = scenario("fed/delays", &[]).untraced().run();
    let fact = |name| run.fact(name);
    let [off, off_and_fed, fed, right] = ["off", "off_and_fed", "fed", "right"].map(fact);
    let worst_ns = fact("worst_ns");
    let held_off_ns = fact("held_off_ns");
    println!(
        "{off} waited, of which {off_and_fed} fed, by {worst_ns} ns at most; {right} accurate; \
         {fed} fed; a held one is off by {held_off_ns} ns at most"
    );
    // Without many brackets of both kinds, the test would prove nothing.
    assert!(off >= 800 && right >= 240, "{off} off, {right} right");
    assert!(off_and_fed * 200 <= off, "{off_and_fed} of {off} that waited count as fed");
    // Not every accurate sample can be proved fed, but some must be.
    assert!(fed >= 120, "{fed} fed");
    assert!(fact("held_starved") * 50 <= 200, "held and starved");
}

mod simulated {
    use super::*;

    /// The delay until the GPU sees a command varies, so a start reached just after the host
    /// enqueued the stop proves nothing.
    #[test]
    fn submission_jitter() {
        let delays = scenario("fed/delays", &[]).untraced();
        let run = delays.simulated(|sim| sim.model("submit_jitter_ns=8_000")).run();
        let [off, off_and_fed, fed] = ["off", "off_and_fed", "fed"].map(|name| run.fact(name));
        println!("{off} off, of which {off_and_fed} fed; {fed} fed");
        assert!(off >= 800 && off_and_fed * 200 <= off, "{off_and_fed} of {off} count as fed");
        assert!(fed >= 120, "{fed} fed");
    }

    /// A clock that goes backwards, however far, must not prove a starved bracket fed.
    #[test]
    fn clock_stepping_back() {
        for back in ["1_000", "5_000_000", "25_000_000"] {
            let model = format!("host_back_at_ns=30_000_000,host_back_ns={back}");
            let delays = scenario("fed/delays", &[]).untraced();
            let run = delays.simulated(|sim| sim.model(&model)).run();
            let [off, off_and_fed, fed] = ["off", "off_and_fed", "fed"].map(|name| run.fact(name));
            println!("{back}: {off} off, of which {off_and_fed} fed; {fed} fed");
            assert!(off_and_fed * 200 <= off, "{back}: {off_and_fed} of {off} count as fed");
            assert!(fed >= 80, "{back}: {fed} fed");
        }
    }
}

/// Behind a queue, every bracket is fed.
#[test]
fn queued_loop_is_fed() {
    let run = scenario("fed/queue", &[]).run();
    let site = run.site("fed::queued");
    for row in [site.row(), site.launch(0), run.row("fed::held")] {
        assert_eq!(row.brackets(), (4_010, 4_010, 0, 0));
        assert!(row.fed * 100 >= row.measured * 95, "{row:?}");
        // Most brackets had a long queue behind them, whose time is subtracted.
        assert!(row.queued * 100 >= row.measured * 80, "{row:?}");
        let device = &run.report().devices[0];
        if let (Some(held), Some(queued)) =
            (device.event_held_empty_ns, device.event_queued_empty_ns)
        {
            // On some machines, a queue adds nothing.
            let added_ns = row.queued as f64 * (queued - held).max(0.0);
            assert!((row.added_ns - added_ns).abs() <= 1e-3 * added_ns, "{row:?}");
            assert_eq!(row.bias_ns, device.event_bias_ns);
        }
        if !is_real() {
            // The time that CUPTI would report, rounded to steps.
            let off = row.net_ns.as_ref().unwrap().median - spin_ns(5_000) as f64;
            assert!((-2.0..30.0).contains(&off), "{off}: {row:?}");
        }
    }
}

#[test]
fn given_bias_is_the_whole_one() {
    let run = scenario("fed/queue", &[]).env("GPU_TIME_BIAS", "0ns").run();
    let row = run.row("fed::queued");
    assert!(row.queued * 100 >= row.measured * 80, "{row:?}");
    let net = row.net_ns.as_ref().unwrap();
    assert_eq!((row.added_ns, net.median, net.sum), (0.0, row.raw().median, row.raw().sum));
}

/// An inner bracket whose stop is still pending does not prove that the outer bracket was fed.
#[test]
fn nested_bracket_does_not_prove_outer_fed() {
    let run = scenario("fed/nested", &[]).untraced().run();
    let outer = run.row("fed::outer");
    assert_eq!((outer.brackets(), outer.nested), ((40, 40, 0, 0), 40));
    // The GPU passes the start immediately, so only a host faster than the kernel can prove the
    // bracket fed.
    assert_eq!(outer.queued, 0, "{outer:?}");
    let alone = run.row("fed::alone");
    assert_eq!((alone.fed, alone.starved, alone.queued), (0, 40, 0), "{alone:?}");
}
