//! Compares gpu-time's medians with those from CUPTI and Nsight Compute for the same kernels.
//!
//! The program has several roles, each in a separate process because a profiler disturbs what it
//! observes. The comparing process starts the others in turn, for several rounds.
//!
//! | role | does |
//! |---|---|
//! | `ours CALLS`, `ours CALLS tracked` | times every case, without and with cudarc's event tracking |
//! | `truth CALLS METHOD FLUSH_BYTES` | makes the same calls and reads CUPTI's records of them |
//! | `plain` | makes the cold calls under ncu |
//! | `hazards` | says which calls of CUPTI and the driver hang or crash, each set in a process `hazards NAME` |
//! | `leftover` | says how long a launch takes before and after CUPTI records, in processes `leftover once` |
//! | `kernel-base` | says how long an empty kernel takes by CUPTI |
//! | `flush-methods` | says how long each way to flush the L2 takes, and what it leaves |
//! | `flush-methods plain` | makes the flushes under ncu |
//! | none of these | compares and judges |

#![allow(unsafe_code)] // launches, and CUPTI

mod bare;
mod bound;
mod case;
mod child;
mod compare;
mod cupti;
mod failure;
mod figure;
mod flush;
mod flush_methods;
mod gpu;
mod hazards;
mod host_cost;
mod kernel_base;
mod leftover;
mod ncu;
mod node;
mod ours;
mod rivals;
mod table;
mod truth;
mod work;

use std::process::ExitCode;

use serde::Serialize;

use failure::Failure;

/// Runs the role named on the command line. Without one, runs the comparison, because `cargo bench`
/// passes its own flags.
pub fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match *arguments.as_slice() {
        ["ours", calls] => parse_count(calls).and_then(|calls| print(&ours::run(calls, false)?)),
        ["ours", calls, "tracked"] => {
            parse_count(calls).and_then(|calls| print(&ours::run(calls, true)?))
        }
        ["truth", calls, method, flush_bytes] => parse_count(calls).and_then(|calls| {
            print(&truth::run(calls, method.parse()?, flush_bytes.parse::<u64>()?)?)
        }),
        ["hazards"] => hazards::compare(),
        ["hazards", name] => hazards::run(name),
        ["leftover"] => leftover::compare(),
        ["leftover", "once"] => leftover::once().and_then(|times| print(&times)),
        ["kernel-base"] => kernel_base::measure(),
        ["flush-methods"] => flush_methods::measure(),
        ["flush-methods", "plain"] => flush_methods::plain(),
        ["plain"] => ncu::plain().map(|()| ExitCode::SUCCESS),
        _ => compare::run(),
    };
    result.unwrap_or_else(|why| {
        eprintln!("{}: {why}", arguments.join(" "));
        ExitCode::FAILURE
    })
}

fn parse_count(calls: &str) -> Result<u32, Failure> {
    calls.parse().map_err(|_| format!("invalid number of calls `{calls}`").into())
}

fn print(value: &impl Serialize) -> Result<ExitCode, Failure> {
    println!("{}", serde_json::to_string(value)?);
    Ok(ExitCode::SUCCESS)
}
