//! From what the lanes and rows hold to a report.

use std::collections::HashMap;
use std::ptr;
use std::sync::{MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use crate::bias::Bias;
use crate::counts::Counts;
use crate::cuda::{self, Context};
use crate::report::{self, Process, Snapshot};
use crate::sample::Measure;
use crate::series::{RowInfo, Tally};
use crate::site::{CallSite, Clock, Device, Kept, Row};
use crate::target;
use crate::work::Work;
use crate::{exit, graph, health, lane, process, registry};

/// A thread that keeps its lane locked for longer is stuck in a driver call. On a busy machine one that
/// is not may keep it for a good part of a second.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_micros(50);

/// What the lanes counted of a row: timed, in flight.
type Tallies = HashMap<*const Row, (u64, u64)>;

/// Writes the report to wherever it is configured to go. A forked child has nothing of its own to
/// report.
pub(crate) fn write_reports() {
    let targets = process::config().targets();
    if !targets.is_empty() && !exit::is_forked() {
        target::deliver(&snapshot(), targets);
    }
}

/// Looks whether the event bias has moved, unless the GPU is busy with what is timed.
pub(crate) fn check_calibrations() {
    if !process::config().targets().is_empty() && !exit::is_forked() && exit::is_idle() {
        cuda::contexts().into_iter().for_each(Context::check_calibration);
    }
}

/// Everything measured so far, after a look at what the GPU has finished. Never waits for the GPU.
pub(crate) fn snapshot() -> Snapshot {
    let (sites, stuck) = sites();
    let started = process::started();
    let program = std::env::current_exe().unwrap_or_default();
    let mut about = Process::new(
        program.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        std::process::id(),
        started.wall,
        started.monotonic.elapsed(),
        why_off(&sites),
    );
    if stuck > 0 {
        about.warnings.push(format!(
            "{stuck} threads did not come out of a driver call in time: what they measured is missing"
        ));
    }
    about.warnings.extend(health::warnings());
    Snapshot::new(about, devices(&sites), sites)
}

/// The sites alone, in the order of their ids, and how many threads could not be asked.
pub(crate) fn sites() -> (Vec<report::Site>, usize) {
    let deadline = Instant::now() + PATIENCE;
    // One after the other, so that no thread waits for more than its own.
    let known = lane::all().to_vec();
    for lane in known {
        if let Some(mut work) = lock(lane, deadline) {
            work.drain(&lane.returns);
        }
    }
    graph::look_at_all();
    // All at once and no new ones, so that no bracket is counted on one side only while threads go on.
    // No driver call is made meanwhile.
    let lanes = lane::all();
    let works: Vec<_> = lanes.iter().filter_map(|lane| lock(lane, deadline)).collect();
    let stuck = lanes.len() - works.len();
    let mut tallies = Tallies::new();
    for entry in works.iter().flat_map(|work| work.rows.iter()) {
        let tally = tallies.entry(ptr::from_ref(entry.row)).or_default();
        tally.0 += entry.timed;
        tally.1 += entry.in_flight;
    }
    let graphs = graph::all();
    for (row, timed) in graphs.rows() {
        tallies.entry(ptr::from_ref(row)).or_default().0 += timed;
    }
    let counted: Vec<_> = registry::sites()
        .into_iter()
        .map(|site| {
            let rows = site.rows().iter().map(|kept| kept.series.tally()).collect();
            Counted { site, counts: lane::counts(site, &lanes), rows }
        })
        .collect();
    drop(graphs);
    drop(works);
    drop(lanes);
    // The statistics take longer, and nobody waits for them.
    let biases = Biases::new();
    let site = |counted| report_site(counted, &tallies, &biases);
    (counted.into_iter().map(site).collect(), stuck)
}

/// The step in which event times of the device of this id advance, once that is known.
pub(crate) fn event_step_ns(id: &str) -> Option<f64> {
    let contexts = cuda::contexts().into_iter();
    let mut same = contexts.filter(|c| device_id(Device::Cuda(c.device.ordinal)) == id);
    same.find_map(Context::floor)?.step_ns
}

fn lock(
    lane: &'static lane::Lane,
    deadline: Instant,
) -> Option<MutexGuard<'static, Work<Context>>> {
    loop {
        match lane.work.try_lock() {
            Ok(work) => return Some(work),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => return None,
        }
    }
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

/// What was counted of a site at one moment, with the tally of each row.
struct Counted {
    site: &'static CallSite,
    counts: Counts,
    rows: Vec<Tally>,
}

fn report_site(counted: Counted, tallies: &Tallies, biases: &Biases) -> report::Site {
    let Counted { site, counts, rows } = counted;
    let resolved = site.resolve(process::config());
    let kept = site.rows();
    // Rows that came since are for the next report.
    let rows: Vec<_> = kept
        .iter()
        .zip(rows)
        .map(|(Kept { row, series }, tally)| {
            let counted = tallies.get(&ptr::from_ref(*row)).copied().unwrap_or_default();
            (*row, series, tally, counted)
        })
        .collect();
    let mut shown = Vec::new();
    for (row, series, tally, (timed, in_flight)) in &rows {
        let is_same = |other: &Row| {
            (other.device, other.cache, other.graph) == (row.device, row.cache, row.graph)
        };
        let info = |launch: Option<u32>, measure: Measure| RowInfo {
            device: device_id(row.device),
            launch: launch.and_then(|index| {
                let launch = site.spec.launches.get(index as usize)?;
                Some(report::Launch { index, name: launch.name.to_owned(), line: launch.line })
            }),
            measure,
            cache: row.cache,
            clock: row.clock,
            graph: row.graph,
            timed: *timed,
            in_flight: *in_flight,
            start_ns: match row.clock {
                Clock::Events | Clock::Sync => cuda::start_ns(),
                Clock::Host => 0,
            },
            bias: match row.clock {
                Clock::Events => biases.of(row.device),
                Clock::Sync | Clock::Host => Some(Bias::NONE),
            },
        };
        let measure = row.measure(site.spec.scope);
        if site.spec.is_single && measure == Measure::Launch && !row.graph {
            // The sum of one launch is that launch; only calls without one are counted apart.
            let idle = rows.iter().find(|(idle, ..)| idle.launch.is_none() && is_same(idle));
            let (mut sum, mut tally) = (info(None, Measure::Sum), *tally);
            if let Some((_, _, idle, (timed, in_flight))) = idle {
                tally.add_idle(*idle);
                sum.timed += timed;
                sum.in_flight += in_flight;
            }
            shown.push(series.report(sum, tally));
        }
        let is_shown_so = site.spec.is_single
            && measure == Measure::Sum
            && rows.iter().any(|(other, ..)| other.launch.is_some() && is_same(other));
        if !is_shown_so {
            shown.push(series.report(info(row.launch, measure), *tally));
        }
    }
    let mut warnings = Vec::new();
    if site.hold_policy().is_off() {
        warnings.push("holds hit their deadline too often and were switched off".to_owned());
    }
    report::Site {
        name: resolved.name.clone(),
        file: site.spec.file.to_owned(),
        line: site.spec.line,
        scope: site.spec.scope,
        launches_seen: site.spec.launches.len() as u32,
        options: site.spec.options.to_owned(),
        calls: counts.calls,
        warmup: counts.warmup,
        skipped: counts.skipped,
        timed: counts.timed,
        warnings,
        series: shown,
    }
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
fn devices(sites: &[report::Site]) -> Vec<report::Device> {
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
            device.event_held_empty_ns = calibration.map(|measured| measured.held_empty_ns);
            device.event_queued_empty_ns =
                calibration.and_then(|measured| measured.queued_empty_ns);
        }
        device.fed_margin_ns = device.fed_margin_ns.or(context.fed_margin_ns());
        device.flush_bytes = device.flush_bytes.max(context.flush_bytes());
        device.flush_proof = device.flush_proof.take().or_else(|| context.flush_proof());
        for warning in context.warnings() {
            if !device.warnings.contains(&warning) {
                device.warnings.push(warning);
            }
        }
    }
    if sites.iter().any(|site| site.series.iter().any(|series| series.device == "host")) {
        devices.push(report::Device::host());
    }
    devices
}

/// Why nothing was timed on a GPU, if so.
fn why_off(sites: &[report::Site]) -> Option<String> {
    if !process::config().is_on() {
        return Some("`GPU_TIME=off`".to_owned());
    }
    let asks_for_gpu = registry::sites()
        .iter()
        .zip(sites)
        .any(|(site, report)| site.spec.clock != Clock::Host && report.calls > report.warmup);
    if !asks_for_gpu || !cuda::contexts().is_empty() {
        return None;
    }
    let hidden =
        std::env::var_os("CUDA_VISIBLE_DEVICES").is_some_and(|v| v.is_empty() || v == "-1");
    Some(match cuda::why_unusable() {
        Some(reason) => reason.to_owned(),
        None if hidden => "`CUDA_VISIBLE_DEVICES` hides every GPU".to_owned(),
        None => "no call came with a stream on a GPU".to_owned(),
    })
}
