//! The `truth` role: measures the cases with CUPTI, without gpu-time.

use serde::{Deserialize, Serialize};

use crate::case::{CASES, Case, WARMUP};
use crate::cupti::{Activity, Cupti};
use crate::failure::{Failure, Omission};
use crate::figure::Figure;
use crate::flush::{Flush, Method};
use crate::gpu::Gpu;
use crate::work::Work;

/// The result printed by the process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TruthReport {
    pub cupti_version: u32,
    pub readings: Vec<TrueSpan>,
    pub left_out: Vec<Omission>,
    /// The clean flush's span.
    pub flush: Option<Figure>,
}

/// The span for a case: from the first start to the last end among one call's activities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrueSpan {
    pub case: String,
    pub span: Figure,
}

/// Records `calls` calls for every case. Cold cases run after a flush of `flush_bytes` bytes.
pub fn run(calls: u32, method: Method, flush_bytes: u64) -> Result<TruthReport, Failure> {
    let cupti = Cupti::start()?;
    let gpu = Gpu::new()?;
    let flush = Flush::new(&gpu, method, flush_bytes)?;
    gpu.ramp()?;
    let (mut readings, mut flushes, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for case in CASES {
        if let Some(why) = case.kind.missing_requirement(&gpu) {
            left_out.push(Omission { case: case.name.to_owned(), why });
            continue;
        }
        let work = Work::new(&gpu, case.kind)?;
        let records = record(&cupti, &gpu, &flush, case, work, calls)?;
        let total_calls = case.total_calls(calls);
        let flush_commands = if case.is_cold() { method.commands() } else { 0 };
        let (flush_records, work_records) = split_flushes(records, total_calls, flush_commands);
        if case.is_cold() {
            flushes.extend(spans(&flush_records, total_calls)?);
        }
        match span(&work_records, total_calls) {
            Ok(span) => readings.push(TrueSpan { case: case.name.to_owned(), span }),
            // Continue with the other cases. A case without a reading misses its bound.
            Err(why) => eprintln!("CUPTI's span of `{}`: {why}", case.name),
        }
    }
    let flush = Figure::of(flushes);
    Ok(TruthReport { cupti_version: cupti.version(), readings, left_out, flush })
}

fn record(
    cupti: &Cupti,
    gpu: &Gpu,
    flush: &Flush,
    case: &Case,
    mut work: Work,
    calls: u32,
) -> Result<Vec<Activity>, Failure> {
    // The first call may load modules.
    work.launch(&gpu.stream)?;
    gpu.stream.synchronize()?;
    drop(cupti.take()?);
    case.repeat(gpu, calls, || {
        if case.is_cold() {
            flush.launch(gpu)?;
        }
        work.launch(&gpu.stream)
    })?;
    cupti.take()
}

/// Separates the flush records, of which there are `flush_commands` at the start of each call, from
/// the others.
fn split_flushes(
    records: Vec<Activity>,
    calls: u32,
    flush_commands: usize,
) -> (Vec<Activity>, Vec<Activity>) {
    let per_call = (records.len() / calls as usize).max(1);
    let (flushes, work): (Vec<_>, Vec<_>) =
        records.into_iter().enumerate().partition(|(i, _)| i % per_call < flush_commands);
    let without_index =
        |records: Vec<(usize, Activity)>| records.into_iter().map(|(_, record)| record).collect();
    (without_index(flushes), without_index(work))
}

/// Returns the figure for the spans of `calls` calls, excluding the warm-up.
fn span(records: &[Activity], calls: u32) -> Result<Figure, Failure> {
    let spans = spans(records, calls)?.split_off(WARMUP as usize);
    Figure::of(spans).ok_or_else(|| "no calls after the warm-up".into())
}

/// Returns the spans of `calls` calls, in order. Each call must have the same number of records.
pub fn spans(records: &[Activity], calls: u32) -> Result<Vec<f64>, Failure> {
    let (recorded, calls) = (records.len(), calls as usize);
    let per_call = recorded / calls;
    if per_call == 0 || !recorded.is_multiple_of(calls) {
        return Err(format!("CUPTI recorded {recorded} activities in {calls} calls").into());
    }
    let span = |call: &[Activity]| {
        let end = call.iter().map(|record| record.end_ns).max().unwrap_or(0);
        end.saturating_sub(call[0].start_ns) as f64
    };
    Ok(records.chunks(per_call).map(span).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(start_ns: u64, end_ns: u64) -> Activity {
        Activity { kernel: None, start_ns, end_ns }
    }

    #[test]
    fn spans_cover_all_kernels_of_a_call() {
        let work = [record(0, 5), record(6, 9), record(100, 120), record(110, 112)];
        assert_eq!(spans(&work, 2).unwrap(), [9.0, 20.0]);
        assert_eq!(spans(&work, 4).unwrap(), [5.0, 3.0, 20.0, 2.0]);
    }

    #[test]
    fn split_flushes_takes_start_of_each_call() {
        let records = vec![
            record(0, 5),
            record(6, 9),
            record(10, 12),
            record(20, 25),
            record(26, 29),
            record(30, 32),
        ];
        let (flushes, work) = split_flushes(records.clone(), 2, 2);
        assert_eq!(spans(&flushes, 2).unwrap(), [9.0, 9.0]);
        assert_eq!(spans(&work, 2).unwrap(), [2.0, 2.0]);
        assert_eq!(split_flushes(records, 2, 0).0, []);
    }

    #[test]
    fn spans_reject_missing_records() {
        let work = [record(0, 5), record(6, 9), record(10, 12)];
        let why = spans(&work, 2).unwrap_err().to_string();
        assert!(why.contains(" 3 ") && why.contains(" 2 "), "{why}");
        assert!(spans(&[], 2).is_err());
    }
}
