//! The `ours` role: times the cases with gpu-time.

use gpu_time::{Series, Snapshot, Stats};
use serde::{Deserialize, Serialize};

use crate::case::{CASES, Case};
use crate::failure::{Failure, Omission};
use crate::figure::Figure;
use crate::gpu::Gpu;
use crate::node::NODES;
use crate::work::Work;
use crate::{bare, host_cost};

/// The result printed by the process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OwnReport {
    pub device: Device,
    pub readings: Vec<OwnReading>,
    /// The readings for graph nodes.
    pub nodes: Vec<OwnReading>,
    pub left_out: Vec<Omission>,
    /// The time between events recorded without gpu-time around a held 10 µs spin.
    pub bare: Option<Figure>,
    /// The host time of `cold` and `sleep`, in excess of the launches that they enqueue.
    pub host_cost: Option<Figure>,
}

/// The device, as in the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Device {
    pub name: String,
    pub driver: Option<String>,
    pub floor_ns: Option<f64>,
    pub bias_ns: Option<f64>,
    pub bias_source: Option<String>,
    pub bias_error_ns: Option<f64>,
    pub flush_bytes: Option<u64>,
    /// The clean flush's method.
    pub flush_method: Option<String>,
}

/// The measurements for a case, as in the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OwnReading {
    pub case: String,
    pub cache: String,
    pub net: Option<Figure>,
    pub raw: Option<Figure>,
    pub timed: u64,
    pub fed: u64,
    pub starved: u64,
    pub at_floor: u64,
    /// The number of samples that include work from cudarc's event tracking.
    pub tracked: u64,
}

/// Times `calls` calls for every case.
pub fn run(calls: u32, is_tracked: bool) -> Result<OwnReport, Failure> {
    let gpu = if is_tracked { Gpu::tracked() } else { Gpu::new() }?;
    gpu.ramp()?;
    let mut left_out = Vec::new();
    for case in CASES {
        match case.kind.missing_requirement(&gpu) {
            None => case.time(&gpu, &mut Work::new(&gpu, case.kind)?, calls)?,
            Some(why) => left_out.push(Omission { case: case.name.to_owned(), why }),
        }
    }
    let mut bare = None;
    if !is_tracked {
        NODES.iter().try_for_each(|node| node.replay(&gpu, calls))?;
        bare = bare::measure(&gpu, calls)?;
    }
    let snapshot = gpu_time::snapshot();
    let read_case = |case: &Case| read(&snapshot, "case", case.name, false);
    let readings = CASES.iter().filter_map(read_case).collect();
    let nodes = NODES.iter().filter_map(|node| read(&snapshot, "node", node.name, true)).collect();
    let device = device(&snapshot)?;
    // A flush without gpu-time needs the method and the length verified by the report.
    let host_cost = match (device.flush_bytes, &device.flush_method) {
        (Some(bytes), Some(method)) if !is_tracked => {
            host_cost::measure(&gpu, method.parse()?, bytes)?
        }
        _ => None,
    };
    Ok(OwnReport { device, readings, nodes, left_out, bare, host_cost })
}

/// Returns the reading for a function: its series with the most samples, for calls or, with
/// `in_graphs`, for the launch as a node.
fn read(snapshot: &Snapshot, module: &str, name: &str, in_graphs: bool) -> Option<OwnReading> {
    let path = format!("{module}::{name}");
    let site = snapshot
        .sites
        .iter()
        .find(|site| site.name.strip_suffix(&*path).is_some_and(|prefix| prefix.ends_with("::")))?;
    let is_wanted =
        |series: &&Series| series.graph == in_graphs && series.launch.is_some() == in_graphs;
    let series = site.series.iter().filter(is_wanted).max_by_key(|series| series.measured)?;
    Some(OwnReading {
        case: name.to_owned(),
        cache: series.cache.name().to_owned(),
        net: series.net_ns.as_ref().map(figure),
        raw: series.raw_ns.as_ref().map(figure),
        timed: series.timed,
        fed: series.fed,
        starved: series.starved,
        at_floor: series.at_floor,
        tracked: series.tracked,
    })
}

fn figure(stats: &Stats) -> Figure {
    Figure { median: stats.median, p5: stats.p5, p95: stats.p95 }
}

fn device(snapshot: &Snapshot) -> Result<Device, Failure> {
    let device = snapshot.devices.first().ok_or("the report names no device")?;
    let flush = device.flush_proof.as_ref().and_then(|flush_proof| flush_proof.clean.as_ref());
    Ok(Device {
        name: device.name.to_owned(),
        driver: device.driver.clone(),
        floor_ns: device.event_floor_ns,
        bias_ns: device.event_bias_ns,
        bias_source: device.event_bias_source.clone(),
        bias_error_ns: device.event_bias_error_ns,
        flush_bytes: device.flush_bytes,
        flush_method: flush.map(|flush| flush.method.to_owned()),
    })
}
