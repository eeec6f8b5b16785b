//! What CUPTI says of the cases, in a process of its own in which nothing is timed by us.

use serde::{Deserialize, Serialize};

use crate::case::{CASES, Case, WARMUP};
use crate::cupti::{Activity, Cupti};
use crate::figure::Figure;
use crate::flush::{Flush, Method};
use crate::gpu::Gpu;
use crate::work::Work;
use crate::{Failure, LeftOut};

/// What the process prints.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Truth {
    pub cupti_version: u32,
    pub readings: Vec<Reading>,
    pub left_out: Vec<LeftOut>,
    /// The span of the clean flush.
    pub flush: Option<Figure>,
}

/// The span of a case's work: from the first start of what a call enqueues to the last end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    pub case: String,
    pub span: Figure,
}

/// Records every case so many times; the cold ones after a flush by this method of so many bytes.
pub fn run(calls: u32, method: Method, flush_bytes: u64) -> Result<Truth, Failure> {
    let cupti = Cupti::start()?;
    let gpu = Gpu::new()?;
    let flush = Flush::new(&gpu, method, flush_bytes)?;
    gpu.ramp()?;
    let (mut readings, mut flushes, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for case in CASES {
        if let Some(why) = case.kind.lacks(&gpu) {
            left_out.push(LeftOut { case: case.name.to_owned(), why });
            continue;
        }
        let work = Work::new(&gpu, case.kind)?;
        let records = record(&cupti, &gpu, &flush, case, work, calls)?;
        let all_calls = case.calls(calls);
        let flush_pieces = if case.is_cold() { method.pieces() } else { 0 };
        let (flushed, work) = apart(records, all_calls, flush_pieces);
        if case.is_cold() {
            flushes.extend(spans(&flushed, all_calls)?);
        }
        match span(&work, all_calls) {
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

/// The flushes, so many pieces of work at the beginning of each call, and what comes after them.
fn apart(records: Vec<Activity>, calls: u32, pieces: usize) -> (Vec<Activity>, Vec<Activity>) {
    let of_a_call = (records.len() / calls as usize).max(1);
    let (flushed, work): (Vec<_>, Vec<_>) =
        records.into_iter().enumerate().partition(|(at, _)| at % of_a_call < pieces);
    let without_place =
        |pieces: Vec<(usize, Activity)>| pieces.into_iter().map(|(_, a)| a).collect();
    (without_place(flushed), without_place(work))
}

/// The figure of so many calls, without those that warm up.
fn span(work: &[Activity], calls: u32) -> Result<Figure, Failure> {
    let counted = spans(work, calls)?.split_off(WARMUP as usize);
    Figure::of(counted).ok_or_else(|| "all calls were to warm up".into())
}

/// The span of each of so many calls that made the same number of pieces of work, in order.
pub fn spans(work: &[Activity], calls: u32) -> Result<Vec<f64>, Failure> {
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
    fn a_flush_is_what_a_call_begins_with() {
        let records = vec![
            piece(0, 5),
            piece(6, 9),
            piece(10, 12),
            piece(20, 25),
            piece(26, 29),
            piece(30, 32),
        ];
        let (flushed, work) = apart(records.clone(), 2, 2);
        assert_eq!(spans(&flushed, 2).unwrap(), [9.0, 9.0]);
        assert_eq!(spans(&work, 2).unwrap(), [2.0, 2.0]);
        assert_eq!(apart(records, 2, 0).0, []);
    }

    #[test]
    fn records_that_are_missing_are_no_figure() {
        let work = [piece(0, 5), piece(6, 9), piece(10, 12)];
        let why = spans(&work, 2).unwrap_err().to_string();
        assert_eq!(why, "CUPTI recorded 3 pieces of work in 2 calls");
        assert!(spans(&[], 2).is_err());
    }
}
