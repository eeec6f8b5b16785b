//! What other tools say of the same kernels, through Python where they are installed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use gpu_time_kernels::workloads;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::case::{CASES, Case, Pace};
use crate::child;
use crate::figure::Figure;
use crate::work::Kind;
use crate::{Failure, LeftOut};

const SCRIPT: &str = include_str!("../rivals.py");
const LIMIT: Duration = Duration::from_secs(60);

/// What the script writes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rivals {
    pub readings: Vec<Reading>,
    /// Tools instead of cases.
    pub left_out: Vec<LeftOut>,
}

/// What a tool says of a case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reading {
    pub tool: String,
    pub case: String,
    pub figure: Figure,
}

/// Runs all of them.
pub fn measure(folder: &Path) -> Result<Rivals, Failure> {
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

/// The folder that `gpu/bundle.sh --rivals` leaves beside this program's own.
fn wheels() -> Option<PathBuf> {
    let bundle = std::env::current_exe().ok()?.ancestors().nth(2)?.to_owned();
    Some(bundle.join("wheels")).filter(|wheels| wheels.is_dir())
}

/// A case for the script; `None` for one that it does not know how to launch.
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
