//! Tests that measure the true slowdown of simulated programs with a 1 % budget.
//!
//! Each program runs twice, with and without timing, on a host and a GPU that work in parallel. The
//! figures were measured on an H200: see `benches/budget/results.md`.

use std::collections::VecDeque;

use crate::stats::budget::{BudgetAccount, Usage};

/// The interval between two adjustments.
const STEP_NS: f64 = 10e6;
/// The time until the first adjustment.
const FIRST_NS: f64 = 1e6;
/// The time given to the budget to settle, and the time over which the slowdown is then measured.
const SETTLING_S: f64 = 5.0;
const MEASURING_S: f64 = 2.0;
/// The number of commands that fit into a stream's queue. One more blocks the host.
const QUEUE: usize = 1_021;
/// The latency from the end of a launch call on the host to the kernel's start on an idle GPU, and
/// from the kernel's end back to a waiting host.
const LATENCY_NS: f64 = 1_500.0;
const LAUNCH_NS: f64 = 2_700.0;
const RECORD_NS: f64 = 850.0;
/// The extra time that a launch takes between two records, compared with one alone. It is not
/// counted.
const SLOWER_LAUNCH_NS: f64 = 1_500.0;
/// The host time of an untimed call.
const PASSED_NS: f64 = 2.0;
/// The time that one event takes on the GPU, and the time that the controller counts for a pair.
const EVENT_NS: f64 = 1_900.0;
const PAIR_NS: f64 = 4_200.0;
/// The number of samples that are read together.
const BATCH: usize = 32;
/// The minimum delay at which the GPU is certain to be behind.
const MARGIN_NS: f64 = 3_000.0;

/// One thread that calls one function in a loop, on its own stream.
#[derive(Clone, Copy, Debug)]
struct Loop {
    /// The kernel's time on the GPU.
    kernel_ns: f64,
    /// The program's host time between two calls.
    between_ns: f64,
    /// The program waits for the GPU after this many calls; 0 means never.
    sync_every: u64,
    /// The host time of a timed call before and after its launch, without the records.
    own_ns: [f64; 2],
    /// The GPU time of a flush before a timed call.
    flush_ns: f64,
}

const BASE: Loop = Loop {
    kernel_ns: 4_450.0,
    between_ns: 50.0,
    sync_every: 0,
    own_ns: [700.0, 900.0],
    flush_ns: 0.0,
};
const GPU_BOUND: Loop = BASE;
const HOST_BOUND: Loop = Loop { kernel_ns: 1_400.0, between_ns: 500.0, ..BASE };
/// The host time of a timed call whose key takes long to format.
const EXPENSIVE_NS: [f64; 2] = [50_000.0, 900.0];
const SYNCHRONOUS: Loop = Loop { sync_every: 1, ..BASE };

/// A running thread, with the current time of its host and of its GPU.
struct Thread {
    program: Loop,
    calls: u64,
    host_ns: f64,
    gpu_ns: f64,
    /// The times at which commands in the queue finish.
    queue: VecDeque<f64>,
    rate: f64,
    /// Timed calls that are due, including fractions of a call.
    due: f64,
    timed: u64,
    usage: Usage,
    /// Unread samples: `true` if the GPU was behind.
    samples: Vec<bool>,
}

impl Thread {
    fn new(program: Loop) -> Thread {
        Thread {
            program,
            calls: 0,
            host_ns: 0.0,
            gpu_ns: 0.0,
            queue: VecDeque::new(),
            rate: 0.0,
            due: 0.0,
            timed: 0,
            usage: Usage::default(),
            samples: Vec::new(),
        }
    }

    /// Enqueues a command and returns the time at which the GPU starts it.
    fn enqueue(&mut self, host_ns: f64, device_ns: f64) -> f64 {
        while self.queue.front().is_some_and(|finish| *finish <= self.host_ns) {
            self.queue.pop_front();
        }
        if self.queue.len() >= QUEUE {
            self.host_ns = self.queue.pop_front().unwrap();
        }
        self.host_ns += host_ns;
        let start_ns = self.gpu_ns.max(self.host_ns + LATENCY_NS);
        self.gpu_ns = start_ns + device_ns;
        self.queue.push_back(self.gpu_ns);
        start_ns
    }

    fn timed_call(&mut self) {
        let Loop { own_ns, flush_ns, kernel_ns, .. } = self.program;
        let mut began_ns = self.host_ns;
        self.host_ns += own_ns[0];
        if flush_ns > 0.0 {
            self.enqueue(0.0, flush_ns);
        }
        let start_ns = self.enqueue(RECORD_NS, EVENT_NS);
        let mut metered_ns = self.host_ns - began_ns;
        self.enqueue(LAUNCH_NS + SLOWER_LAUNCH_NS, kernel_ns);
        began_ns = self.host_ns;
        self.enqueue(RECORD_NS, EVENT_NS);
        let is_behind = start_ns > self.host_ns + MARGIN_NS;
        self.host_ns += own_ns[1];
        metered_ns += self.host_ns - began_ns;
        self.usage.timed += 1.0;
        self.usage.pair_ns += PAIR_NS;
        self.usage.preparation_ns += flush_ns;
        if self.timed.is_multiple_of(8) {
            self.usage.metered += 1.0;
            self.usage.metered_ns += metered_ns.min(100_000.0);
        }
        self.timed += 1;
        if flush_ns == 0.0 {
            self.samples.push(is_behind);
        }
        if self.samples.len() >= BATCH {
            self.usage.paced += self.samples.len() as f64;
            self.usage.paced_by_gpu +=
                self.samples.drain(..).filter(|behind| *behind).count() as f64;
        }
    }

    fn call(&mut self, is_on: bool) {
        self.calls += 1;
        self.due += self.rate;
        self.usage.calls += 1.0;
        if is_on && self.due >= 1.0 {
            self.due -= 1.0;
            self.timed_call();
        } else {
            self.host_ns += if is_on { PASSED_NS } else { 0.0 };
            self.enqueue(LAUNCH_NS, self.program.kernel_ns);
        }
        self.host_ns += self.program.between_ns;
        if self.calls.checked_rem(self.program.sync_every) == Some(0) {
            self.synchronize();
        }
    }

    fn synchronize(&mut self) {
        self.host_ns = self.host_ns.max(self.gpu_ns + LATENCY_NS);
        self.queue.clear();
    }

    /// Returns the time taken by calls `begin` to `end` without timing.
    fn untimed_ns(program: Loop, begin: u64, end: u64) -> f64 {
        let mut thread = Thread::new(program);
        (0..begin).for_each(|_| thread.call(false));
        let begin_ns = thread.gpu_ns;
        (begin..end).for_each(|_| thread.call(false));
        thread.gpu_ns - begin_ns
    }
}

/// The threads of a program that share one budget.
struct Program {
    budget: BudgetAccount,
    threads: Vec<Thread>,
    /// The time of the last adjustment.
    now_ns: f64,
}

impl Program {
    fn new(loops: &[Loop]) -> Program {
        let mut budget = BudgetAccount::new(0.01);
        loops.iter().for_each(|_| budget.add(1.0));
        let threads = loops.iter().map(|program| Thread::new(*program));
        let threads = threads.map(|thread| Thread { rate: 1.0, ..thread }).collect();
        Program { budget, threads, now_ns: 0.0 }
    }

    fn adjust(&mut self, now_ns: f64) {
        let elapsed_ns = now_ns - self.now_ns;
        self.now_ns = now_ns;
        let usages = self.threads.iter_mut().map(|thread| std::mem::take(&mut thread.usage));
        let usages: Vec<Usage> = usages.collect();
        let rates: Vec<f64> = self.budget.adjust(elapsed_ns, usages.into_iter(), 0.0).collect();
        self.threads.iter_mut().zip(rates).for_each(|(thread, rate)| thread.rate = rate);
    }

    /// Runs the threads in parallel for `seconds` of simulated time.
    fn run(&mut self, seconds: f64) {
        let end_ns = self.now_ns + seconds * 1e9;
        while self.now_ns < end_ns {
            let until_ns = self.now_ns + if self.now_ns == 0.0 { FIRST_NS } else { STEP_NS };
            for thread in &mut self.threads {
                while thread.host_ns < until_ns {
                    thread.call(true);
                }
            }
            self.adjust(until_ns);
        }
    }

    /// Runs the threads in turns. A turn ends when the thread waits for the GPU.
    fn run_in_turns(&mut self, seconds: f64) {
        let end_ns = self.now_ns + seconds * 1e9;
        let mut now_ns = self.now_ns;
        while self.now_ns < end_ns {
            for thread in &mut self.threads {
                let begin_ns = thread.host_ns;
                (0..thread.program.sync_every).for_each(|_| thread.call(true));
                now_ns += thread.host_ns - begin_ns;
            }
            if now_ns > self.now_ns + STEP_NS {
                self.adjust(now_ns);
            }
        }
    }

    /// Returns each thread's number of calls, and the time at which the GPU has finished them.
    fn progress(&self) -> Vec<(u64, f64)> {
        self.threads.iter().map(|thread| (thread.calls, thread.gpu_ns)).collect()
    }

    /// Returns the time taken by each thread since `begin`, with timing and without.
    fn times_since(&self, begin: &[(u64, f64)]) -> Vec<[f64; 2]> {
        let time = |(thread, (calls, ns)): (&Thread, &(u64, f64))| {
            let untimed_ns = Thread::untimed_ns(thread.program, *calls, thread.calls);
            [thread.gpu_ns - ns, untimed_ns]
        };
        self.threads.iter().zip(begin).map(time).collect()
    }
}

/// Returns the slowdown of each thread, with all threads running in parallel and a settled budget.
fn slowdowns(loops: &[Loop]) -> Vec<f64> {
    let mut program = Program::new(loops);
    program.run(SETTLING_S);
    let begin = program.progress();
    program.run(MEASURING_S);
    program.times_since(&begin).iter().map(|[timed, untimed]| timed / untimed - 1.0).collect()
}

fn slowdown(program: Loop) -> f64 {
    slowdowns(&[program])[0]
}

/// Returns the slowdown of a program whose threads take turns.
fn slowdown_in_turns(loops: &[Loop]) -> f64 {
    let mut program = Program::new(loops);
    program.run_in_turns(SETTLING_S);
    let begin = program.progress();
    program.run_in_turns(MEASURING_S);
    let times = program.times_since(&begin);
    let [timed, untimed] = [0, 1].map(|i| times.iter().map(|ns| ns[i]).sum::<f64>());
    timed / untimed - 1.0
}

/// Asserts that timing slows each program down by 0.6 to 1.0 %.
#[track_caller]
fn assert_spent(slowdowns: impl IntoIterator<Item = (&'static str, f64)>) {
    let (wrong, _): (Vec<_>, Vec<_>) = slowdowns
        .into_iter()
        .map(|(name, slowdown)| (name, 100.0 * slowdown))
        .partition(|(_, percent)| !(0.6..=1.0).contains(percent));
    assert!(wrong.is_empty(), "slowdowns in %: {wrong:?}");
}

#[test]
fn gpu_bound_loop_spends_the_budget() {
    assert_spent([
        ("endless", slowdown(GPU_BOUND)),
        // Each record waits for space in the queue for as long as a kernel takes.
        ("long kernels", slowdown(Loop { kernel_ns: 100_000.0, ..GPU_BOUND })),
        ("synchronizes rarely", slowdown(Loop { sync_every: 100, ..GPU_BOUND })),
        ("synchronizes often", slowdown(Loop { sync_every: 5, ..GPU_BOUND })),
        ("as fast as the host", slowdown(Loop { between_ns: 1_740.0, ..GPU_BOUND })),
        ("expensive key", slowdown(Loop { own_ns: EXPENSIVE_NS, ..GPU_BOUND })),
    ]);
}

#[test]
fn host_bound_loop_spends_the_budget() {
    assert_spent([
        ("endless", slowdown(HOST_BOUND)),
        ("synchronizes rarely", slowdown(Loop { sync_every: 100, ..HOST_BOUND })),
        ("as fast as the GPU", slowdown(Loop { between_ns: 1_760.0, ..GPU_BOUND })),
        ("expensive key", slowdown(Loop { own_ns: EXPENSIVE_NS, ..HOST_BOUND })),
    ]);
}

#[test]
fn synchronous_loop_spends_the_budget() {
    assert_spent([
        ("short kernels", slowdown(Loop { kernel_ns: 1_400.0, ..SYNCHRONOUS })),
        ("kernels", slowdown(SYNCHRONOUS)),
        ("long kernels", slowdown(Loop { kernel_ns: 20_000.0, ..SYNCHRONOUS })),
        ("two launches", slowdown(Loop { sync_every: 2, ..SYNCHRONOUS })),
        ("expensive key", slowdown(Loop { own_ns: EXPENSIVE_NS, ..SYNCHRONOUS })),
        ("flush", slowdown(Loop { flush_ns: 50_000.0, ..SYNCHRONOUS })),
        (
            "expensive key and flush",
            slowdown(Loop { own_ns: EXPENSIVE_NS, flush_ns: 50_000.0, ..SYNCHRONOUS }),
        ),
    ]);
}

#[test]
fn threads_in_turns_spend_the_budget_together() {
    let long_turns = |program| Loop { sync_every: 200, ..program };
    let loops = [long_turns(GPU_BOUND), long_turns(HOST_BOUND), SYNCHRONOUS];
    assert_spent([("turns", slowdown_in_turns(&loops))]);
}

/// Costs are summed over all threads, so each of three threads spends only a part of the budget.
#[test]
fn threads_side_by_side_share_the_budget() {
    let slowdowns = slowdowns(&[GPU_BOUND, HOST_BOUND, SYNCHRONOUS]);
    assert_spent([("sum", slowdowns.iter().sum::<f64>())]);
    assert!(slowdowns.iter().all(|slowdown| *slowdown > 0.0015), "{slowdowns:?}");
}

/// A program that changes its pace stays close to the budget, although the controller must learn anew.
#[test]
fn change_of_pace_does_not_exceed_the_budget() {
    let mut program = Program::new(&[GPU_BOUND]);
    program.run(2.0);
    for next in [HOST_BOUND, GPU_BOUND, SYNCHRONOUS, HOST_BOUND, SYNCHRONOUS] {
        program.threads[0].synchronize();
        program.threads[0].program = next;
        let begin = program.progress();
        program.run(2.0);
        let [timed, untimed] = program.times_since(&begin)[0];
        let percent = 100.0 * (timed / untimed - 1.0);
        assert!((0.4..=1.2).contains(&percent), "{percent} % of {next:?}");
    }
}
