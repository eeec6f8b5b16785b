//! From two readings to what the report says, and what makes its figures doubtful.

use std::collections::BTreeMap;

use crate::health::reading::{REASONS, Reading};
use gpu_time_report::{self as report, Clocks, units};

/// Clocks that differ by more are not the same.
const MOVED: f64 = 0.02;
/// So many processes are named.
const NAMED: usize = 3;

/// Writes what is known of a device, and a warning for each finding. `asked_mhz` is the clock that it
/// is locked at by `lock_clocks`.
pub(super) fn describe(
    to: &mut report::Device,
    start: &Reading,
    end: &Reading,
    asked_mhz: Option<u32>,
) {
    let throttle = throttle(start, end);
    to.warnings.extend(throttled(&throttle, start, end));
    to.warnings.extend(moved(start, end, asked_mhz));
    to.warnings.extend(surroundings(start, end));
    to.clocks = Some(Clocks {
        sm_start_mhz: start.sm_mhz,
        sm_end_mhz: end.sm_mhz,
        sm_max_mhz: end.sm_max_mhz,
        mem_start_mhz: start.mem_mhz,
        mem_end_mhz: end.mem_mhz,
        mem_max_mhz: end.mem_max_mhz,
    });
    to.throttle = Some(throttle);
    to.temperature_c = end.temperature_c;
    to.power_w = end.power_w;
    to.persistence = end.persistence;
    to.mig = end.mig;
    to.mps = either(start.mps, end.mps);
    to.other_processes = more(start, end).map(|others| others.len() as u32);
}

fn either(start: Option<bool>, end: Option<bool>) -> Option<bool> {
    Some(start? || end?)
}

/// The look that saw more processes.
fn more<'a>(start: &'a Reading, end: &'a Reading) -> Option<&'a [String]> {
    let looks = [&end.others, &start.others].into_iter().flatten();
    looks.map(Vec::as_slice).rev().max_by_key(|others| others.len())
}

/// How long each reason held between the looks, in nanoseconds. A reason that the driver does not
/// count is there if a look saw it.
fn throttle(start: &Reading, end: &Reading) -> BTreeMap<String, Option<u64>> {
    // A counter cannot have moved by more than the time that went by, with room for how often it is
    // brought up to date. One that did is not the counter that it was taken for.
    let limit_ns = end.at.duration_since(start.at).as_nanos() as f64 * 1.1 + 1e9;
    let looks = start.throttle.iter().zip(&end.throttle).zip(&REASONS);
    looks
        .filter_map(|((&(at_start, before), &(at_end, after)), reason)| {
            let held = before.zip(after).and_then(|(before, after)| after.checked_sub(before));
            let held = held.filter(|&ns| ns as f64 <= limit_ns);
            (held.is_some() || at_start || at_end).then_some((reason.name.to_owned(), held))
        })
        .collect()
}

fn throttled(
    throttle: &BTreeMap<String, Option<u64>>,
    start: &Reading,
    end: &Reading,
) -> Vec<String> {
    let ran = units::time(end.at.duration_since(start.at).as_nanos() as f64);
    let warn = |(name, &held): (&String, &Option<u64>)| {
        let advice = REASONS.iter().find(|reason| reason.name == *name)?.advice?;
        match held {
            Some(0) => None,
            Some(ns) => {
                let held = units::time(ns as f64);
                Some(format!("throttled by {name} for {held} of {ran}: {advice}"))
            }
            None => Some(format!(
                "throttled by {name} when looked at, for how long is not counted: {advice}"
            )),
        }
    };
    throttle.iter().filter_map(warn).collect()
}

/// What is wrong with the clocks. Those of an idle GPU say nothing of its clocks at work.
fn moved(start: &Reading, end: &Reading, asked_mhz: Option<u32>) -> Vec<String> {
    let differ = |a: u32, b: u32| f64::from(a.abs_diff(b)) > MOVED * f64::from(a.max(b));
    let mut warnings = Vec::new();
    let at_work = start.is_at_work && end.is_at_work;
    match (asked_mhz, start.sm_mhz, end.sm_mhz) {
        (Some(asked), _, Some(end)) if differ(asked, end) => warnings.push(format!(
            "its SM clock is locked at {asked} MHz and reads {end} MHz: lock one that it can hold"
        )),
        (None, Some(start), Some(end)) if at_work && differ(start, end) => warnings.push(format!(
            "its SM clock went from {start} to {end} MHz during the run: fix it by `lock_clocks`"
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

/// Who else is there, and what modes the device is in.
fn surroundings(start: &Reading, end: &Reading) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(others @ [_, ..]) = more(start, end) {
        let named: Vec<&str> = others.iter().take(NAMED).map(String::as_str).collect();
        let rest = if others.len() > NAMED { ", …" } else { "" };
        let processes = if others.len() == 1 { "process" } else { "processes" };
        warnings.push(format!(
            "shared with {} other {processes} ({}{rest}): end them, or choose another GPU by \
             `CUDA_VISIBLE_DEVICES`",
            others.len(),
            named.join(", "),
        ));
    }
    if either(start.mps, end.mps) == Some(true) {
        warnings.push(
            "MPS is on, so other processes run at the same time: stop it by \
             `echo quit | nvidia-cuda-mps-control`"
                .to_owned(),
        );
    }
    if end.mig == Some(true) {
        warnings.push(
            "MIG is on: clocks, power and throttling are of the whole GPU, which other instances \
             share; measure while they are idle"
                .to_owned(),
        );
    }
    if end.persistence == Some(false) && start.is_idle {
        warnings.push(
            "persistence mode is off and it was idle at first, so the first times hold its waking up: \
             warm up, or run `nvidia-smi -pm 1` as root"
                .to_owned(),
        );
    }
    warnings
}
