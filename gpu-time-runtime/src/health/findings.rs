//! Evaluates two readings of a device: adds its state to the report, and warnings about conditions
//! that make times unreliable.

use std::collections::BTreeMap;

use crate::health::reading::{REASONS, Reading};
use gpu_time_report::{self as report, units};

/// The fraction by which two clocks must differ to count as different.
const MOVED: f64 = 0.02;
/// The maximum number of processes named in a warning.
const NAMED: usize = 3;

/// Adds a device's state to the report, and a warning for each problem. `locked_mhz` is the clock
/// that `lock_clocks` has set.
pub(super) fn describe(
    to: &mut report::Device,
    start: &Reading,
    end: &Reading,
    locked_mhz: Option<u32>,
) {
    let throttle = throttle(start, end);
    to.warnings.extend(throttle_warnings(&throttle, start, end));
    to.warnings.extend(clock_warnings(start, end, locked_mhz));
    to.warnings.extend(sharing_warnings(start, end));
    to.clocks = Some(start.clocks_until([end.sm_mhz, end.mem_mhz]));
    to.throttle = Some(throttle);
    to.temperature_c = end.temperature_c;
    to.power_w = end.power_w;
    to.persistence = end.persistence;
    to.mig = end.mig;
    to.mps = either(start.mps, end.mps);
    to.other_processes = more_processes(start, end).map(|others| others.len() as u32);
}

fn either(start: Option<bool>, end: Option<bool>) -> Option<bool> {
    Some(start? || end?)
}

/// Returns the other processes from the reading that lists more of them.
fn more_processes<'a>(start: &'a Reading, end: &'a Reading) -> Option<&'a [String]> {
    let readings = [&end.others, &start.others].into_iter().flatten();
    readings.map(Vec::as_slice).rev().max_by_key(|others| others.len())
}

/// Returns how long each reason was active between the readings, in nanoseconds. A reason that the
/// driver does not count is included if it was active at either reading.
fn throttle(start: &Reading, end: &Reading) -> BTreeMap<String, Option<u64>> {
    // A counter cannot advance by more than the elapsed time, plus a margin because it is updated
    // at intervals. A counter that did must be counting something else.
    let limit_ns = end.at.duration_since(start.at).as_nanos() as f64 * 1.1 + 1e9;
    let readings = start.throttle.iter().zip(&end.throttle).zip(&REASONS);
    readings
        .filter_map(|((&(at_start, before), &(at_end, after)), reason)| {
            let active = before.zip(after).and_then(|(before, after)| after.checked_sub(before));
            let active = active.filter(|&ns| ns as f64 <= limit_ns);
            (active.is_some() || at_start || at_end).then_some((reason.name.to_owned(), active))
        })
        .collect()
}

/// Returns a warning for each throttle reason that makes times unreliable.
fn throttle_warnings(
    throttle: &BTreeMap<String, Option<u64>>,
    start: &Reading,
    end: &Reading,
) -> Vec<String> {
    let ran = units::time(end.at.duration_since(start.at).as_nanos() as f64);
    let warn = |(name, &active): (&String, &Option<u64>)| {
        let advice = REASONS.iter().find(|reason| reason.name == *name)?.advice?;
        match active {
            Some(0) => None,
            Some(ns) => {
                let active = units::time(ns as f64);
                Some(format!("throttled by {name} for {active} of {ran}: {advice}"))
            }
            None => Some(format!(
                "throttled by {name}, for a duration that the driver does not report: {advice}"
            )),
        }
    };
    throttle.iter().filter_map(warn).collect()
}

/// Returns warnings about the clocks. An idle GPU's clocks say nothing about its clocks under load.
fn clock_warnings(start: &Reading, end: &Reading, locked_mhz: Option<u32>) -> Vec<String> {
    let differ = |a: u32, b: u32| f64::from(a.abs_diff(b)) > MOVED * f64::from(a.max(b));
    let mut warnings = Vec::new();
    let at_work = start.is_at_work && end.is_at_work;
    match (locked_mhz, start.sm_mhz, end.sm_mhz) {
        (Some(locked), _, Some(end)) if differ(locked, end) => warnings.push(format!(
            "its SM clock is locked at {locked} MHz and reads {end} MHz: lock a clock that it can \
             sustain"
        )),
        (None, Some(start), Some(end)) if at_work && differ(start, end) => warnings.push(format!(
            "its SM clock went from {start} to {end} MHz during the run: fix it with `lock_clocks`"
        )),
        _ => {}
    }
    if let (Some(start), Some(end)) = (start.mem_mhz, end.mem_mhz)
        && at_work
        && differ(start, end)
    {
        warnings.push(format!(
            "its memory clock went from {start} to {end} MHz during the run: warm up for longer"
        ));
    }
    warnings
}

/// Returns warnings about other processes and the device's modes.
fn sharing_warnings(start: &Reading, end: &Reading) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(others @ [_, ..]) = more_processes(start, end) {
        let named: Vec<&str> = others.iter().take(NAMED).map(String::as_str).collect();
        let rest = if others.len() > NAMED { ", …" } else { "" };
        let processes = if others.len() == 1 { "process" } else { "processes" };
        warnings.push(format!(
            "shared with {} other {processes} ({}{rest}): end them, or choose another GPU with \
             `CUDA_VISIBLE_DEVICES`",
            others.len(),
            named.join(", "),
        ));
    }
    let modes = [
        (
            either(start.mps, end.mps) == Some(true),
            "MPS is on, so other processes may run at the same time: stop it with \
             `echo quit | nvidia-cuda-mps-control`",
        ),
        (
            end.mig == Some(true),
            "MIG is on: clocks, power and throttling are those of the whole GPU, which other instances \
             share; measure while they are idle",
        ),
        (
            end.persistence == Some(false) && start.is_idle,
            "persistence mode is off and it was idle at first, so the first times include its wake-up: \
             warm up, or run `nvidia-smi -pm 1` as root",
        ),
    ];
    warnings.extend(modes.iter().filter(|(is_so, _)| *is_so).map(|(_, text)| (*text).to_owned()));
    warnings
}
