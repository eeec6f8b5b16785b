//! A comparison as JSON.

use serde_json::Value;

use crate::compare::comparison::Comparison;

/// The name of the format. Later versions may add fields.
const SCHEMA: &str = "gpu-time-comparison/1";

/// Renders a comparison. Its control becomes a field of it.
pub fn text(comparison: &Comparison, control: Option<&Comparison>) -> String {
    let mut outer = document(comparison);
    outer["schema"] = SCHEMA.into();
    if let Some(control) = control {
        outer["control"] = document(control);
    }
    format!("{outer:#}\n")
}

/// Returns a comparison with its numbers of verdicts.
fn document(comparison: &Comparison) -> Value {
    // Cannot fail: every key is a string and every value a number, a string or a list.
    let mut document = serde_json::to_value(comparison).unwrap_or_default();
    for (name, count) in ["slower", "faster", "same", "unknown"].iter().zip(comparison.counts()) {
        document[name] = count.into();
    }
    document
}
