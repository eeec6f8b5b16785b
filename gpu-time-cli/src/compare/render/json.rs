//! A comparison as JSON.

use serde::Serialize;

use crate::compare::comparison::Comparison;

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
    #[serde(flatten)]
    comparison: &'a Comparison<'a>,
}

/// Renders a comparison. Its control becomes a field of it.
pub fn text(comparison: &Comparison, control: Option<&Comparison>) -> String {
    let document =
        Document { schema: SCHEMA, result: result(comparison), control: control.map(result) };
    // Cannot fail: every key is a string and every value a number, a string or a list.
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

fn result<'a>(comparison: &'a Comparison<'a>) -> Result<'a> {
    let [slower, faster, same, unknown] = comparison.counts();
    Result { slower, faster, same, unknown, comparison }
}
