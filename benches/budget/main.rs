//! Measures how much a 1 % budget slows a program down, in three cases: a loop whose pace is set by
//! the GPU, one whose pace is set by the host, and one that waits for each launch.
//!
//! ```text
//! cargo bench --bench budget [-- --seconds 60 --settle 8 --percent 1 --case host-bound]
//! ```
//!
//! Two runs of a program differ by more than a budget costs: clocks ramp, hosts are shared, threads
//! migrate, and each process is a percent or two faster or slower for its whole life. Therefore a
//! single process runs a case's loop on one core, in turns: one with the budget, and two with
//! timing switched off through `set_enabled`, which costs a call as much as `GPU_TIME=off`. Each
//! round has one turn of each kind, and all orders occur equally often. A turn with the budget is
//! much longer than the others, because the budget is a fraction of the total time: it would
//! otherwise spend what the other turns save.
//!
//! Measuring starts once the budget has settled, and excludes the first part of each turn. The
//! result is the median, over all rounds, of a turn's loss relative to the first turn with timing
//! off. The second such turn is the control: if it differs by more than its bound, the result is
//! `invalid`. `underspent` is within the bound too, but fewer calls are timed than would be
//! possible.
//!
//! If two runs of the same loop differ by more than a 1 % budget costs, `--percent 10` shows
//! whether timed calls are charged at their true cost. The bounds grow with the budget.

#![allow(unsafe_code)] // launching a kernel is unsafe in cudarc, and so is pinning a thread

mod loss;
mod turns;
mod worker;

use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use cudarc::driver::sys;

use loss::{Verdict, judge, median};
use turns::{Account, Case, Kind, Rounds, Worker};

/// The time that a budget needs to settle. A debt from the first calls is paid back over ten
/// seconds, and still lowers the cost by a few percent at the end of this time.
const SETTLING_TIME: Duration = Duration::from_secs(8);

struct Options {
    /// The duration of the whole bench.
    seconds: Duration,
    /// The time that the budget has to settle before measuring starts.
    settle: Duration,
    /// The budget, as a percentage of the time.
    percent: f64,
    /// The only case to run. `None` runs all.
    case: Option<Case>,
}

impl Options {
    fn read() -> Options {
        let mut options = Options {
            seconds: Duration::from_secs(60),
            settle: SETTLING_TIME,
            percent: 1.0,
            case: None,
        };
        let mut words = std::env::args().skip(1).filter(|word| word != "--bench"); // by cargo
        while let Some(option) = words.next() {
            let value = words.next().unwrap_or_default();
            if let Err(expected) = options.set(&option, &value) {
                let given = format!("{option} {value}");
                eprintln!("budget: invalid option `{}`: expected {expected}", given.trim_end());
            }
        }
        options
    }

    /// Sets one option. The error describes what would be accepted.
    fn set(&mut self, option: &str, value: &str) -> Result<(), &'static str> {
        let number = || value.parse::<f64>().ok();
        let seconds = || number().and_then(|s| Duration::try_from_secs_f64(s).ok());
        match option {
            "--seconds" => self.seconds = seconds().ok_or("seconds")?,
            "--settle" => self.settle = seconds().ok_or("seconds")?,
            "--percent" => {
                let percent = number().filter(|percent| (0.1..=50.0).contains(percent));
                self.percent = percent.ok_or("0.1 to 50")?;
            }
            "--case" => {
                let case = Case::named(value);
                self.case = Some(case.ok_or("`GPU-bound`, `host-bound` or `launch+sync`")?);
            }
            _ => return Err("`--seconds`, `--settle`, `--percent` or `--case`"),
        }
        Ok(())
    }
}

fn main() -> ExitCode {
    let result = match Case::of_worker() {
        Some(case) => worker::run(case).map(|()| true),
        None => {
            // Only the workers launch anything.
            gpu_time::configure().report("none").apply();
            bench()
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("budget: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the bench. Returns `true` if all bounds hold.
fn bench() -> Result<bool, Box<dyn Error>> {
    // SAFETY: only looks for the driver library, without which cudarc would panic.
    if !unsafe { sys::is_culib_present() } {
        println!("no GPU here (no CUDA driver): nothing was timed");
        return Ok(true);
    }
    let options = Options::read();
    let started = Instant::now();
    let is_settled = options.settle >= SETTLING_TIME;
    let mut are_ok = true;
    let cases = options.case.map_or(Case::ALL.to_vec(), |case| vec![case]);
    for (&case, number) in cases.iter().zip(1..) {
        let mut worker = Worker::start(case, options.percent)?;
        println!("{case}: a process on {}", worker.device);
        worker.settle(options.settle)?;
        let deadline = started + options.seconds * number / cases.len() as u32;
        are_ok &= show(case, &worker.take_turns(deadline)?, options.percent, is_settled);
    }
    if !is_settled {
        println!("invalid: the budget had less than {} s to settle", SETTLING_TIME.as_secs());
    }
    Ok(are_ok)
}

/// Prints the table for a case. Returns `true` if all bounds hold.
fn show(case: Case, rounds: &Rounds, percent: f64, is_settled: bool) -> bool {
    let [budget, control] = [Kind::Budget, Kind::Control].map(|kind| rounds.loss(kind));
    let verdicts = judge(&budget, &control, percent, is_settled);
    let ns = |kind: Kind| median(rounds.of(kind));
    println!(
        "\n{case:<14} {:>9}  {:>8}  {:<18} {:<18} budget: {percent} %",
        "ns a call", "median", "95 %", "p10 to p90"
    );
    println!("{:<14} {:>9.1}", Kind::Off, ns(Kind::Off));
    for (kind, loss, verdict) in
        [(Kind::Budget, &budget, verdicts[0]), (Kind::Control, &control, verdicts[1])]
    {
        println!("{kind:<14} {:>9.1}  {loss}  {}: {verdict}", ns(kind), kind.bound(percent));
    }
    println!(
        "{} rounds; at the end of a turn the GPU was behind by {}",
        rounds.len(),
        rounds.lag()
    );
    if let Some(Account { one_in, host_ns, device_ns, charged_share }) = &rounds.account {
        let cost_ns = |percent: f64| 0.01 * percent * ns(Kind::Off) * one_in;
        let [low, high] = budget.interval.map(cost_ns);
        println!(
            "one call in {one_in:.0} was timed and slowed the loop down by {:.0} ns ({low:.0} to {high:.0}), \
             together with those before it",
            cost_ns(budget.median)
        );
        println!(
            "the budget counted {host_ns:.0} ns on the host and {device_ns:.0} ns on the device for it, and \
             charged {:.2} % of the time",
            100.0 * charged_share
        );
    }
    if verdicts[1] == Verdict::Invalid {
        println!("invalid: two loops with timing off differ too much, or the bench was too short");
    }
    println!();
    verdicts.iter().all(|verdict| matches!(verdict, Verdict::Ok | Verdict::Underspent))
}
