//! Builds reports from the counters of sites and threads.

pub(crate) mod devices;
#[cfg(feature = "kernels")]
pub(crate) mod empty_kernel;
pub(crate) mod state;
pub(crate) mod trace;
mod untimed;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use crate::base::lock::{Mutex, MutexGuard, Rank, locked_by};
use crate::base::{clock, console, environment, fork, rounds::in_rounds, switches};
use crate::collect::{devices::Biases, state::SiteState, trace::chrome};
use crate::config::targets::{Sink, Target};
use crate::config::{Config, output};
use crate::control::{active, budget_control};
use crate::cuda;
use crate::cupti;
use crate::health;
use crate::record::phase::controller;
use crate::record::records::{CROWDED_OUT, DROPPED, LATE, ZERO_TIMES};
use crate::record::{call_tree, collector, drain, graph, readout, stream_state, threads};
use crate::site::registry;
use crate::stats::call_tree::forest::add_errors_inside;
use crate::stats::series::SeriesData;
use crate::types::{attribute::Clock, record_mode::RecordMode};
use gpu_time_report::{self as report, Process, Snapshot};

/// The maximum time to wait for threads' locks. A descheduled thread can hold its lock for several hundred
/// milliseconds. A thread that holds it for longer is stuck in a driver call.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
/// The maximum time to wait while another thread writes a report. A report that takes longer is
/// stuck in its sink.
const REPORT_PATIENCE: Duration = Duration::from_secs(5);
/// The time by which the worker may be early.
const SLACK_NS: u64 = 500_000_000;

/// Locks report writing, so that reports are not interleaved and the process does not exit in the
/// middle of one. Returns `None` if the sink of the current report blocks for too long.
pub(crate) fn reporting() -> Option<MutexGuard<'static, ()>> {
    static REPORTING: Mutex<()> = Mutex::new(Rank::Reporting, ());
    locked_by(&REPORTING, Instant::now() + REPORT_PATIENCE)
}

/// Writes a report. Does nothing if the process is exiting, because the exit handler writes the
/// last report.
pub(crate) fn report() {
    let _one_at_a_time = reporting();
    if !switches::is_closed() {
        if active::config().may_record() {
            // Another tool may have released CUPTI.
            cupti::retry();
        }
        collector::keep_up();
        check_calibrations();
        write_reports();
    }
}

/// Writes the report to every configured target.
pub(crate) fn write_reports() {
    let config = active::config();
    deliver(&config, &config.targets);
}

/// Does the same at the end of the process. What was recorded of the start is no report without a call: it could replace
/// that of a child that did time something.
pub(crate) fn write_last_reports() {
    if has_report(&active::config()) { write_reports() } else { report_no_calls() }
}

fn has_report(config: &Config) -> bool {
    registry::have_calls() || !matches!(config.recording, Some(RecordMode::Start(_)))
}

/// Writes the files of the report again, if [that is due](crate::config::targets::Targets::every). For the worker.
pub(crate) fn write_files_again() {
    static WRITTEN_NS: AtomicU64 = AtomicU64::new(0);
    let config = active::config();
    let Some(every) = config.targets.every else { return };
    let now_ns = clock::now_ns();
    if now_ns.saturating_sub(WRITTEN_NS.load(Relaxed)) + SLACK_NS < every.as_nanos() as u64 {
        return;
    }
    WRITTEN_NS.store(now_ns, Relaxed);
    let _one_at_a_time = reporting();
    if !switches::is_closed() {
        collector::keep_up();
        let is_file = |target: &&Target| matches!(target.sink, Sink::File(_));
        let files: Vec<_> = config.targets.iter().filter(is_file).cloned().collect();
        if config.is_on && !files.is_empty() && has_report(&config) {
            let trace = |snapshot: &Snapshot| chrome::rendered(&snapshot.process, config.bias);
            output::rewrite(&snapshot_by(&config), &files, &config, &trace);
        }
    }
}

/// Prints the table of a program that called nothing on stderr, if the configuration includes that target. Names the other
/// targets, which get no report, and what the program lacks.
pub(crate) fn report_no_calls() {
    let config = active::config();
    let (tables, others): (Vec<_>, Vec<_>) =
        config.targets.iter().cloned().partition(|target| *target == Target::TABLE);
    deliver(&config, &tables);
    let others: Vec<String> = others.iter().map(|target| target.sink.to_string()).collect();
    if !others.is_empty() {
        let driver =
            if cuda::is_loaded() { "" } else { ", and the CUDA driver (libcuda) was not loaded" };
        let others = others.join(", ");
        console::say(&format!(
            "no report was written to {others}: no function with `#[gpu_timed]` was called{driver}"
        ));
    }
}

/// Writes a report to these targets. Takes everything from one configuration, because the program may set
/// another one meanwhile.
fn deliver(config: &Config, targets: &[Target]) {
    if config.is_on && !targets.is_empty() {
        let trace = |snapshot: &Snapshot| chrome::rendered(&snapshot.process, config.bias);
        output::deliver(&snapshot_by(config), targets, config, &trace);
    }
}

/// Checks whether the event bias has drifted, unless the GPU is busy with timed work.
pub(crate) fn check_calibrations() {
    if !active::config().targets.is_empty() && drain::drain_all(Instant::now() + LOCK_PATIENCE) {
        for context in cuda::contexts() {
            // While CUPTI records, event times are longer than they were during the calibration.
            if !stream_state::has_open() && !cupti::is_recording() {
                context.check_calibration();
            }
        }
    }
}

/// Returns everything measured so far, after draining all brackets that the GPU has finished. Never
/// waits for the GPU.
pub(crate) fn snapshot() -> Snapshot {
    snapshot_by(&active::config())
}

/// Returns a snapshot without measurements, for a forked child. Takes no lock.
pub(crate) fn snapshot_in_child() -> Snapshot {
    let about = about(SystemTime::now(), Duration::ZERO, Some(fork::FORKED.to_owned()));
    Snapshot::new(about, Vec::new(), Vec::new())
}

fn about(wall: SystemTime, elapsed: Duration, off: Option<String>) -> Process {
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Process::new(program, std::process::id(), wall, elapsed, off)
}

fn snapshot_by(config: &Config) -> Snapshot {
    all_series(SeriesData::look);
    let report = |state: &SiteState, biases: &Biases| state.report(biases, None);
    snapshot_of(config, |states, biases| states.iter().map(|state| report(state, biases)).collect())
}

/// Returns the measurements since an earlier reading of the sites: the functions called since then,
/// with their counts and figures for that period. The figures of the process and its devices cover
/// the process's whole lifetime. `looks` is the number of looks at this run so far, including this
/// one.
pub(crate) fn snapshot_since(earlier: &[SiteState], looks: u32) -> Snapshot {
    snapshot_of(&active::config(), |states, biases| state::since(earlier, states, biases, looks))
}

/// Returns only the sites of [`snapshot_since`].
pub(crate) fn sites_since(earlier: &[SiteState], looks: u32) -> Vec<report::Site> {
    state::since(earlier, &states().0, &Biases::new(active::config().bias), looks)
}

/// Begins a run. Returns a reading of every site, to be subtracted from the reading at the run's
/// end.
pub(crate) fn begin_run() -> Vec<SiteState> {
    let (states, _) = states();
    all_series(SeriesData::begin_run);
    states
}

/// The maximum number of series to change while a site stays locked.
const SERIES_PER_LOCK: usize = 64;

/// Changes every series, while other threads continue to record.
fn all_series(change: impl Fn(&mut SeriesData)) {
    let sites = registry::sites().into_iter().map(|site| (site, 0));
    in_rounds(sites.collect(), |(site, next)| {
        let mut cells = site.series();
        let turn = cells.iter_mut().skip(*next).take(SERIES_PER_LOCK);
        turn.for_each(|cell| change(&mut cell.series));
        *next += SERIES_PER_LOCK;
        *next < cells.len()
    });
}

fn snapshot_of(
    config: &Config,
    report: impl FnOnce(&[SiteState], &Biases) -> Vec<report::Site>,
) -> Snapshot {
    let (states, stuck) = states();
    let started = clock::started();
    let mut about = about(started.wall, started.monotonic.elapsed(), why_off(config, &states));
    about.label.clone_from(&config.label);
    let version = || registry::version_of(&about.name);
    about.program_version = config.program_version.clone().or_else(version);
    about.host = environment::host();
    about.budget = budget_control::settled();
    about.warnings = console::complaints();
    about.warnings.extend(output::lost_streams(&config.targets));
    if stuck > 0 {
        let threads = if stuck == 1 { "thread" } else { "threads" };
        about.warnings.push(format!(
            "{stuck} {threads} did not return from a driver call in time: their measurements are missing"
        ));
    }
    about.warnings.extend(useless_records());
    let no_records = config.why_no_records();
    let have_spans_passed = call_tree::have_all_spans_passed();
    if have_spans_passed && no_records.is_none() {
        about.warnings.push(
            "no root span of `tracing` has been recorded: few of them are chosen, and none was so far. \
             `gpu_time::spans().sample(1.0)` records all"
                .to_owned(),
        );
    } else {
        about.warnings.extend(controller::warning());
    }
    let is_ordered = config.is_on && config.orders_records();
    let is_refused = no_records.is_some() && (active::needs_records() || is_ordered);
    let wants_kernels = states.iter().any(|state| state.wants_kernels(config));
    if wants_kernels || controller::is_used() || is_refused {
        about.kernels = no_records.or_else(cupti::why_unavailable);
        about.cupti_version = cupti::version();
        about.warnings.extend(cupti::first_failure());
    }
    about.warnings.extend(filters_all(config, &states));
    about.warnings.extend(budget_control::warning());
    about.warnings.extend(health::warnings());
    let has_host_times = states.iter().any(SiteState::has_host_times);
    let mut devices = devices::all(config.bias, has_host_times);
    let biases = Biases::new(config.bias);
    let calls = |at: usize| states.get(at)?.calls_in_tree(&biases);
    let bias = |device| biases.of(device);
    let mut tree = call_tree::report(Instant::now() + LOCK_PATIENCE, calls, bias);
    untimed::add(&mut devices, &mut tree, &states);
    add_errors_inside(&mut tree);
    Snapshot::new(about, devices, report(&states, &biases)).with_tree(tree)
}

/// Returns warnings if records of GPU work are missing.
fn useless_records() -> impl Iterator<Item = String> {
    let counts = [&DROPPED, &ZERO_TIMES, &LATE, &CROWDED_OUT];
    let [dropped, zero_times, late, crowded_out] = counts.map(|of| of.load(Relaxed));
    let useless = match (dropped, zero_times) {
        (0, 0) => None,
        (_, 0) => Some(format!("CUPTI dropped {dropped} records")),
        (0, _) => Some(format!("CUPTI gave {zero_times} records without times")),
        _ => Some(format!("CUPTI dropped {dropped} records and gave {zero_times} without times")),
    };
    let lost = useless.map(|useless| {
        format!(
            "{useless}: the calls that they belong to are counted as lost (`records`), and phases as incomplete"
        )
    });
    let late = (late > 0).then(|| {
        format!(
            "CUPTI gave {late} records of graphs so late that they are missing from the calls that \
             launched them"
        )
    });
    let crowded_out = (crowded_out > 0).then(|| {
        format!(
            "{crowded_out} recorded calls were lost, because too many waited for their records at once: record in \
             phases, as with `GPU_TIME_RECORD=20ms/1s`"
        )
    });
    [lost, late, crowded_out].into_iter().flatten()
}

/// Returns a warning if the filter admits none of the functions. Most likely, a pattern is wrong.
fn filters_all(config: &Config, states: &[SiteState]) -> Option<String> {
    let names: Vec<&str> = states.iter().map(|state| state.site.name()).collect();
    let example = names.first()?;
    if names.iter().any(|name| config.filter.admits(name)) {
        return None;
    }
    let hint = match config.filter.suggest(&names) {
        Some(patterns) => format!("did you mean `{patterns}`?"),
        None => format!("patterns match whole names such as `{example}`"),
    };
    Some(format!("the filter matches none of the {} functions: {hint}", names.len()))
}

/// Reads every site, in order of id, while other threads continue to record. Also returns the
/// number of threads that could not be read.
///
/// Holds only one lock at a time, and each only for a copy of bounded size.
pub(crate) fn states() -> (Vec<SiteState>, usize) {
    let deadline = Instant::now() + LOCK_PATIENCE;
    let busy = drain_all(deadline) + usize::from(cuda::is_registering(deadline));
    let mut states: Vec<_> = registry::sites().into_iter().map(SiteState::new).collect();
    let stuck = read_counters(&mut states);
    // Times are copied after the counters, so that they include every counted sample.
    in_rounds(states.iter_mut().map(|state| (state, 0)).collect(), |(state, next)| {
        state.copy_times(next)
    });
    states.iter_mut().for_each(|state| state.holds = state.site.hold_deadline().counts());
    (states, busy + stuck)
}

/// Reads the counters of all sites, and returns the number of threads that could not be read.
fn read_counters(states: &mut [SiteState]) -> usize {
    // A site that registered in the meantime has no state, and is missing from this report.
    let at = |id: u32| (id as usize).checked_sub(1);
    let stuck = readout::read_series(LOCK_PATIENCE, |counters| {
        if let Some(state) = at(counters.site.id()).and_then(|at| states.get_mut(at)) {
            state.add_brackets(counters);
        }
    });
    // Calls are read after the series, because a call is counted before its brackets.
    for thread in threads::all() {
        for (id, counters) in thread.counters.iter() {
            if let Some(state) = at(id).and_then(|at| states.get_mut(at)) {
                state.add_calls(counters);
            }
        }
    }
    states.iter_mut().for_each(SiteState::add_shared_calls);
    stuck
}

/// Drains the brackets that the GPU has finished. Returns 1 if another thread kept graph nodes from
/// being read until the deadline, otherwise 0.
fn drain_all(deadline: Instant) -> usize {
    drain::drain_all(deadline);
    usize::from(!graph::poll_all(deadline))
}

/// Reads the counters for every site that has been called, without times. If `drains` is set, first
/// drains all brackets that the GPU has finished.
#[cfg(feature = "metrics")]
pub(crate) fn live_states(drains: bool) -> impl Iterator<Item = SiteState> {
    if drains {
        drain_all(Instant::now() + LOCK_PATIENCE);
    }
    let mut states: Vec<_> = registry::sites().into_iter().map(SiteState::new).collect();
    read_counters(&mut states);
    states.into_iter().filter(|state| state.site.is_configured()).map(|mut state| {
        state.copy_sums();
        state
    })
}

/// Returns the reason if no call was timed on a GPU.
fn why_off(config: &Config, states: &[SiteState]) -> Option<String> {
    if !config.is_on {
        return Some("`GPU_TIME=off`".to_owned());
    }
    // For functions without a stream, the report says why their kernels were not recorded.
    let on_gpu = || {
        let has_stream = |clock| matches!(clock, Clock::Events | Clock::Sync);
        states.iter().filter(move |state| has_stream(state.site.spec.clock))
    };
    let asks_for_gpu = on_gpu().any(|state| state.calls.calls() > state.calls.warmup);
    if !asks_for_gpu || !cuda::contexts().is_empty() {
        return None;
    }
    let hidden =
        std::env::var_os("CUDA_VISIBLE_DEVICES").is_some_and(|v| v.is_empty() || v == "-1");
    match cuda::why_unusable() {
        Some(reason) => Some(reason.to_owned()),
        None if hidden => Some("`CUDA_VISIBLE_DEVICES` hides every GPU".to_owned()),
        // The stream was not evaluated for calls that were filtered out or not sampled.
        None if on_gpu().all(|state| state.calls.timed == 0) => None,
        None => Some("no call came with a stream on a GPU".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::options::Options;

    #[test]
    fn report_follows_one_configuration() {
        let options = Options {
            is_on: Some(Some(false)),
            label: Some(Some("given".to_owned())),
            ..Options::default()
        };
        let snapshot = snapshot_by(&Config::new(options));
        let process = &snapshot.process;
        assert_eq!(
            (process.label.as_deref(), process.off.as_deref()),
            (Some("given"), Some("`GPU_TIME=off`"))
        );
    }
}
