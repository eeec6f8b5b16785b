//! The parent process: starts a worker process, requests turns in a fixed order, and collects the
//! results.

use std::error::Error;
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::loss::{Loss, MAX_CONTROL, MAX_LOSS, MIN_LOSS, median};

/// The variable that names the case in the worker process.
const WORKER: &str = "GPU_TIME_TEST_BENCH_WORKER";
/// The time limit for starting and for answering, in addition to the duration of the request.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The unmeasured part of a turn with timing off, and the measured part.
const OFF_TURN_NS: [f64; 2] = [10e6, 60e6];
/// The unmeasured and the measured part of a turn with the budget. The first is long enough to cover
/// the controller's first adjustments after a pause, which see little load. The second is long
/// enough for about a thousand timed calls.
const BUDGET_TURN_NS: [f64; 2] = [200e6, 400e6];
/// The interval between two progress messages.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// All orders of the turns in a round, used in rotation so that each occurs equally often.
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

/// A loop to slow down, distinguished by what sets its pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// The GPU: 3 µs kernels without waiting.
    GpuBound,
    /// The host: empty kernels without waiting.
    HostBound,
    /// Both: 3 µs kernels, waiting for each one.
    Synchronous,
}

impl Case {
    pub const ALL: [Case; 3] = [Case::GpuBound, Case::HostBound, Case::Synchronous];

    /// Returns this process's case if it is a worker.
    pub fn of_worker() -> Option<Case> {
        Case::named(&std::env::var(WORKER).ok()?)
    }

    pub fn named(name: &str) -> Option<Case> {
        Case::ALL.into_iter().find(|case| case.to_string() == name)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Case::GpuBound => "GPU-bound",
            Case::HostBound => "host-bound",
            Case::Synchronous => "launch+sync",
        })
    }
}

/// A kind of turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Off,
    Budget,
    Control,
}

impl Kind {
    /// Returns the state of timing, and the lengths of the lead and of the measured part.
    fn turn(self) -> (&'static str, [f64; 2]) {
        match self {
            Kind::Off | Kind::Control => ("off", OFF_TURN_NS),
            Kind::Budget => ("on", BUDGET_TURN_NS),
        }
    }

    /// Describes the bound on the loss with a budget of `percent`.
    pub fn bound(self, percent: f64) -> String {
        let [min, max, control] = [MIN_LOSS, MAX_LOSS, MAX_CONTROL].map(|bound| bound * percent);
        match self {
            Kind::Off => String::new(),
            Kind::Budget => format!("{min:.1} to {max:.1} %"),
            Kind::Control => format!("within {control:.1} %"),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Off => "off",
            Kind::Budget => "budget",
            Kind::Control => "off again",
        })
    }
}

/// A process that runs the loop on request. It is killed on drop.
pub struct Worker {
    process: Child,
    requests: ChildStdin,
    answers: Receiver<String>,
    pub device: String,
    /// The approximate duration of a call.
    call_ns: f64,
}

impl Worker {
    pub fn start(case: Case, percent: f64) -> Result<Worker, Box<dyn Error>> {
        let mut command = Command::new(std::env::current_exe()?);
        // The user's settings must not affect the comparison.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("GPU_TIME") && !name.starts_with("GPU_TIME_TEST_") {
                command.env_remove(&*name);
            }
        }
        command
            .env(WORKER, case.to_string())
            .env("GPU_TIME_REPORT", "none")
            .env("GPU_TIME_BUDGET", format!("{percent}%"));
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (requests, output) =
            process.stdin.take().zip(process.stdout.take()).ok_or("the worker has no pipes")?;
        let (sender, answers) = channel();
        thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            // Ends when the receiver has been dropped.
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

    /// Sends a request that runs for `within`, and returns the numbers in the answer.
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
        let before: [f64; 4] = self.ask("count", Duration::ZERO)?;
        let (mut rounds, mut last_progress) = (Rounds::default(), Instant::now());
        while rounds.len() < ORDERS.len() || Instant::now() < deadline {
            let mut turns = [[0.0; 2]; 3];
            for kind in ORDERS[rounds.len() % ORDERS.len()] {
                let (timing, parts) = kind.turn();
                let [lead, measured] = parts.map(calls);
                let request = format!("turn {timing} {lead} {measured}");
                turns[kind as usize] = self.ask(&request, Duration::ZERO)?;
            }
            rounds.push(turns);
            if last_progress.elapsed() > PROGRESS_INTERVAL {
                println!("{rounds}");
                last_progress = Instant::now();
            }
        }
        let after: [f64; 4] = self.ask("count", Duration::ZERO)?;
        let [timed, host_ns, device_ns] = std::array::from_fn(|i| after[i] - before[i]);
        if timed > 0.0 {
            let total = rounds.len() as f64 * BUDGET_TURN_NS.map(calls).iter().sum::<f64>();
            rounds.account = Some(Account {
                one_in: total / timed,
                host_ns: host_ns / timed,
                device_ns: device_ns / timed,
                charged_share: after[3],
            });
        }
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
    /// `None` if no call was timed.
    pub account: Option<Account>,
}

/// The budget's account for a case.
pub struct Account {
    /// The number of calls per timed call.
    pub one_in: f64,
    /// The host and device time counted per timed call, including the time for calls that were not
    /// timed.
    pub host_ns: f64,
    pub device_ns: f64,
    /// The fraction of time charged over roughly the last ten seconds.
    pub charged_share: f64,
}

impl Rounds {
    fn push(&mut self, turns: [[f64; 2]; 3]) {
        for ([ns, lag_ns], all) in turns.into_iter().zip(&mut self.ns) {
            all.push(ns);
            self.lags_ns.push(lag_ns);
        }
    }

    pub fn len(&self) -> usize {
        self.of(Kind::Off).len()
    }

    pub fn of(&self, kind: Kind) -> &[f64] {
        &self.ns[kind as usize]
    }

    /// Returns the loss of this kind of turn relative to those with timing off in the same round.
    pub fn loss(&self, kind: Kind) -> Loss {
        Loss::of(self.of(kind), self.of(Kind::Off))
    }

    /// Returns the median time that the GPU was behind the host. If it is 0, the host sets the
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
