//! The logic of the bench `budget`: what it concludes, and that it runs to its end. On the simulated driver,
//! whose time is its own: no figure here is a measurement.

use std::path::Path;
use std::process::{Command, Output};

use gpu_time_sim_driver::SimDriver;
use serde_json::Value;

#[allow(dead_code, reason = "what only the bench prints")]
#[path = "../../../benches/budget/loss.rs"]
mod loss;

use loss::{Loss, Verdict, judge};

/// Rounds in which the host got slower all the time, and one in seven was disturbed. What is compared takes
/// turns with something that takes 4,600 ns, and is slower by so many percent.
fn lost(percent: f64, rounds: u32) -> Loss {
    let off = |round: u32| 4_600.0 * (1.0 + f64::from(round) * 1e-4);
    let disturbed = |round: u32| if round % 7 == 3 { 1.5 } else { 1.0 };
    let others: Vec<f64> = (0..rounds).map(off).collect();
    let slower = 1.0 + 0.01 * percent;
    let own: Vec<f64> = (0..rounds).map(|round| off(round) * slower * disturbed(round)).collect();
    Loss::of(&own, &others)
}

#[test]
fn the_median_of_pairs_sees_through_drift_and_disturbances() {
    let loss = lost(0.7, 200);
    assert!((loss.median - 0.7).abs() < 1e-9, "{loss:?}");
    assert!(loss.interval[0] <= loss.median && loss.median <= loss.interval[1], "{loss:?}");
    assert!(loss.spread[1] > 40.0, "{loss:?}");
}

#[test]
fn without_a_control_that_holds_nothing_is_said() {
    use Verdict::{Invalid, Missed, Ok};
    let (none, little, much) = (lost(0.1, 200), lost(1.1, 200), lost(1.3, 200));
    assert_eq!(judge(&little, &none, true), [Ok, Ok]);
    assert_eq!(judge(&much, &none, true), [Missed, Ok]);
    for off in [lost(0.3, 200), lost(-0.3, 200)] {
        assert_eq!(judge(&little, &off, true), [Invalid; 2]);
        assert_eq!(judge(&much, &off, true), [Invalid; 2]);
    }
    // Nor before the budget has settled, nor by too few rounds, nor by none.
    assert_eq!(judge(&little, &none, false), [Invalid, Ok]);
    assert_eq!(judge(&little, &lost(0.1, 4), true), [Invalid; 2]);
    assert_eq!(judge(&little, &lost(0.1, 0), true), [Invalid; 2]);
}

/// Builds the bench, beside this test, where what it is built of lies already; answers where it is.
fn built() -> String {
    let target =
        Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is in the target folder");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).env("CARGO_TARGET_DIR", target);
    cargo.args(["build", "--locked", "--quiet", "--message-format=json"]);
    cargo.args(["--package", "gpu-time", "--bench", "budget"]);
    let output = cargo.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let messages = String::from_utf8(output.stdout).expect("it is text");
    let executable = messages.lines().find_map(|line| {
        let message: Value = serde_json::from_str(line).expect("it is JSON");
        let is_it = message["target"]["name"] == "budget";
        message["executable"].as_str().filter(|_| is_it).map(str::to_owned)
    });
    executable.expect("it was built")
}

fn run(program: &str, driver: &SimDriver) -> Output {
    let mut command = Command::new(program);
    driver.apply(&mut command).args(["--bench", "--seconds", "1", "--settle", "0.1", "--fast"]);
    command.output().expect("it runs")
}

#[test]
fn it_runs_to_its_end_and_says_that_it_was_too_short() {
    let bench = built();
    let dir = tempfile::tempdir().expect("a temporary folder");
    let driver = SimDriver::install(dir.path()).expect("the simulated driver is installed");
    let output = run(&bench, &driver);
    let (said, complaints) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}{complaints}");
    assert_eq!(complaints, "budget: unknown option `--fast`: expected `--seconds` or `--settle`\n");
    for begin in
        ["GPU-bound", "host-bound", "launch+sync", "off ", "budget of 1 %", "off again", "6 rounds"]
    {
        assert!(said.lines().any(|line| line.starts_with(begin)), "{begin}: {said}");
    }
    let row = said.lines().find(|line| line.starts_with("budget of 1 %")).expect("just seen");
    assert!(row.ends_with(": invalid"), "{said}");
    assert!(said.contains("one call in "), "{said}");

    // A process that cannot run the loop is no figure.
    let output = run(&bench, &driver.faults("cuLaunchKernel:20000+=719"));
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{complaints}");
    assert!(complaints.contains("the worker process has exited"), "{complaints}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("off again"));
}
