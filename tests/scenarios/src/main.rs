//! `scenario NAME [ARGUMENT…]` runs one small program with annotated functions, written as a user
//! would write it, in a situation that gpu-time must handle. At the end, the program prints its
//! tally as a line of JSON, which a test compares with the report.
#![allow(unsafe_code)] // launches, forks and driver calls that cudarc does not wrap

mod absent;
mod allocator;
mod barriers;
mod capture;
mod child;
mod cold;
mod cupti;
mod devices;
mod exact;
mod exit;
mod export;
mod faults;
mod fed;
mod gpu;
mod graph;
mod handler;
mod health;
mod helpers;
mod hold;
mod host_time;
mod kernels;
mod later;
mod mixed;
mod nvtx;
mod opened;
mod opened_graphs;
mod options;
mod pacing;
mod process;
mod random;
mod rates;
mod raw_graph;
mod reentry;
mod sampling;
mod scenario;
mod scopes;
mod settle;
mod signals;
mod soak;
mod spans;
mod stack;
mod streams;
mod surcharge;
mod tally;
mod threads;
mod time;
mod trace;
mod tree;
mod warmup;
mod windows;
mod worker;

use std::process::ExitCode;

use scenario::Scenario;

const THEMES: &[&[Scenario]] = &[
    absent::SCENARIOS,
    barriers::SCENARIOS,
    capture::SCENARIOS,
    cold::SCENARIOS,
    cupti::SCENARIOS,
    devices::SCENARIOS,
    exact::SCENARIOS,
    exit::SCENARIOS,
    export::SCENARIOS,
    faults::SCENARIOS,
    fed::SCENARIOS,
    graph::SCENARIOS,
    health::SCENARIOS,
    helpers::SCENARIOS,
    hold::SCENARIOS,
    host_time::SCENARIOS,
    kernels::SCENARIOS,
    mixed::SCENARIOS,
    nvtx::SCENARIOS,
    opened::SCENARIOS,
    opened_graphs::SCENARIOS,
    options::SCENARIOS,
    pacing::SCENARIOS,
    process::SCENARIOS,
    random::SCENARIOS,
    rates::SCENARIOS,
    reentry::SCENARIOS,
    sampling::SCENARIOS,
    scopes::SCENARIOS,
    settle::SCENARIOS,
    signals::SCENARIOS,
    soak::SCENARIOS,
    spans::SCENARIOS,
    stack::SCENARIOS,
    streams::SCENARIOS,
    surcharge::SCENARIOS,
    threads::SCENARIOS,
    trace::SCENARIOS,
    tree::SCENARIOS,
    warmup::SCENARIOS,
    windows::SCENARIOS,
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let scenarios = || THEMES.iter().copied().flatten();
    let Some((name, rest)) = arguments.split_first() else {
        scenarios().for_each(|(name, _)| println!("{name}"));
        return ExitCode::from(2);
    };
    let Some((_, run)) = scenarios().find(|(known, _)| known == name) else {
        eprintln!("unknown scenario `{name}`: run without arguments to list all scenarios");
        return ExitCode::from(2);
    };
    // The test's parent process may ignore these signals, as `nohup` does, and children inherit
    // this.
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2] {
        // SAFETY: the default disposition is valid for each of these signals, and so is the one that was replaced.
        unsafe {
            let before = libc::signal(signal, libc::SIG_DFL);
            if before != libc::SIG_IGN {
                libc::signal(signal, before);
            }
        }
    }
    run(rest);
    ExitCode::SUCCESS
}
