//! Measurements of the same kernels with other tools, run through Python if installed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use gpu_time_kernels::workloads;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::case::{CASES, Case, Pace};
use crate::child;
use crate::failure::{Failure, Omission};
use crate::figure::Figure;
use crate::work::Kind;

const SCRIPT: &str = include_str!("../rivals.py");
const LIMIT: Duration = Duration::from_secs(60);

/// The result written by the script.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RivalReport {
    pub readings: Vec<RivalReading>,
    /// The tools that could not run; `case` is the tool's name.
    pub left_out: Vec<Omission>,
}

/// A tool's measurement for a case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RivalReading {
    pub tool: String,
    pub case: String,
    pub figure: Figure,
}

/// Runs all tools.
pub fn measure(folder: &Path) -> Result<RivalReport, Failure> {
    let cases: Vec<Value> = CASES.iter().filter_map(describe).collect();
    let script = folder.join("rivals.py");
    std::fs::write(&script, SCRIPT)?;
    std::fs::write(folder.join("workloads.ptx"), workloads::PTX)?;
    std::fs::write(folder.join("cases.json"), serde_json::to_string(&cases)?)?;
    let mut command = Command::new("python3");
    command.arg(script).arg(folder).args(wheels());
    child::run(&mut command, LIMIT)?;
    Ok(serde_json::from_str(&std::fs::read_to_string(folder.join("rivals.json"))?)?)
}

/// Returns the folder with a bundle's wheels, which `gpu/bundle.sh --rivals` creates.
fn wheels() -> Option<PathBuf> {
    let bundle = std::env::current_exe().ok()?.ancestors().nth(2)?.to_owned();
    Some(bundle.join("wheels")).filter(|wheels| wheels.is_dir())
}

/// Describes a case for the script. Returns `None` if the script cannot launch it.
fn describe(case: &Case) -> Option<Value> {
    if case.pace == Pace::Queued {
        return None;
    }
    let (name, cold) = (case.name, case.is_cold());
    match case.kind {
        Kind::Spin(ns) => {
            Some(json!({ "case": name, "cold": cold, "kernel": workloads::SPIN_NS, "ns": ns }))
        }
        Kind::Copy(n) => {
            Some(json!({ "case": name, "cold": cold, "kernel": workloads::COPY_F4, "bytes": n }))
        }
        _ => None,
    }
}
