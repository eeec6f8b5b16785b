//! `scenario NAME [ARGUMENT…]` runs one small program with annotated functions, as a user would
//! write it, in one of the situations that gpu-time must survive. At its end it prints its own book
//! as a line of JSON, which a test compares with the report.
#![allow(unsafe_code)] // launches, forks and driver calls beside cudarc's

mod absent;
mod barriers;
mod capture;
mod cold;
mod course;
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
mod hold;
mod options;
mod random;
mod rates;
mod raw_graph;
mod sampling;
mod scopes;
mod settle;
mod signals;
mod soak;
mod streams;
mod tally;
mod threads;
mod time;
mod trace;
mod warmup;

use std::process::ExitCode;

/// A program and its name. Its arguments are whatever follows the name on the command line.
type Scenario = (&'static str, fn(&[String]));

const THEMES: &[&[Scenario]] = &[
    absent::SCENARIOS,
    barriers::SCENARIOS,
    capture::SCENARIOS,
    cold::SCENARIOS,
    course::SCENARIOS,
    devices::SCENARIOS,
    exact::SCENARIOS,
    exit::SCENARIOS,
    export::SCENARIOS,
    faults::SCENARIOS,
    fed::SCENARIOS,
    graph::SCENARIOS,
    health::SCENARIOS,
    hold::SCENARIOS,
    options::SCENARIOS,
    random::SCENARIOS,
    rates::SCENARIOS,
    sampling::SCENARIOS,
    scopes::SCENARIOS,
    settle::SCENARIOS,
    signals::SCENARIOS,
    soak::SCENARIOS,
    streams::SCENARIOS,
    threads::SCENARIOS,
    trace::SCENARIOS,
    warmup::SCENARIOS,
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let scenarios = || THEMES.iter().copied().flatten();
    let Some((name, rest)) = arguments.split_first() else {
        scenarios().for_each(|(name, _)| println!("{name}"));
        return ExitCode::from(2);
    };
    let Some((_, run)) = scenarios().find(|(known, _)| known == name) else {
        eprintln!("there is no scenario `{name}`; without arguments all are listed");
        return ExitCode::from(2);
    };
    // Whoever started the tests may ignore these, as `nohup` does, and what is ignored is inherited.
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM, libc::SIGUSR1] {
        // SAFETY: the default is a disposition of all of them.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    run(rest);
    ExitCode::SUCCESS
}
