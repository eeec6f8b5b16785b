//! The process that runs the loop, and the order of its turns.

use std::error::Error;
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::loss::{CONTROL, Loss, MOST, median};

/// Set in the process that runs the loop.
const WORKER: &str = "GPU_TIME_TEST_BENCH_WORKER";
/// How long it may take to start, or to answer longer than it was asked to run.
const PATIENCE: Duration = Duration::from_secs(20);
/// What counts of a turn, and what comes before it. With the budget that is long, so that timing is off for
/// little of the time; and its first look at the load after a pause sees none, and is to be over.
const TURN_NS: f64 = 60e6;
const LEAD_NS: f64 = 10e6;
const BUDGET_LEAD_NS: f64 = 1.5e9;
/// How often it is said how far it has come.
const NEWS: Duration = Duration::from_secs(10);

/// Every order is followed equally often, and none by itself.
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

/// Whether this process is one that runs the loop.
pub fn is_worker() -> bool {
    std::env::var_os(WORKER).is_some()
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Off,
    Budget,
    Control,
}

impl Kind {
    /// Whether timing is on, and how long that runs before it counts.
    fn turn(self) -> (&'static str, f64) {
        match self {
            Kind::Off | Kind::Control => ("off", LEAD_NS),
            Kind::Budget => ("on", BUDGET_LEAD_NS),
        }
    }

    /// What it may lose.
    pub fn bound(self) -> String {
        match self {
            Kind::Off => String::new(),
            Kind::Budget => format!("at most {MOST} %"),
            Kind::Control => format!("within {CONTROL} %"),
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

/// A process that runs the loop when it is asked to. Ended with this.
pub struct Worker {
    process: Child,
    requests: ChildStdin,
    answers: Receiver<String>,
    pub device: String,
    /// What a call takes about.
    call_ns: f64,
}

impl Worker {
    pub fn start() -> Result<Worker, Box<dyn Error>> {
        let mut command = Command::new(std::env::current_exe()?);
        // What the shell says of timing is not what is compared.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("GPU_TIME") && !name.starts_with("GPU_TIME_TEST_") {
                command.env_remove(&*name);
            }
        }
        command.env(WORKER, "").env("GPU_TIME_REPORT", "none").env("GPU_TIME_BUDGET", "1%");
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (requests, output) =
            process.stdin.take().zip(process.stdout.take()).ok_or("its pipes are gone")?;
        let (sender, answers) = channel();
        thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            // Nobody listens any more.
            lines.map(|line| sender.send(line)).find(Result::is_err)
        });
        let mut worker = Worker { process, requests, answers, device: String::new(), call_ns: 0.0 };
        worker.device = worker.answer(Duration::ZERO)?;
        Ok(worker)
    }

    fn answer(&self, within: Duration) -> Result<String, Box<dyn Error>> {
        self.answers.recv_timeout(within + PATIENCE).map_err(|why| {
            let why = match why {
                RecvTimeoutError::Timeout => "does not answer",
                RecvTimeoutError::Disconnected => "has ended",
            };
            format!("a process that runs the loop {why}").into()
        })
    }

    /// What it answers, which may take so long.
    fn ask<const N: usize>(
        &mut self,
        request: &str,
        within: Duration,
    ) -> Result<[f64; N], Box<dyn Error>> {
        writeln!(self.requests, "{request}")?;
        let answer = self.answer(within)?;
        let numbers = answer.split(' ').map(str::parse).collect::<Result<Vec<f64>, _>>();
        let numbers = numbers.ok().and_then(|numbers| numbers.try_into().ok());
        numbers.ok_or_else(|| format!("`{request}` is answered by `{answer}`").into())
    }

    /// Lets the budget find what it needs.
    pub fn settle(&mut self, time: Duration) -> Result<(), Box<dyn Error>> {
        println!("the budget settles for {:.0} s", time.as_secs_f64());
        let [ns] = self.ask(&format!("settle {}", time.as_millis()), time)?;
        println!("a call takes {ns:.0} ns");
        self.call_ns = ns;
        Ok(())
    }

    /// Rounds until the deadline, and as many as there are orders at least.
    pub fn take_turns(&mut self, deadline: Instant) -> Result<Rounds, Box<dyn Error>> {
        let call_ns = self.call_ns.max(1.0);
        let calls = |ns: f64| (ns / call_ns).ceil();
        let before: [f64; 3] = self.ask("count", Duration::ZERO)?;
        let (mut rounds, mut told) = (Rounds::default(), Instant::now());
        while rounds.len() < ORDERS.len() || Instant::now() < deadline {
            let mut turns = [[0.0; 2]; 3];
            for kind in ORDERS[rounds.len() % ORDERS.len()] {
                let (timing, lead_ns) = kind.turn();
                let request = format!("turn {timing} {} {}", calls(lead_ns), calls(TURN_NS));
                turns[kind as usize] = self.ask(&request, Duration::ZERO)?;
            }
            rounds.push(turns);
            if told.elapsed() > NEWS {
                println!("{rounds}");
                told = Instant::now();
            }
        }
        let after: [f64; 3] = self.ask("count", Duration::ZERO)?;
        rounds.calls = rounds.len() as f64 * (calls(BUDGET_LEAD_NS) + calls(TURN_NS));
        rounds.counted = std::array::from_fn(|i| after[i] - before[i]);
        Ok(rounds)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What turns took.
#[derive(Default)]
pub struct Rounds {
    /// Nanoseconds of a call, by kind.
    ns: [Vec<f64>; 3],
    /// By how many nanoseconds the GPU was behind at the end of each turn.
    lags_ns: Vec<f64>,
    /// Calls with the budget.
    calls: f64,
    /// Those of them that were timed, and the nanoseconds of the host and of the device that it was told
    /// that this took.
    counted: [f64; 3],
}

impl Rounds {
    fn push(&mut self, turns: [[f64; 2]; 3]) {
        for ([ns, lag_ns], all) in turns.into_iter().zip(&mut self.ns) {
            all.push(ns);
            self.lags_ns.push(lag_ns);
        }
    }

    pub fn append(&mut self, mut other: Rounds) {
        for (all, own) in self.ns.iter_mut().zip(&mut other.ns) {
            all.append(own);
        }
        self.lags_ns.append(&mut other.lags_ns);
        self.calls += other.calls;
        self.counted = std::array::from_fn(|i| self.counted[i] + other.counted[i]);
    }

    pub fn len(&self) -> usize {
        self.of(Kind::Off).len()
    }

    pub fn of(&self, kind: Kind) -> &[f64] {
        &self.ns[kind as usize]
    }

    /// What turns of this kind lost against those of the same round with timing off.
    pub fn loss(&self, kind: Kind) -> Loss {
        Loss::of(self.of(kind), self.of(Kind::Off))
    }

    /// What the budget knew of a timed call, if there were any: one in how many it was, and the nanoseconds
    /// of the host and of the device that were counted for each, with those of the calls passed over.
    pub fn known(&self) -> Option<[f64; 3]> {
        let [timed, host_ns, device_ns] = self.counted;
        (timed > 0.0).then(|| [self.calls, host_ns, device_ns].map(|all| all / timed))
    }

    /// How far the GPU was behind: where that is nothing, the host sets the pace.
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
