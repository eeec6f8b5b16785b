//! The slowdown of a program by a budget of 1 %: a loop of 3 µs kernels that never synchronizes.
//!
//! ```text
//! cargo bench --bench budget [-- --seconds 220 --settle 32]
//! ```
//!
//! Two runs of a program differ by more than a budget costs: clocks ramp, hosts are shared, threads
//! migrate, and each process is a percent or two faster or slower for its whole life. Therefore one
//! process runs the loop on one core, in turns: one with the budget, and two with timing off
//! through `set_enabled`, which costs a call as much as `GPU_TIME=off`. Each round has one turn of
//! each kind, and all orders occur equally often. A turn with the budget is much longer than the
//! others, because the budget is a share of all time: it would spend what the other turns save.
//!
//! Measuring starts once the budget has settled, and leaves out the first part of each turn. The
//! result is the median over all rounds of a turn's loss against the first turn with timing off.
//! The second such turn is the control: if it differs by more than its bound, the result is
//! `invalid`. Everything is done twice, with a new process each, within `--seconds` in total.

#![allow(unsafe_code)] // launching a kernel is unsafe in cudarc, and so is pinning a thread

mod loss;
mod turns;
mod worker;

use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use cudarc::driver::sys;

use loss::{Verdict, judge, median};
use turns::{Kind, Rounds, Worker};

/// The time that a budget needs to settle, by its documentation.
const SETTLING_TIME: Duration = Duration::from_secs(30);
/// The number of repetitions, each with a new process.
const GROUPS: u32 = 2;

struct Options {
    /// The duration of the whole bench.
    seconds: Duration,
    /// The time for which the budget settles before measuring.
    settle: Duration,
}

impl Options {
    fn read() -> Options {
        let mut options =
            Options { seconds: Duration::from_secs(220), settle: Duration::from_secs(32) };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let option = match &*word {
                "--seconds" => &mut options.seconds,
                "--settle" => &mut options.settle,
                "--bench" => continue, // by cargo
                _ => {
                    eprintln!(
                        "budget: unknown option `{word}`: expected `--seconds` or `--settle`"
                    );
                    continue;
                }
            };
            let value = words.next().unwrap_or_default();
            let seconds = value.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
            match seconds {
                Some(seconds) => *option = seconds,
                None => {
                    eprintln!("budget: invalid value `{value}` for `{word}`: expected seconds");
                }
            }
        }
        options
    }
}

fn main() -> ExitCode {
    let result = if turns::is_worker() { worker::run().map(|()| true) } else { bench() };
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
    // SAFETY: only looks for the library of the driver, without which cudarc would panic.
    if !unsafe { sys::is_culib_present() } {
        println!("no GPU here (no CUDA driver): nothing was timed");
        return Ok(true);
    }
    let options = Options::read();
    let started = Instant::now();
    let mut rounds = Rounds::default();
    for number in 1..=GROUPS {
        let mut worker = Worker::start()?;
        println!("group {number} of {GROUPS}: a process on {}", worker.device);
        worker.settle(options.settle)?;
        let group = worker.take_turns(started + options.seconds * number / GROUPS)?;
        println!("group {number} of {GROUPS}: {group}");
        rounds.append(group);
    }
    Ok(show(&rounds, options.settle >= SETTLING_TIME))
}

/// Prints the table. Returns `true` if all bounds hold.
fn show(rounds: &Rounds, is_settled: bool) -> bool {
    let [budget, control] = [Kind::Budget, Kind::Control].map(|kind| rounds.loss(kind));
    let verdicts = judge(&budget, &control, is_settled);
    let ns = |kind: Kind| median(rounds.of(kind));
    println!(
        "\n{:<14} {:>9}  {:>8}  {:<18} {:<18}",
        "", "ns a call", "median", "95 %", "p10 to p90"
    );
    println!("{:<14} {:>9.1}", Kind::Off, ns(Kind::Off));
    for (kind, loss, verdict) in
        [(Kind::Budget, &budget, verdicts[0]), (Kind::Control, &control, verdicts[1])]
    {
        println!("{kind:<14} {:>9.1}  {loss}  {}: {verdict}", ns(kind), kind.bound());
    }
    println!(
        "{} rounds; at the end of a turn the GPU was behind by {}",
        rounds.len(),
        rounds.lag()
    );
    if let Some([one_in, host_ns, device_ns]) = rounds.accounted() {
        let cost_ns = 0.01 * budget.median * ns(Kind::Off) * one_in;
        println!(
            "one call in {one_in:.0} was timed: it and the calls before it cost {cost_ns:.0} ns; the budget \
             counted {host_ns:.0} ns on the host and {device_ns:.0} ns on the device"
        );
    }
    if !is_settled {
        println!("the budget had less than {} s to settle", SETTLING_TIME.as_secs());
    }
    if verdicts.contains(&Verdict::Invalid) {
        println!("invalid: two loops with timing off differ too much, or the bench was too short");
    }
    verdicts.iter().all(|verdict| *verdict == Verdict::Ok)
}
