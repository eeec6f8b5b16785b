//! How far the medians of gpu-time are from the truth, as CUPTI and Nsight Compute say it.
//!
//! One program in several roles, each a process of its own, because a profiler disturbs what it
//! watches: the one that compares starts the others in turn, several rounds of them.
//!
//! | role | does |
//! |---|---|
//! | `ours CALLS`, `ours CALLS tracked` | times every case, without and with cudarc's event tracking |
//! | `truth CALLS METHOD FLUSH_BYTES` | makes the same calls and reads CUPTI's records of them |
//! | `plain` | makes the cold ones, for ncu to watch |
//! | none of these | compares, and judges |

#![allow(unsafe_code)] // launches, and CUPTI

mod bound;
mod case;
mod child;
mod compare;
mod cupti;
mod figure;
mod flush;
mod flush_methods;
mod gpu;
mod host_cost;
mod kernel_base;
mod ncu;
mod ours;
mod rivals;
mod table;
mod truth;
mod work;

pub use flush_methods::flush_methods;
pub use kernel_base::kernel_base;

use std::error::Error;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

type Failure = Box<dyn Error>;

/// A case that this machine has no means for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LeftOut {
    case: String,
    why: String,
}

/// Plays the role that the command line names, or compares: `cargo bench` passes flags of its own.
pub fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match *arguments.as_slice() {
        ["ours", calls] => count(calls).and_then(|calls| print(&ours::run(calls, false)?)),
        ["ours", calls, "tracked"] => {
            count(calls).and_then(|calls| print(&ours::run(calls, true)?))
        }
        ["truth", calls, method, flush_bytes] => count(calls).and_then(|calls| {
            print(&truth::run(calls, method.parse()?, flush_bytes.parse::<u64>()?)?)
        }),
        ["plain"] => ncu::plain().map(|()| ExitCode::SUCCESS),
        _ => compare::run(),
    };
    done.unwrap_or_else(|why| {
        eprintln!("{}: {why}", arguments.join(" "));
        ExitCode::FAILURE
    })
}

fn count(calls: &str) -> Result<u32, Failure> {
    calls.parse().map_err(|_| format!("`{calls}` is no number of calls").into())
}

fn print(value: &impl Serialize) -> Result<ExitCode, Failure> {
    println!("{}", serde_json::to_string(value)?);
    Ok(ExitCode::SUCCESS)
}
