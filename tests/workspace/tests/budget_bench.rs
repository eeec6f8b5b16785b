//! Tests for the logic in the `budget` bench: its verdicts, and a complete run. The simulated
//! driver has a virtual clock, so no time here is a real measurement.

use std::process::{Command, Output};

use gpu_time_sim_driver::SimDriver;

#[allow(dead_code, reason = "some of it is only printed by the bench")]
#[path = "../../../benches/budget/loss.rs"]
mod loss;

use loss::{Loss, Verdict, judge};

/// Returns a loss of `percent` over rounds during which the host steadily slows down and every
/// seventh round is disturbed. The compared loop alternates with one that takes 4,600 ns.
fn lost(percent: f64, rounds: u32) -> Loss {
    let off = |round: u32| 4_600.0 * (1.0 + f64::from(round) * 1e-4);
    let disturbed = |round: u32| if round % 7 == 3 { 1.5 } else { 1.0 };
    let others: Vec<f64> = (0..rounds).map(off).collect();
    let slower = 1.0 + 0.01 * percent;
    let own: Vec<f64> = (0..rounds).map(|round| off(round) * slower * disturbed(round)).collect();
    Loss::of(&own, &others)
}

#[test]
fn median_of_pairs_ignores_drift_and_outliers() {
    let loss = lost(0.7, 200);
    assert!((loss.median - 0.7).abs() < 1e-9, "{loss:?}");
    assert!(loss.interval[0] <= loss.median && loss.median <= loss.interval[1], "{loss:?}");
    assert!(loss.spread[1] > 40.0, "{loss:?}");
}

#[test]
fn verdict_is_invalid_unless_the_control_holds() {
    use Verdict::{Invalid, Missed, Ok};
    let (none, little, much) = (lost(0.1, 200), lost(1.1, 200), lost(1.3, 200));
    assert_eq!(judge(&little, &none, 1.0, true), [Ok, Ok]);
    assert_eq!(judge(&much, &none, 1.0, true), [Missed, Ok]);
    for off in [lost(0.3, 200), lost(-0.3, 200)] {
        assert_eq!(judge(&little, &off, 1.0, true), [Invalid; 2]);
        assert_eq!(judge(&much, &off, 1.0, true), [Invalid; 2]);
    }
    // The verdict on `little` is also invalid before the budget has settled, and if the control has
    // too few rounds or none.
    assert_eq!(judge(&little, &none, 1.0, false), [Invalid, Ok]);
    assert_eq!(judge(&little, &lost(0.1, 4), 1.0, true), [Invalid; 2]);
    assert_eq!(judge(&little, &lost(0.1, 0), 1.0, true), [Invalid; 2]);
}

#[test]
fn bounds_grow_with_the_budget() {
    use Verdict::{Invalid, Missed, Ok, Underspent};
    let off = lost(0.9, 200);
    for (percent, expected) in [(5.0, Underspent), (9.0, Ok), (11.9, Ok), (12.1, Missed)] {
        assert_eq!(judge(&lost(percent, 200), &off, 10.0, true), [expected, Ok]);
    }
    assert_eq!(judge(&lost(9.0, 200), &off, 1.0, true), [Invalid; 2]);
}

fn run(driver: &SimDriver) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_budget-bench"));
    driver.apply(&mut command).args(["--bench", "--seconds", "1", "--settle", "0.1", "--fast"]);
    command.output().expect("the bench runs")
}

#[test]
fn short_run_ends_and_is_invalid() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let driver = SimDriver::install(dir.path()).expect("the simulated driver is installed");
    let output = run(&driver);
    let (said, complaints) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}{complaints}");
    assert!(complaints.starts_with("budget: invalid option `--fast`"), "{complaints}");
    assert_eq!(complaints.lines().count(), 1, "{complaints}");
    for begin in
        ["GPU-bound", "host-bound", "launch+sync", "off ", "budget  ", "off again", "6 rounds"]
    {
        assert!(said.lines().any(|line| line.starts_with(begin)), "{begin}: {said}");
    }
    let row = said.lines().find(|line| line.starts_with("budget  ")).expect("just seen");
    assert!(row.ends_with(": invalid"), "{said}");
    assert!(said.contains("one call in "), "{said}");

    // A process that cannot run the loop makes the bench fail.
    let output = run(&driver.faults("cuLaunchKernel:20000+=719"));
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{complaints}");
    assert!(complaints.contains("worker process "), "{complaints}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("off again"));
}
