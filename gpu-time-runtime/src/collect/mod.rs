//! From what the lanes and rows hold to a report.

pub(crate) mod counted;
pub(crate) mod devices;
pub(crate) mod state;
pub(crate) mod trace;

use std::ptr;
use std::time::{Duration, Instant, SystemTime};

use crate::base::clock;
use crate::base::console;
use crate::base::fork;
use crate::base::lock::{Mutex, MutexGuard, Rank, locked_by};
use crate::base::switches;
#[cfg(feature = "metrics")]
use crate::collect::counted::SeriesCounts;
use crate::collect::counted::SiteCounts;
use crate::collect::counted::Tallies;
use crate::collect::devices::Biases;
use crate::collect::state::SiteState;
use crate::collect::trace::chrome;
use crate::config::output;
use crate::control::active;
use crate::control::budget_control;
use crate::cuda;
use crate::health;
use crate::record::drain;
use crate::record::threads;
use crate::record::{graph, stream_state};
use crate::site::registry;
use crate::types::attribute::Clock;
use gpu_time_report::{self as report, Process, Snapshot};

/// What a thread keeps locked for longer it will not give back soon. On a busy machine one that is only not
/// running may keep it for a good part of a second.
const PATIENCE: Duration = Duration::from_secs(2);
/// A report that takes longer is stuck in writing.
const PATIENCE_FOR_REPORTS: Duration = Duration::from_secs(5);

/// Waits until no report is being made, and keeps others from making one: none is written into another,
/// and the process does not end in the middle of one. `None` if that takes too long, because the sink of
/// the one under way takes nothing.
pub(crate) fn reporting() -> Option<MutexGuard<'static, ()>> {
    static REPORTING: Mutex<()> = Mutex::new(Rank::Reporting, ());
    locked_by(&REPORTING, Instant::now() + PATIENCE_FOR_REPORTS)
}

/// Makes a report, unless the process is at its end, which makes one. A forked child has nothing of its
/// own to report.
pub(crate) fn report() {
    if fork::is_forked() {
        return;
    }
    let _one_at_a_time = reporting();
    if !switches::is_closed() {
        check_calibrations();
        write_reports();
    }
}

/// Writes the report to wherever it is configured to go.
pub(crate) fn write_reports() {
    let config = active::config();
    if !config.targets().is_empty() {
        output::deliver(&snapshot(), config.targets(), |snapshot| {
            chrome::rendered(snapshot.process())
        });
    }
}

/// Looks whether the event bias has moved, unless the GPU is busy with what is timed.
pub(crate) fn check_calibrations() {
    if !active::config().targets().is_empty() && drain::is_idle(Instant::now() + PATIENCE) {
        for context in cuda::contexts() {
            if !stream_state::has_open() {
                context.check_calibration();
            }
        }
    }
}

/// Everything measured so far, after a look at what the GPU has finished. Never waits for the GPU.
pub(crate) fn snapshot() -> Snapshot {
    snapshot_of(|states| states.into_iter().map(SiteState::report).collect())
}

/// What was measured since the sites were in these states: of the functions that were called since, their
/// own counts and figures. What is said of the process and its devices is of the whole time.
pub(crate) fn snapshot_since(earlier: &[SiteState]) -> Snapshot {
    snapshot_of(|states| state::since(earlier, &states))
}

fn snapshot_of(report: impl FnOnce(Vec<SiteState>) -> Vec<report::Site>) -> Snapshot {
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let about = |wall, elapsed, off| Process::new(program, std::process::id(), wall, elapsed, off);
    if fork::is_forked() {
        // Another thread may have held a lock when the process was forked.
        let off = fork::FORKED.to_owned();
        let about = about(SystemTime::now(), Duration::ZERO, Some(off));
        return Snapshot::new(about, Vec::new(), Vec::new());
    }
    let (states, stuck) = states();
    let started = clock::started();
    let mut about = about(started.wall, started.monotonic.elapsed(), why_off(&states));
    about.budget = budget_control::settled();
    about.warnings = console::complaints();
    if stuck > 0 {
        about.warnings.push(format!(
            "{stuck} threads did not come out of a driver call in time: what they measured is missing"
        ));
    }
    about.warnings.extend(filters_all(&states));
    about.warnings.extend(budget_control::warning());
    about.warnings.extend(health::warnings());
    Snapshot::new(about, devices::seen(&states), report(states))
}

/// A warning if the filter admits none of the functions: most likely a pattern is wrong.
fn filters_all(states: &[SiteState]) -> Option<String> {
    let config = active::config();
    let names: Vec<&str> = states.iter().map(|state| state.site.name()).collect();
    let example = names.first()?;
    if names.iter().any(|name| config.filter().admits(name)) {
        return None;
    }
    let hint = match config.filter().suggest(&names) {
        Some(patterns) => format!("did you mean `{patterns}`?"),
        None => format!("patterns match whole names such as `{example}`"),
    };
    Some(format!("the filter matches none of the {} functions: {hint}", names.len()))
}

/// The sites alone, in the order of their ids, and how many threads could not be asked.
pub(crate) fn states() -> (Vec<SiteState>, usize) {
    let deadline = Instant::now() + PATIENCE;
    let mut stuck = drain_all(deadline) + usize::from(cuda::is_meeting(deadline));
    // All at once and no new ones, so that no bracket is counted on one side only while threads go on.
    // No driver call is made meanwhile.
    let deadline = Instant::now() + PATIENCE; // looking may have taken long beside many busy threads
    let threads_ = threads::all();
    let recorders: Vec<_> =
        threads_.iter().filter_map(|thread| locked_by(&thread.recorder, deadline)).collect();
    stuck += threads_.len() - recorders.len();
    let mut tallies = Tallies::new();
    for entry in recorders.iter().flat_map(|recorder| recorder.series.iter()) {
        let tally = tallies.entry(ptr::from_ref(entry.id)).or_default();
        tally.0 += entry.timed;
        tally.1 += entry.in_flight;
    }
    let graphs = graph::rows();
    for (row, timed) in graphs.iter() {
        tallies.entry(ptr::from_ref(row)).or_default().0 += timed;
    }
    let sites = registry::sites().into_iter();
    let counted: Vec<_> = sites.map(|site| SiteCounts::of(site, &threads_)).collect();
    drop(graphs);
    drop(recorders);
    drop(threads_);
    // To copy the times takes longer, and the statistics do; nobody waits for them.
    let biases = Biases::new();
    let state = |counted: SiteCounts| counted.state(&tallies, &biases);
    (counted.into_iter().map(state).collect(), stuck)
}

/// Looks at what the GPU has finished. Answers how many threads kept it from looking at nodes of graphs.
fn drain_all(deadline: Instant) -> usize {
    let known = threads::all().to_vec();
    for thread in known {
        drain::drain_by(&thread.recorder, &thread.returns, deadline);
    }
    usize::from(!graph::look_at_all(deadline))
}

/// What is counted now of every site that was called, and of its series, with what the GPU has finished
/// if `looks` says so. No thread waits for another: what is counted meanwhile may be on one side only,
/// and of brackets that are not measured or lost nothing is said.
#[cfg(feature = "metrics")]
pub(crate) fn counted(looks: bool) -> impl Iterator<Item = (SiteCounts, Vec<SeriesCounts>)> {
    if looks {
        drain_all(Instant::now() + PATIENCE);
    }
    let biases = Biases::new();
    let called = registry::sites().into_iter().filter(|site| site.is_on().is_some());
    called.map(move |site| {
        let counted = SiteCounts::of(site, &threads::all());
        let shown = counted.shown(&Tallies::new(), &biases);
        (counted, shown)
    })
}

/// Why nothing was timed on a GPU, if so.
fn why_off(states: &[SiteState]) -> Option<String> {
    if !active::config().is_on() {
        return Some("`GPU_TIME=off`".to_owned());
    }
    let counted = states.iter().map(|state| &state.site);
    let sites_and_reports = registry::sites().into_iter().zip(counted);
    let on_gpu: Vec<_> =
        sites_and_reports.filter(|(site, _)| site.spec.clock != Clock::Host).collect();
    let asks_for_gpu = on_gpu.iter().any(|(_, report)| report.calls > report.warmup);
    if !asks_for_gpu || !cuda::contexts().is_empty() {
        return None;
    }
    let hidden =
        std::env::var_os("CUDA_VISIBLE_DEVICES").is_some_and(|v| v.is_empty() || v == "-1");
    match cuda::why_unusable() {
        Some(reason) => Some(reason.to_owned()),
        None if hidden => Some("`CUDA_VISIBLE_DEVICES` hides every GPU".to_owned()),
        // Of calls that were passed over or filtered out nobody asked for their stream.
        None if on_gpu.iter().all(|(_, report)| report.timed == 0) => None,
        None => Some("no call came with a stream on a GPU".to_owned()),
    }
}
