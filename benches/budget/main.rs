//! What a budget of 1 % slows a program down by: a loop of 3 µs kernels that never waits.
//!
//! ```text
//! cargo bench --bench budget [-- --seconds 220 --settle 32]
//! ```
//!
//! Two runs of a program differ by more than a budget costs: clocks ramp, a host is shared, a thread is
//! moved, and a process is faster or slower by a percent or two for as long as it lives. So one process runs
//! the loop, on one core, in turns: with the budget, and twice with timing off, by `set_enabled`, which costs
//! a call what `GPU_TIME=off` does. The order changes, each as often as any other. A turn with the budget
//! is much longer than the others, because the budget counts all of the time: what those save it would
//! spend. Nothing is measured before it has settled, nor in the first part of a turn. What is shown is
//! the median over all rounds of what a turn lost against the first with timing off. The second of these
//! is the control: where it differs by more than it may, nothing is known, and the bench says
//! `invalid`. All of it is done twice, with new processes, in `--seconds` together.

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

/// What a budget must have had to itself, by the contract, before it is judged.
const SETTLED: Duration = Duration::from_secs(30);
/// How often all of it is done, with new processes.
const GROUPS: u32 = 2;

struct Options {
    /// How long all may take.
    seconds: Duration,
    /// How long the budget runs before anything counts.
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
                    eprintln!("budget: `{word}`: there are `--seconds` and `--settle`");
                    continue;
                }
            };
            let value = words.next().unwrap_or_default();
            let seconds = value.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
            match seconds {
                Some(seconds) => *option = seconds,
                None => eprintln!("budget: `{word} {value}`: it takes a number of seconds"),
            }
        }
        options
    }
}

fn main() -> ExitCode {
    let outcome = if turns::is_worker() { worker::work().map(|()| true) } else { bench() };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("budget: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Answers whether all bounds hold.
fn bench() -> Result<bool, Box<dyn Error>> {
    // SAFETY: looks for the driver's library; without it cudarc would panic.
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
        let own = worker.take_turns(started + options.seconds * number / GROUPS)?;
        println!("group {number} of {GROUPS}: {own}");
        rounds.append(own);
    }
    Ok(show(&rounds, options.settle >= SETTLED))
}

/// The table; answers whether all bounds hold.
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
    if let Some([one_in, host_ns, device_ns]) = rounds.known() {
        let each_ns = 0.01 * budget.median * ns(Kind::Off) * one_in;
        println!(
            "one call in {one_in:.0} was timed: it and those before it took {each_ns:.0} ns, and were counted as \
             {host_ns:.0} ns of the host and {device_ns:.0} ns of the device"
        );
    }
    if !is_settled {
        println!("the budget had less than {} s to settle", SETTLED.as_secs());
    }
    if verdicts.contains(&Verdict::Invalid) {
        println!("invalid: two loops with timing off differ by too much, or it was too short");
    }
    verdicts.iter().all(|verdict| *verdict == Verdict::Ok)
}
