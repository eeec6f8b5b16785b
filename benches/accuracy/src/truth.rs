//! What CUPTI says of the cases, in a process of its own in which nothing is timed by us.

use gpu_time_kernels::FLUSH_READ;
use serde::{Deserialize, Serialize};

use crate::case::{CASES, Case, WARMUP};
use crate::cupti::{Activity, Cupti};
use crate::figure::Figure;
use crate::gpu::{Flush, Gpu};
use crate::work::Work;
use crate::{Failure, LeftOut};

/// What the process prints.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Truth {
    pub cupti_version: u32,
    pub readings: Vec<Reading>,
    pub left_out: Vec<LeftOut>,
    /// The clean flush.
    pub flush: Option<Figure>,
}

/// The span of a case's work: from the first start of what a call enqueues to the last end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    pub case: String,
    pub span: Figure,
}

/// Records every case so many times; the cold ones after a clean flush of so many bytes.
pub fn run(calls: u32, flush_bytes: u64) -> Result<Truth, Failure> {
    let cupti = Cupti::start()?;
    let gpu = Gpu::new()?;
    let flush = Flush::new(&gpu, flush_bytes)?;
    gpu.ramp()?;
    let (mut readings, mut flushes, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for case in CASES {
        if let Some(why) = case.kind.lacks(&gpu) {
            left_out.push(LeftOut { case: case.name.to_owned(), why });
            continue;
        }
        let work = Work::new(&gpu, case.kind)?;
        let records = record(&cupti, &gpu, &flush, case, work, calls)?;
        let (flushed, work): (Vec<_>, Vec<_>) = records.into_iter().partition(is_flush);
        flushes.extend(flushed.iter().map(|flush| flush.duration_ns() as f64));
        match span(&work, case.calls(calls)) {
            Ok(span) => readings.push(Reading { case: case.name.to_owned(), span }),
            // The others are still worth having; a case without a reading misses its bound.
            Err(why) => eprintln!("truth of `{}`: {why}", case.name),
        }
    }
    let flush = Figure::of(flushes);
    Ok(Truth { cupti_version: cupti.version(), readings, left_out, flush })
}

fn record(
    cupti: &Cupti,
    gpu: &Gpu,
    flush: &Flush,
    case: &Case,
    mut work: Work,
    calls: u32,
) -> Result<Vec<Activity>, Failure> {
    // A first call may load what it needs.
    work.launch(&gpu.stream)?;
    gpu.stream.synchronize()?;
    drop(cupti.take()?);
    case.make(gpu, calls, || {
        if case.is_cold() {
            flush.launch(gpu)?;
        }
        work.launch(&gpu.stream)
    })?;
    cupti.take()
}

fn is_flush(activity: &Activity) -> bool {
    activity.kernel.as_deref().is_some_and(|name| name.as_bytes() == FLUSH_READ.to_bytes())
}

/// The figure of so many calls, without those that warm up.
fn span(work: &[Activity], calls: u32) -> Result<Figure, Failure> {
    let counted = spans(work, calls)?.split_off(WARMUP as usize);
    Figure::of(counted).ok_or_else(|| "all calls were to warm up".into())
}

/// The span of each of so many calls that made the same number of pieces of work, in order.
fn spans(work: &[Activity], calls: u32) -> Result<Vec<f64>, Failure> {
    let calls = calls as usize;
    let pieces = work.len() / calls;
    if pieces == 0 || !work.len().is_multiple_of(calls) {
        return Err(format!("CUPTI recorded {} pieces of work in {calls} calls", work.len()).into());
    }
    let span = |call: &[Activity]| {
        let end = call.iter().map(|piece| piece.end_ns).max().unwrap_or(0);
        end.saturating_sub(call[0].start_ns) as f64
    };
    Ok(work.chunks(pieces).map(span).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(start_ns: u64, end_ns: u64) -> Activity {
        Activity { kernel: None, start_ns, end_ns }
    }

    #[test]
    fn a_call_of_several_kernels_is_one_span() {
        let work = [piece(0, 5), piece(6, 9), piece(100, 120), piece(110, 112)];
        assert_eq!(spans(&work, 2).unwrap(), [9.0, 20.0]);
        assert_eq!(spans(&work, 4).unwrap(), [5.0, 3.0, 20.0, 2.0]);
    }

    #[test]
    fn records_that_are_missing_are_no_figure() {
        let work = [piece(0, 5), piece(6, 9), piece(10, 12)];
        let why = spans(&work, 2).unwrap_err().to_string();
        assert_eq!(why, "CUPTI recorded 3 pieces of work in 2 calls");
        assert!(spans(&[], 2).is_err());
    }
}
