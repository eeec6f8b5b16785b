//! A comparison as JSON.

use serde::Serialize;

use crate::compare::comparison::Comparison;

/// The name of the format. Later versions may add fields.
const SCHEMA: &str = "gpu-time-comparison/1";

/// A comparison with its numbers of verdicts.
#[derive(Serialize)]
struct Document<'a> {
    /// The name of the format; only of the outer document.
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<&'static str>,
    slower: usize,
    faster: usize,
    same: usize,
    unknown: usize,
    #[serde(flatten)]
    comparison: &'a Comparison<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    control: Option<Box<Document<'a>>>,
}

/// Renders a comparison. Its control becomes a field of it.
pub fn text(comparison: &Comparison, control: Option<&Comparison>) -> String {
    let control = control.map(|control| Box::new(document(control)));
    let document = Document { schema: Some(SCHEMA), control, ..document(comparison) };
    // Cannot fail: every key is a string and every value a number, a string or a list.
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

fn document<'a>(comparison: &'a Comparison<'a>) -> Document<'a> {
    let [slower, faster, same, unknown] = comparison.counts();
    Document { schema: None, slower, faster, same, unknown, comparison, control: None }
}
