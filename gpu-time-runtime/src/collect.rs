//! From what the lanes and rows hold to a report.

use std::collections::HashMap;
use std::ptr;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use crate::bias::Bias;
use crate::counts::Counts;
use crate::cuda::{self, Context};
use crate::report::{self, Process, Snapshot};
use crate::sample::Measure;
use crate::sampling::Population;
use crate::series::{RowInfo, Tally};
use crate::site::{CallSite, Clock, Device, Kept, Row, locked_by};
use crate::state::{self, RowState, SiteState};
use crate::target;
use crate::{exit, graph, health, lane, look, process, registry, steer};

/// What a thread keeps locked for longer it will not give back soon. On a busy machine one that is only not
/// running may keep it for a good part of a second.
const PATIENCE: Duration = Duration::from_secs(2);
/// A report that takes longer is stuck in writing.
const PATIENCE_FOR_REPORTS: Duration = Duration::from_secs(5);

/// What the lanes counted of a row: timed, in flight.
type Tallies = HashMap<*const Row, (u64, u64)>;

/// Waits until no report is being made, and keeps others from making one: none is written into another,
/// and the process does not end in the middle of one. `None` if that takes too long, because the sink of
/// the one under way takes nothing.
pub(crate) fn reporting() -> Option<MutexGuard<'static, ()>> {
    static REPORTING: Mutex<()> = Mutex::new(());
    locked_by(&REPORTING, Instant::now() + PATIENCE_FOR_REPORTS)
}

/// Makes a report, unless the process is at its end, which makes one. A forked child has nothing of its
/// own to report.
pub(crate) fn report() {
    if exit::is_forked() {
        return;
    }
    let _one_at_a_time = reporting();
    if !process::is_closed() {
        check_calibrations();
        write_reports();
    }
}

/// Writes the report to wherever it is configured to go.
pub(crate) fn write_reports() {
    let config = process::config();
    if !config.targets().is_empty() {
        target::deliver(&snapshot(), config.targets());
    }
}

/// Looks whether the event bias has moved, unless the GPU is busy with what is timed.
pub(crate) fn check_calibrations() {
    if !process::config().targets().is_empty() && exit::is_idle(Instant::now() + PATIENCE) {
        cuda::contexts().into_iter().for_each(Context::check_calibration);
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
    if exit::is_forked() {
        // Another thread may have held a lock when the process was forked.
        let off = exit::FORKED.to_owned();
        let about = about(SystemTime::now(), Duration::ZERO, Some(off));
        return Snapshot::new(about, Vec::new(), Vec::new());
    }
    let (states, stuck) = states();
    let started = process::started();
    let mut about = about(started.wall, started.monotonic.elapsed(), why_off(&states));
    about.budget = steer::settled();
    about.warnings = process::complaints();
    if stuck > 0 {
        about.warnings.push(format!(
            "{stuck} threads did not come out of a driver call in time: what they measured is missing"
        ));
    }
    about.warnings.extend(filters_all(&states));
    about.warnings.extend(steer::warning());
    about.warnings.extend(health::warnings());
    Snapshot::new(about, devices(&states), report(states))
}

/// A warning where the filter leaves no function: most likely it is misspelt.
fn filters_all(states: &[SiteState]) -> Option<String> {
    let config = process::config();
    let is_all = !states.is_empty() && states.iter().all(|state| !config.admits(state.site.name()));
    is_all.then(|| {
        format!("the filter leaves none of the functions, of which there are {}", states.len())
    })
}

/// The sites alone, in the order of their ids, and how many threads could not be asked.
pub(crate) fn states() -> (Vec<SiteState>, usize) {
    let deadline = Instant::now() + PATIENCE;
    let mut stuck = drain(deadline) + usize::from(cuda::is_meeting(deadline));
    // All at once and no new ones, so that no bracket is counted on one side only while threads go on.
    // No driver call is made meanwhile.
    let deadline = Instant::now() + PATIENCE; // looking may have taken long beside many busy threads
    let lanes = lane::all();
    let works: Vec<_> = lanes.iter().filter_map(|lane| locked_by(&lane.work, deadline)).collect();
    stuck += lanes.len() - works.len();
    let mut tallies = Tallies::new();
    for entry in works.iter().flat_map(|work| work.rows.iter()) {
        let tally = tallies.entry(ptr::from_ref(entry.row)).or_default();
        tally.0 += entry.timed;
        tally.1 += entry.in_flight;
    }
    let graphs = graph::rows();
    for (row, timed) in graphs.iter() {
        tallies.entry(ptr::from_ref(row)).or_default().0 += timed;
    }
    let sites = registry::sites().into_iter();
    let counted: Vec<_> = sites.map(|site| Counted::of(site, &lanes)).collect();
    drop(graphs);
    drop(works);
    drop(lanes);
    // To copy the times takes longer, and the statistics do; nobody waits for them.
    let biases = Biases::new();
    let state = |counted| state_of(counted, &tallies, &biases);
    (counted.into_iter().map(state).collect(), stuck)
}

/// Looks at what the GPU has finished. Answers how many threads kept it from looking at nodes of graphs.
fn drain(deadline: Instant) -> usize {
    let known = lane::all().to_vec();
    for lane in known {
        look::drain_by(&lane.work, &lane.returns, deadline);
    }
    usize::from(!graph::look_at_all(deadline))
}

/// What is counted now of every site that was called, and of its series, with what the GPU has finished
/// if `looks` says so. No thread waits for another: what is counted meanwhile may be on one side only,
/// and of brackets that are not measured or lost nothing is said.
#[cfg(feature = "metrics")]
pub(crate) fn counted(looks: bool) -> impl Iterator<Item = (Counted, Vec<Shown>)> {
    if looks {
        drain(Instant::now() + PATIENCE);
    }
    let biases = Biases::new();
    let called = |site: &&'static CallSite| site.is_on().is_some();
    registry::sites().into_iter().filter(called).map(move |site| {
        let counted = Counted::of(site, &lane::all());
        let shown = counted.shown(&Tallies::new(), &biases);
        (counted, shown)
    })
}

/// The step in which event times of the device of this id advance, once that is known.
pub(crate) fn event_step_ns(id: &str) -> Option<f64> {
    let contexts = cuda::contexts().into_iter();
    let mut same = contexts.filter(|c| device_id(Device::Cuda(c.device.ordinal)) == id);
    same.find_map(Context::floor)?.step_ns
}

/// What is subtracted from each bracket, by device.
pub(crate) struct Biases(Vec<(Device, Option<Bias>)>);

impl Biases {
    pub fn new() -> Self {
        let contexts = cuda::contexts();
        Biases(contexts.iter().map(|c| (c.place(), c.bias(process::config().bias()))).collect())
    }

    pub fn of(&self, device: Device) -> Option<Bias> {
        match device {
            Device::Host => Some(Bias::NONE),
            _ => self.0.iter().filter(|(d, _)| *d == device).find_map(|(_, bias)| *bias),
        }
    }
}

/// What was counted of a site at one moment, with each row and its tally.
pub(crate) struct Counted {
    pub site: &'static CallSite,
    pub counts: Counts,
    population: Population,
    rows: Vec<(&'static Row, Tally)>,
}

/// A series of the report before its statistics are made.
pub(crate) struct Shown {
    pub info: RowInfo,
    pub tally: Tally,
    /// The index of the row whose samples it shows.
    pub row: usize,
}

impl Counted {
    fn of(site: &'static CallSite, lanes: &lane::AllLanes) -> Counted {
        let rows = site.rows().iter().map(|Kept { row, series }| (*row, series.tally())).collect();
        let (counts, population) = lane::counts(site, lanes);
        Counted { site, counts, population, rows }
    }

    /// The series that these rows come to.
    fn shown(&self, tallies: &Tallies, biases: &Biases) -> Vec<Shown> {
        let spec = &self.site.spec;
        let in_lanes =
            |row: &'static Row| tallies.get(&ptr::from_ref(row)).copied().unwrap_or_default();
        let mut shown = Vec::new();
        for (row, tally) in &self.rows {
            let is_same = |other: &Row| {
                let place = |row: &Row| (row.device, row.cache, row.key, row.graph);
                place(other) == place(row)
            };
            let (timed, in_flight) = in_lanes(row);
            let info = |launch: Option<u32>, measure: Measure| RowInfo {
                device: device_id(row.device),
                launch: launch.and_then(|index| {
                    let launch = spec.launches.get(index as usize)?;
                    Some(report::Launch { index, name: launch.name.to_owned(), line: launch.line })
                }),
                measure,
                key: self.site.keys.text(row.key).map(str::to_owned),
                cache: row.cache,
                clock: row.clock,
                graph: row.graph,
                timed,
                in_flight,
                population: (!row.graph).then_some(self.population),
                repeats: row.repeats(),
                start_ns: match row.clock {
                    Clock::Events | Clock::Sync => cuda::start_ns(),
                    Clock::Host => 0,
                },
                bias: match row.clock {
                    Clock::Events => biases.of(row.device),
                    Clock::Sync | Clock::Host => Some(Bias::NONE),
                },
            };
            let measure = row.measure(spec.scope);
            if spec.is_single && measure == Measure::Launch && !row.graph {
                // The sum of one launch is that launch; only calls without one are counted apart.
                let idle =
                    self.rows.iter().find(|(idle, _)| idle.launch.is_none() && is_same(idle));
                let (mut sum, mut tally) = (info(None, Measure::Sum), *tally);
                if let Some((idle, of_idle)) = idle {
                    tally.add_idle(*of_idle);
                    let (timed, in_flight) = in_lanes(idle);
                    sum.timed += timed;
                    sum.in_flight += in_flight;
                }
                shown.push(Shown { info: sum, tally, row: row.index() });
            }
            let is_shown_so = spec.is_single
                && measure == Measure::Sum
                && self.rows.iter().any(|(other, _)| other.launch.is_some() && is_same(other));
            if !is_shown_so {
                shown.push(Shown {
                    info: info(row.launch, measure),
                    tally: *tally,
                    row: row.index(),
                });
            }
        }
        shown
    }
}

fn state_of(counted: Counted, tallies: &Tallies, biases: &Biases) -> SiteState {
    let shown = counted.shown(tallies, biases);
    let Counted { site, counts, .. } = counted;
    let row = |Shown { info, tally, row }| {
        // Who times a call waits for this copy, and not for the statistics.
        let recorded = site.rows().get(row)?.series.recorded();
        Some(RowState { info, tally, recorded })
    };
    let rows = shown.into_iter().filter_map(row).collect();
    let mut warnings = Vec::new();
    let (holds, is_off) = {
        let policy = site.hold_policy();
        (policy.counts(), policy.is_off())
    };
    if is_off {
        warnings.push("holds hit their deadline too often and were switched off".to_owned());
    }
    let nonsense = site.nonsense();
    if nonsense > 0 {
        warnings.push(format!(
            "`bytes` or `flops` of {nonsense} timed calls make no sense and are left out; accepted are finite \
             numbers that are not negative, and `None` where the work is not known"
        ));
    }
    let site = report::Site {
        name: site.name().to_owned(),
        file: site.spec.file.to_owned(),
        line: site.spec.line,
        scope: site.spec.scope,
        launches_seen: site.spec.launches.len() as u32,
        options: site.spec.options.to_owned(),
        calls: counts.calls,
        warmup: counts.warmup,
        skipped: counts.all_skipped(),
        unsampled: counts.unsampled,
        timed: counts.timed,
        holds_released: holds.released,
        holds_expired: holds.expired,
        sample_rate: site.sampling().rate(),
        warnings,
        series: Vec::new(),
    };
    SiteState { site, rows }
}

/// The name of a device in the reports.
pub(crate) fn device_id(device: Device) -> String {
    match device {
        Device::Cuda(ordinal) => format!("cuda:{ordinal}"),
        Device::Unknown => "cuda:?".to_owned(),
        Device::Host => "host".to_owned(),
    }
}

/// The devices that contexts were seen of, and the host where its clock told the time.
fn devices(states: &[SiteState]) -> Vec<report::Device> {
    let driver = cuda::contexts().first().and_then(|_| cuda::driver_version());
    let mut devices: Vec<report::Device> = Vec::new();
    let mut contexts = cuda::contexts();
    contexts.sort_by_key(|context| context.device.ordinal);
    for context in contexts {
        let id = device_id(Device::Cuda(context.device.ordinal));
        let at = devices.iter().position(|d| d.id == id).unwrap_or_else(|| {
            let l2 = context.device.l2_bytes;
            let mut device = report::Device {
                driver: driver.clone(),
                l2_bytes: (l2 > 0).then_some(l2),
                peak_gb_per_s: context.device.peak_bandwidth.map(|peak| peak as f64 / 1e9),
                ..report::Device::new(id, context.device.name.clone())
            };
            health::describe(&mut device, &context.device);
            devices.push(device);
            devices.len() - 1
        });
        let Some(device) = devices.get_mut(at) else { continue };
        if device.event_floor_ns.is_none()
            && let Some(floor) = context.floor()
        {
            device.event_step_ns = floor.step_ns;
            device.event_floor_ns = Some(floor.pair_ns);
        }
        // The same context's as that of `Biases`.
        if device.event_bias_ns.is_none()
            && let Some(bias) = context.bias(process::config().bias())
        {
            device.event_bias_ns = Some(bias.ns);
            device.event_bias_source = Some(bias.source.to_owned());
            device.event_bias_error_ns = bias.error_ns;
            let calibration = context.calibration();
            device.event_held_empty_ns = calibration.map(|measured| measured.held.ns);
            device.event_queued_empty_ns =
                calibration.and_then(|measured| measured.queued_empty_ns);
        }
        device.fed_margin_ns = device.fed_margin_ns.or(context.fed_margin_ns());
        device.flush_bytes = device.flush_bytes.max(context.flush_bytes());
        device.flush_proof = device.flush_proof.take().or_else(|| context.flush_proof());
        let given = process::config().bias();
        let of_bias = given.and_then(|given| given.warning(context.calibration()));
        for warning in context.warnings().into_iter().chain(of_bias) {
            if !device.warnings.contains(&warning) {
                device.warnings.push(warning);
            }
        }
    }
    if states.iter().any(|state| state.rows.iter().any(|row| row.info.device == "host")) {
        devices.push(report::Device::host());
    }
    devices
}

/// Why nothing was timed on a GPU, if so.
fn why_off(states: &[SiteState]) -> Option<String> {
    if !process::config().is_on() {
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
