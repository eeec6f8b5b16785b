//! The `compare` command: compares the medians of two reports.

pub mod change;
pub mod comparison;
pub mod devices;
pub mod kernels;
pub mod options;
pub mod render;
mod runs;
pub mod thresholds;

#[cfg(test)]
pub mod calibration_tests;

use std::path::Path;
use std::process::ExitCode;

use crate::message::{self, Failure};
use crate::{input, output};
use comparison::Comparison;
use options::{FailOn, Judging};
use render::ComparisonFormat;
pub use thresholds::Share;

/// The exit code if a series is slower or a condition of `--fail-on` holds.
const FAILED: u8 = 1;

/// Compares two files, prints the result and returns the exit code.
pub fn files(
    base: &Path,
    new: &Path,
    judging: &Judging,
    between_runs: Share,
    format: ComparisonFormat,
) -> Result<ExitCode, Failure> {
    let (base, new) = (runs::joined(&input::report(base)?), runs::joined(&input::report(new)?));
    judging.report_unused(&base, &new);
    let mut comparison = Comparison::of(&base, &new, judging, |_, pair, threshold| {
        pair.change(threshold, between_runs)
    });
    if comparison.rows.is_empty() {
        return Err("cannot compare: the reports have no series in common".to_owned());
    }
    let views = [kernels::view(&base, &new), kernels::view(&new, &base)];
    let kernels = kernels::compared(views.each_ref(), judging, |_, pair, threshold| {
        pair.change(threshold, between_runs)
    });
    comparison.kernels = Some(Box::new(kernels));
    comparison.note_runs(between_runs);
    if [&base, &new].into_iter().any(runs::have_several_processes) {
        let note = "processes of one host that ran at the same time count as one run";
        comparison.notes.push(note.to_owned());
    }
    output::write(None, &render::text(&comparison, None, format))?;
    Ok(exit_code(&comparison, &judging.fail_on))
}

/// Reports the series that were not compared, and returns the exit code.
pub fn exit_code(comparison: &Comparison, fail_on: &[FailOn]) -> ExitCode {
    if let missing @ 1.. = comparison.missing.len() {
        // Print it, because the exit code does not show that these series were not compared.
        message::print(&format!("{missing} series only in the base: not compared"));
    }
    let [slower, _, _, unknown] = comparison.counts();
    let fails = slower > 0
        || fail_on.contains(&FailOn::Unknown) && unknown > 0
        || fail_on.contains(&FailOn::Missing) && !comparison.missing.is_empty();
    if fails { ExitCode::from(FAILED) } else { ExitCode::SUCCESS }
}
