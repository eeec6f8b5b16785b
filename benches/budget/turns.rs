//! The parent's side: starts a worker process, asks it for turns in a fixed order, and collects the
//! results.

use std::error::Error;
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::loss::{Loss, MAX_CONTROL, MAX_LOSS, median};

/// The variable that is set in the worker process.
const WORKER: &str = "GPU_TIME_TEST_BENCH_WORKER";
/// The time limit for starting and for an answer, beyond the time that the request runs.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The measured part of a turn.
const TURN_NS: f64 = 60e6;
/// The part of a turn before the measured one.
const LEAD_NS: f64 = 10e6;
/// The same with the budget. It is long so that timing is off for little of the total time, and so
/// that the controller's first adjustment after a pause, which sees no load, is over.
const BUDGET_LEAD_NS: f64 = 1.5e9;
/// The interval between two progress messages.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// All orders of the turns of a round, used one after another so that each occurs equally often.
const ORDERS: [[Kind; 3]; 6] = {
    use Kind::{Budget, Control, Off};
    [
        [Off, Budget, Control],
        [Control, Budget, Off],
        [Budget, Off, Control],
        [Control, Off, Budget],
        [Off, Control, Budget],
        [Budget, Control, Off],
    ]
};

/// Returns `true` if this process is a worker.
pub fn is_worker() -> bool {
    std::env::var_os(WORKER).is_some()
}

/// A kind of turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Off,
    Budget,
    Control,
}

impl Kind {
    /// Returns the state of timing and the lead before the measured part.
    fn turn(self) -> (&'static str, f64) {
        match self {
            Kind::Off | Kind::Control => ("off", LEAD_NS),
            Kind::Budget => ("on", BUDGET_LEAD_NS),
        }
    }

    /// Describes the bound on the loss.
    pub fn bound(self) -> String {
        match self {
            Kind::Off => String::new(),
            Kind::Budget => format!("at most {MAX_LOSS} %"),
            Kind::Control => format!("within {MAX_CONTROL} %"),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Off => "off",
            Kind::Budget => "budget of 1 %",
            Kind::Control => "off again",
        })
    }
}

/// A process that runs the loop on request. Killed on drop.
pub struct Worker {
    process: Child,
    requests: ChildStdin,
    answers: Receiver<String>,
    pub device: String,
    /// The approximate duration of a call.
    call_ns: f64,
}

impl Worker {
    pub fn start() -> Result<Worker, Box<dyn Error>> {
        let mut command = Command::new(std::env::current_exe()?);
        // The user's settings must not affect the comparison.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("GPU_TIME") && !name.starts_with("GPU_TIME_TEST_") {
                command.env_remove(&*name);
            }
        }
        command.env(WORKER, "").env("GPU_TIME_REPORT", "none").env("GPU_TIME_BUDGET", "1%");
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (requests, output) =
            process.stdin.take().zip(process.stdout.take()).ok_or("the worker has no pipes")?;
        let (sender, answers) = channel();
        thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            // Ends when the receiver is gone.
            lines.map(|line| sender.send(line)).find(Result::is_err)
        });
        let mut worker = Worker { process, requests, answers, device: String::new(), call_ns: 0.0 };
        worker.device = worker.answer(Duration::ZERO)?;
        Ok(worker)
    }

    fn answer(&self, within: Duration) -> Result<String, Box<dyn Error>> {
        self.answers.recv_timeout(within + TIMEOUT).map_err(|why| {
            let why = match why {
                RecvTimeoutError::Timeout => "does not answer",
                RecvTimeoutError::Disconnected => "has exited",
            };
            format!("the worker process {why}").into()
        })
    }

    /// Sends a request that runs for `within` and returns the numbers in the answer.
    fn ask<const N: usize>(
        &mut self,
        request: &str,
        within: Duration,
    ) -> Result<[f64; N], Box<dyn Error>> {
        writeln!(self.requests, "{request}")?;
        let answer = self.answer(within)?;
        let numbers = answer.split(' ').map(str::parse).collect::<Result<Vec<f64>, _>>();
        let numbers = numbers.ok().and_then(|numbers| numbers.try_into().ok());
        numbers.ok_or_else(|| format!("unexpected answer `{answer}` to `{request}`").into())
    }

    /// Runs the loop while the budget settles.
    pub fn settle(&mut self, time: Duration) -> Result<(), Box<dyn Error>> {
        println!("the budget settles for {:.0} s", time.as_secs_f64());
        let [ns] = self.ask(&format!("settle {}", time.as_millis()), time)?;
        println!("a call takes {ns:.0} ns");
        self.call_ns = ns;
        Ok(())
    }

    /// Runs rounds until the deadline, but at least one per order.
    pub fn take_turns(&mut self, deadline: Instant) -> Result<Rounds, Box<dyn Error>> {
        let call_ns = self.call_ns.max(1.0);
        let calls = |ns: f64| (ns / call_ns).ceil();
        let before: [f64; 3] = self.ask("count", Duration::ZERO)?;
        let (mut rounds, mut last_progress) = (Rounds::default(), Instant::now());
        while rounds.len() < ORDERS.len() || Instant::now() < deadline {
            let mut turns = [[0.0; 2]; 3];
            for kind in ORDERS[rounds.len() % ORDERS.len()] {
                let (timing, lead_ns) = kind.turn();
                let request = format!("turn {timing} {} {}", calls(lead_ns), calls(TURN_NS));
                turns[kind as usize] = self.ask(&request, Duration::ZERO)?;
            }
            rounds.push(turns);
            if last_progress.elapsed() > PROGRESS_INTERVAL {
                println!("{rounds}");
                last_progress = Instant::now();
            }
        }
        let after: [f64; 3] = self.ask("count", Duration::ZERO)?;
        rounds.calls = rounds.len() as f64 * (calls(BUDGET_LEAD_NS) + calls(TURN_NS));
        rounds.accounted = std::array::from_fn(|i| after[i] - before[i]);
        Ok(rounds)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Both fail if the process has already exited.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The results of all turns.
#[derive(Default)]
pub struct Rounds {
    /// The time per call of each turn, by kind.
    ns: [Vec<f64>; 3],
    /// The time by which the GPU was behind the host at the end of each turn.
    lags_ns: Vec<f64>,
    /// The number of calls with the budget.
    calls: f64,
    /// The number of timed calls among them, and the nanoseconds that the budget counted for them
    /// on the host and on the device.
    accounted: [f64; 3],
}

impl Rounds {
    fn push(&mut self, turns: [[f64; 2]; 3]) {
        for ([ns, lag_ns], all) in turns.into_iter().zip(&mut self.ns) {
            all.push(ns);
            self.lags_ns.push(lag_ns);
        }
    }

    pub fn append(&mut self, mut other: Rounds) {
        for (all, more) in self.ns.iter_mut().zip(&mut other.ns) {
            all.append(more);
        }
        self.lags_ns.append(&mut other.lags_ns);
        self.calls += other.calls;
        self.accounted = std::array::from_fn(|i| self.accounted[i] + other.accounted[i]);
    }

    pub fn len(&self) -> usize {
        self.of(Kind::Off).len()
    }

    pub fn of(&self, kind: Kind) -> &[f64] {
        &self.ns[kind as usize]
    }

    /// Returns the loss of turns of this kind against those with timing off in the same round.
    pub fn loss(&self, kind: Kind) -> Loss {
        Loss::of(self.of(kind), self.of(Kind::Off))
    }

    /// Returns the budget's accounts per timed call: the number of calls per timed one, and the
    /// nanoseconds counted on the host and on the device, including those of the calls that were
    /// not timed. `None` if no call was timed.
    pub fn accounted(&self) -> Option<[f64; 3]> {
        let [timed, host_ns, device_ns] = self.accounted;
        (timed > 0.0).then(|| [self.calls, host_ns, device_ns].map(|all| all / timed))
    }

    /// Returns the median time by which the GPU was behind the host. If it is 0, the host sets the
    /// pace.
    pub fn lag(&self) -> String {
        format!("{:.0} µs", 1e-3 * median(&self.lags_ns))
    }
}

impl fmt::Display for Rounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [budget, control] = [Kind::Budget, Kind::Control].map(|kind| self.loss(kind).median);
        write!(f, "{} rounds, budget {budget:+.2} %, control {control:+.2} %", self.len())
    }
}
