//! Fed or starved.

use gpu_time_sim_driver::formula::spin_ns;

use crate::harness::{is_real, scenario};

/// What has waited for the host is starved, and what was held is not.
#[test]
fn host_delays_inside_of_brackets() {
    let run = scenario("fed/delays", &[]).untraced().run();
    let fact = |name| run.fact(name);
    let [off, off_and_fed, fed, right] = ["off", "off_and_fed", "fed", "right"].map(fact);
    let worst_ns = fact("worst_ns");
    let held_off_ns = fact("held_off_ns");
    println!(
        "{off} off, of which {off_and_fed} fed, by {worst_ns} ns at most; {right} right; {fed} fed; a held \
         one is off by {held_off_ns} ns at most"
    );
    // Both kinds must be many, or nothing was tried.
    assert!(off >= 800 && right >= 240, "{off} off, {right} right");
    assert!(off_and_fed * 200 <= off, "{off_and_fed} of {off} that waited count as fed");
    // Not all that read right can be proved so, but of some it must be.
    assert!(fed >= 120, "{fed} fed");
    assert!(fact("held_starved") * 50 <= 200, "held and starved");
}

mod simulated {
    use super::*;

    /// The GPU sees what is enqueued sooner or later: a start that it reached just after the host had enqueued
    /// the stop proves nothing.
    #[test]
    fn submission_that_varies() {
        let delays = scenario("fed/delays", &[]).untraced();
        let run = delays.simulated(|sim| sim.model("submit_jitter_ns=8_000")).run();
        let [off, off_and_fed, fed] = ["off", "off_and_fed", "fed"].map(|name| run.fact(name));
        println!("{off} off, of which {off_and_fed} fed; {fed} fed");
        assert!(off >= 800 && off_and_fed * 200 <= off, "{off_and_fed} of {off} count as fed");
        assert!(fed >= 120, "{fed} fed");
    }

    /// A clock that steps back proves nothing fed that was not, however far.
    #[test]
    fn the_clock_steps_back() {
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

/// Behind a queue everything is fed.
#[test]
fn a_loop_that_never_waits() {
    let run = scenario("fed/queue", &[]).run();
    let site = run.site("fed::queued");
    for row in [site.row(), site.launch(0), run.row("fed::held")] {
        assert_eq!(row.brackets(), (4_010, 4_010, 0, 0));
        assert!(row.fed * 100 >= row.measured * 95, "{row:?}");
        // Most had many behind them, and are relieved of the bias that was measured so.
        assert!(row.queued * 100 >= row.measured * 80, "{row:?}");
        let device = &run.report().devices[0];
        if let (Some(held), Some(queued)) =
            (device.event_held_empty_ns, device.event_queued_empty_ns)
            && device.event_bias_source.as_deref() == Some("table")
        {
            let bias = device.event_bias_ns.unwrap() + queued - held;
            assert!((row.bias_ns.unwrap() - bias).abs() < 1.0, "{row:?}");
        }
        if !is_real() {
            // What CUPTI would say, in steps.
            let off = row.net_ns.as_ref().unwrap().median - spin_ns(5_000) as f64;
            assert!((-2.0..30.0).contains(&off), "{off}: {row:?}");
        }
    }
}

/// A stop that comes before another in the queue says nothing of the start of one around it.
#[test]
fn brackets_inside_prove_nothing() {
    let run = scenario("fed/nested", &[]).untraced().run();
    let outer = run.row("fed::outer");
    assert_eq!((outer.brackets(), outer.nested), ((40, 40, 0, 0), 40));
    // Its start was passed at once; only a host that is quick beside the kernel may prove it fed.
    assert_eq!(outer.queued, 0, "{outer:?}");
    let alone = run.row("fed::alone");
    assert_eq!((alone.fed, alone.starved, alone.queued), (0, 40, 0), "{alone:?}");
}
