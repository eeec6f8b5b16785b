//! What gpu-time says of the cases, in a process of its own.

use gpu_time::{FlushProof, Snapshot, Stats};
use serde::{Deserialize, Serialize};

use crate::case::{CASES, Case};
use crate::figure::Figure;
use crate::gpu::Gpu;
use crate::work::Work;
use crate::{Failure, LeftOut, host_cost};

/// What the process prints.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ours {
    pub device: Device,
    pub readings: Vec<Reading>,
    pub left_out: Vec<LeftOut>,
    /// Host time of a call with `cold` and `sleep` over one without and the launches that they
    /// enqueue.
    pub host_cost: Option<Figure>,
}

/// What the report says of the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Device {
    pub name: String,
    pub driver: Option<String>,
    pub floor_ns: Option<f64>,
    pub bias_ns: Option<f64>,
    pub bias_source: Option<String>,
    pub bias_error_ns: Option<f64>,
    pub flush_bytes: Option<u64>,
    /// Of the clean flush.
    pub flush_method: Option<String>,
}

/// What the report says of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    pub case: String,
    pub cache: String,
    pub net: Option<Figure>,
    pub raw: Option<Figure>,
    pub timed: u64,
    pub fed: u64,
    pub starved: u64,
    pub at_floor: u64,
    /// Samples that cudarc's event tracking put something into.
    pub tracked: u64,
}

/// Times every case so many times.
pub fn run(calls: u32, is_tracked: bool) -> Result<Ours, Failure> {
    let gpu = if is_tracked { Gpu::tracked() } else { Gpu::new() }?;
    gpu.ramp()?;
    let mut left_out = Vec::new();
    for case in CASES {
        match case.kind.lacks(&gpu) {
            None => case.time(&gpu, &mut Work::new(&gpu, case.kind)?, calls)?,
            Some(why) => left_out.push(LeftOut { case: case.name.to_owned(), why }),
        }
    }
    let snapshot = gpu_time::snapshot();
    let readings = CASES.iter().filter_map(|case| read(&snapshot, case)).collect();
    let device = device(&snapshot)?;
    // The snapshot's proof says what a flush by hand must be.
    let host_cost = match (device.flush_bytes, &device.flush_method) {
        (Some(bytes), Some(method)) if !is_tracked => {
            host_cost::measure(&gpu, method.parse()?, bytes)?
        }
        _ => None,
    };
    Ok(Ours { device, readings, left_out, host_cost })
}

/// The function's series in the cache state with the most samples.
fn read(snapshot: &Snapshot, case: &Case) -> Option<Reading> {
    let site = snapshot.sites().iter().find(|site| {
        site.name().strip_suffix(case.name).is_some_and(|path| path.ends_with("case::"))
    })?;
    let rows = site.series().iter().filter(|series| series.launch().is_none());
    let series = rows.max_by_key(|series| series.measured())?;
    Some(Reading {
        case: case.name.to_owned(),
        cache: series.cache().to_owned(),
        net: series.net_ns().map(figure),
        raw: series.raw_ns().map(figure),
        timed: site.timed(),
        fed: series.fed(),
        starved: series.starved(),
        at_floor: series.at_floor(),
        tracked: series.tracked(),
    })
}

fn figure(stats: &Stats) -> Figure {
    Figure { median: stats.median(), p5: stats.p5(), p95: stats.p95() }
}

fn device(snapshot: &Snapshot) -> Result<Device, Failure> {
    let device = snapshot.devices().first().ok_or("the report names no device")?;
    let flush = device.flush_proof().and_then(FlushProof::clean);
    Ok(Device {
        name: device.name().to_owned(),
        driver: device.driver().map(str::to_owned),
        floor_ns: device.event_floor_ns(),
        bias_ns: device.event_bias_ns(),
        bias_source: device.event_bias_source().map(str::to_owned),
        bias_error_ns: device.event_bias_error_ns(),
        flush_bytes: device.flush_bytes(),
        flush_method: flush.map(|flush| flush.method().to_owned()),
    })
}
