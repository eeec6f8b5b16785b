//! The `ab` command: runs two programs in turn and compares them.

pub mod paired;
mod program;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use clap::ValueHint;
use gpu_time_report::judge::Verdict;
use gpu_time_report::{FEWEST_PAIRS, Look, Snapshot, units};

use crate::compare;
use crate::compare::comparison::{Comparison, counts};
use crate::compare::kernels;
use crate::compare::options::Judging;
use crate::compare::render::{self, ComparisonFormat};
use crate::merge::Merge;
use crate::message::{self, Failure, UNUSABLE};
use crate::{doctor, output};
use gpu_time_runtime::tools::Progress;
use paired::Paired;
use program::{Program, Stop};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The options of the command.
#[derive(clap::Args)]
pub struct Options {
    /// The program to compare with.
    #[arg(value_hint = ValueHint::ExecutablePath)]
    old: PathBuf,
    /// The program to judge.
    #[arg(value_hint = ValueHint::ExecutablePath)]
    new: PathBuf,
    /// The arguments of both programs.
    #[arg(last = true)]
    arguments: Vec<OsString>,
    /// The time to stop after, such as 90s, 5min or 1h. No block is started that would probably
    /// exceed it, and a run that is not over by then is ended.
    #[arg(long, value_name = "TIME", default_value = "5min", value_parser = duration)]
    max_time: Duration,
    /// The number of measured runs to stop after, over all programs. The first block has four, or
    /// six with a control, and is always run.
    #[arg(long, value_name = "RUNS")]
    max_runs: Option<u64>,
    /// The time after which a single run is ended, and the experiment with it.
    #[arg(long, value_name = "TIME", default_value = "5min", value_parser = duration)]
    timeout: Duration,
    /// Compares the old program with itself too, as a third program in each block. Any verdict
    /// there is false, and shows that the machine or the program is not fit for the comparison.
    #[arg(long)]
    control: bool,
    #[command(flatten)]
    judging: Judging,
    /// The output format.
    #[arg(long, value_enum, default_value_t = ComparisonFormat::Table)]
    format: ComparisonFormat,
}

/// A program's runs so far.
struct Arm<'a> {
    program: Program<'a>,
    merge: Merge,
}

/// The changes so far: of functions, of their kernels, and between the old program and itself.
type Changes = [Paired; 3];

/// The end of an experiment: its cause, and the progress until then.
struct End {
    why: Stop,
    runs: u64,
    blocks: u64,
    took: Duration,
}

/// Runs the experiment, prints the result and returns the exit code.
pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    for warning in doctor::warnings() {
        message::print(&format!("warning: {warning}"));
    }
    let interrupted = on_signals().map_err(|error| format!("cannot handle signals: {error}"))?;
    let paths = [&options.old, &options.new, &options.old];
    let Options { arguments, timeout, max_time, .. } = options;
    let end = Instant::now() + *max_time;
    let arm = |path| Arm {
        program: Program { path, arguments, timeout: *timeout, end },
        merge: Merge::default(),
    };
    let mut arms: Vec<Arm> =
        paths.into_iter().take(if options.control { 3 } else { 2 }).map(|path| arm(path)).collect();
    let mut paired = Changes::default();
    let end = experiment(options, &mut arms, &mut paired, &interrupted)?;
    report(options, arms, &paired, end)
}

/// Returns a flag that SIGHUP, SIGINT and SIGTERM set instead of ending this process, which would
/// leave the programs running.
fn on_signals() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}

/// Runs blocks until every series has a verdict, or something else stops the experiment.
fn experiment(
    options: &Options,
    arms: &mut [Arm],
    [functions, kernels, control]: &mut Changes,
    interrupted: &AtomicBool,
) -> Result<End, Failure> {
    let started = Instant::now();
    let mut progress = Progress::on_terminal(Duration::ZERO);
    let (mut runs, mut blocks) = (0, 0);
    let mut verdicts = Vec::new();
    let why = loop {
        progress.show(|| {
            let (elapsed, all) = (started.elapsed().as_secs_f64(), options.max_time.as_secs_f64());
            let [slower, faster, same, undecided] = counts(&verdicts);
            format!(
                "{runs} runs, {elapsed:.0} of {all:.0} s: {slower} slower, {faster} faster, {same} the same, \
                 {undecided} undecided"
            )
        });
        let block_began = Instant::now();
        let per_block = 2 * arms.len() as u64;
        if blocks == 0 {
            // The first run of a program fills the caches of files and of compiled kernels.
            let mut first_runs = arms.iter().take(2).map(|arm| arm.program.run(interrupted));
            if let Some(stop) = first_runs.find_map(Result::err) {
                break stop;
            }
            warn_of_time(started.elapsed() / 2, per_block, options.max_time);
        }
        let reports = match block(arms, interrupted) {
            Ok(reports) => reports,
            Err(stop) => break stop,
        };
        for (arm, reports) in arms.iter_mut().zip(&reports) {
            for report in reports {
                arm.merge.add(report)?;
            }
        }
        if let [old, new, rest @ ..] = &*reports {
            functions.add(old, new);
            let views = |of: &[Snapshot], others: &[Snapshot]| {
                of.iter()
                    .zip(others)
                    .map(|(of, other)| kernels::view(of, other))
                    .collect::<Vec<_>>()
            };
            kernels.add(&views(old, new), &views(new, old));
            rest.iter().for_each(|again| control.add(old, again));
        }
        runs += per_block;
        blocks += 1;
        verdicts = functions.verdicts(&options.judging, Look::Early);
        if !verdicts.is_empty() && !verdicts.contains(&Verdict::Unknown) {
            break Stop::Decided;
        }
        let is_late = started.elapsed() + block_began.elapsed() > options.max_time;
        if is_late || options.max_runs.is_some_and(|most| runs + per_block > most) {
            break Stop::Limit;
        }
    };
    Ok(End { why, runs, blocks, took: started.elapsed() })
}

/// Warns if the time is too short for four blocks, which an interval needs.
fn warn_of_time(per_run: Duration, per_block: u64, max_time: Duration) {
    let runs = FEWEST_PAIRS * per_block;
    let needed = per_run.as_secs_f64() * runs as f64;
    if needed > max_time.as_secs_f64() {
        message::print(&format!(
            "warning: an interval takes {runs} runs, which may take {needed:.0} s: see --max-time"
        ));
    }
}

/// Runs every program twice: in a random order, then in the reverse order, so that a drift and the
/// effect of one program on the next cancel. Returns the reports of each program.
fn block(arms: &[Arm], interrupted: &AtomicBool) -> Result<Vec<Vec<Snapshot>>, Stop> {
    let mut order: Vec<usize> = (0..arms.len()).collect();
    fastrand::shuffle(&mut order);
    let mut reports: Vec<Vec<Snapshot>> = arms.iter().map(|_| Vec::new()).collect();
    for &i in order.iter().chain(order.iter().rev()) {
        reports[i].push(arms[i].program.run(interrupted)?);
    }
    Ok(reports)
}

/// Prints the comparison at the end of the experiment and returns the exit code.
fn report(
    options: &Options,
    arms: Vec<Arm>,
    [functions, kernels, control]: &Changes,
    end: End,
) -> Result<ExitCode, Failure> {
    if end.blocks == 0 {
        return Err(match end.why {
            Stop::Failed(failure) => failure,
            Stop::Interrupted => {
                "interrupted before the first block of runs was complete".to_owned()
            }
            _ => format!(
                "the first block of runs was not complete within {} s: see --max-time",
                options.max_time.as_secs_f64()
            ),
        });
    }
    let merged = arms.into_iter().map(|arm| arm.merge.finish()).collect::<Vec<_>>();
    let [old, new, again @ ..] = &*merged else { return Err("nothing to compare".to_owned()) };
    options.judging.report_unused(old, new);
    // A limit on the time or on the runs does not depend on the ratios.
    let look = if matches!(end.why, Stop::Limit) { Look::Last } else { Look::Early };
    let compared = |paired: &Paired, new| {
        Comparison::of(old, new, &options.judging, |label, _, threshold| {
            paired.change(label, threshold, look)
        })
    };
    let mut comparison = compared(functions, new);
    if comparison.rows.is_empty() {
        return Err("cannot compare: the programs have no series in common".to_owned());
    }
    let views = [kernels::view(old, new), kernels::view(new, old)];
    let of_kernels =
        kernels::compared(views.each_ref(), &options.judging, |label, _, threshold| {
            kernels.change(label, threshold, look)
        });
    comparison.kernels = Some(Box::new(of_kernels));
    let why = match &end.why {
        Stop::Decided => "every series has a verdict",
        Stop::Limit if options.max_runs.is_some() => "the time or the runs are used up",
        Stop::Limit => "the time is used up",
        Stop::Interrupted => "interrupted",
        Stop::Failed(_) => "a run failed",
    };
    comparison.notes.push(format!(
        "{} runs in {} {}, {:.0} s: {why}; the intervals hold whenever the experiment stops",
        end.runs,
        end.blocks,
        if end.blocks == 1 { "block" } else { "blocks" },
        end.took.as_secs_f64()
    ));
    let control = again.first().map(|again| compared(control, again));
    output::write(None, &render::text(&comparison, control.as_ref(), options.format))?;
    if let Some(control) = &control
        && control.has_changes()
    {
        message::print(
            "the old program differs from itself: something other than the programs changes the times, so \
             do not trust this comparison",
        );
    }
    let code = compare::exit_code(&comparison, &options.judging.fail_on);
    match end.why {
        Stop::Failed(failure) => {
            message::print(&failure);
            Ok(ExitCode::from(UNUSABLE))
        }
        _ => Ok(code),
    }
}

/// Parses a time such as `90s`.
fn duration(text: &str) -> Result<Duration, String> {
    let ns = units::parsed_ns(text.trim()).filter(|&ns| 0.0 < ns && ns <= 1e16);
    ns.map(|ns| Duration::from_secs_f64(ns / 1e9))
        .ok_or_else(|| "expected a time such as `90s`, `5min` or `1h`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_parses_units() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration(" 1.5 min"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("20ms"), Ok(Duration::from_millis(20)));
        assert_eq!(duration("1h"), Ok(Duration::from_secs(3600)));
        for invalid in ["", "5", "s", "0s", "-1s", "5 m", "1e9s", "1e999h", "1..2s"] {
            assert!(duration(invalid).is_err(), "{invalid}");
        }
    }
}
