//! A comparison as JSON.

use serde::Serialize;

use crate::compare::change::Verdict;
use crate::compare::comparison::{Comparison, Row};

/// The name of the format. Later versions may add fields.
const SCHEMA: &str = "gpu-time-comparison/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    #[serde(flatten)]
    result: Result<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    control: Option<Result<'a>>,
}

#[derive(Serialize)]
struct Result<'a> {
    slower: usize,
    faster: usize,
    same: usize,
    unknown: usize,
    series: Vec<SeriesChange<'a>>,
    only_in_base: &'a [String],
    only_in_new: &'a [String],
    notes: &'a [String],
}

#[derive(Serialize)]
struct SeriesChange<'a> {
    name: &'a str,
    base_median_ns: f64,
    new_median_ns: f64,
    /// The numbers of runs, or of blocks of an experiment, of the base and of the new program.
    runs: [usize; 2],
    change: Option<f64>,
    interval95: Option<[f64; 2]>,
    p_value: Option<f64>,
    verdict: Verdict,
    #[serde(skip_serializing_if = "str::is_empty")]
    why: &'static str,
}

/// Renders a comparison. Its control becomes a field of it.
pub fn text(comparison: &Comparison, control: Option<&Comparison>) -> String {
    let document =
        Document { schema: SCHEMA, result: result(comparison), control: control.map(result) };
    // Cannot fail: every key is a string and every value a number, a string or a list.
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

fn result<'a>(comparison: &'a Comparison) -> Result<'a> {
    Result {
        slower: comparison.count(Verdict::Slower),
        faster: comparison.count(Verdict::Faster),
        same: comparison.count(Verdict::Same),
        unknown: comparison.count(Verdict::Unknown),
        series: comparison.rows.iter().map(series).collect(),
        only_in_base: &comparison.missing,
        only_in_new: &comparison.added,
        notes: &comparison.notes,
    }
}

fn series<'a>(row: &'a Row) -> SeriesChange<'a> {
    let change = &row.change;
    let [base_median_ns, new_median_ns] = change.medians_ns;
    SeriesChange {
        name: &row.name,
        base_median_ns,
        new_median_ns,
        runs: change.runs,
        change: change.share,
        interval95: change.interval,
        p_value: change.p_value,
        verdict: change.verdict,
        why: change.why,
    }
}
