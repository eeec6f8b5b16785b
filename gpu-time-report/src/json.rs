//! Writes and reads the report as JSON.

mod limits;

use std::fmt;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::error::Category;

use crate::checked::check_keys;
use crate::shorten::shortened;
use crate::{Node, Snapshot, schema, tree, units};

impl Snapshot {
    /// Returns the JSON report.
    pub fn to_json(&self) -> String {
        // Cannot fail: every key is a string and every value a number, a string or a list.
        laid_out(&serde_json::to_string(self).unwrap_or_default())
    }

    /// Reads a JSON report. Floats are exact if the program enables serde_json's `float_roundtrip`
    /// feature; otherwise they may differ in the last bit. Unknown fields are ignored, so reports
    /// from later versions can be read too. Impossible figures, such as negative times, are brought
    /// into range, and control characters in texts are escaped.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not JSON, or not a report of the schema `gpu-time/1`, or if it has more than 16
    /// million values, a name of more than 64 KiB, paths of more than 64 functions, or more than 1,024 devices.
    #[inline] // compiled only in crates that call it: a third of this crate's build time
    pub fn from_json(json: &[u8]) -> Result<Snapshot, ReadError> {
        limits::check(json).map_err(|excess| ReadError(format!("too large: {excess}")))?;
        let mut snapshot: Snapshot =
            serde_json::from_slice(json).map_err(|error| ReadError::of(json, error))?;
        let levels = tree::depth_first(&snapshot.tree).map(|(_, depth)| depth + 1).max();
        for (found, what, most) in [
            (levels.unwrap_or_default(), "levels of calls", Node::MAX_LEVELS),
            (snapshot.devices.len(), "devices", Snapshot::MAX_DEVICES),
        ] {
            if found > most {
                let [found, most] = [found, most].map(|count| units::count(count as u64));
                let why = format!("too large: {found} {what}: at most {most} are read");
                return Err(ReadError(why));
            }
        }
        snapshot.check();
        snapshot.tree.iter_mut().for_each(|node| check_keys(&mut node.self_ns_by_device));
        for device in &mut snapshot.devices {
            device.throttle.iter_mut().for_each(check_keys);
            device.used_by.sort_unstable();
            device.used_by.dedup();
        }
        tree::shares::share_out(&mut snapshot.tree, &mut snapshot.sites);
        Ok(snapshot)
    }
}

/// The width in columns of the longest reason why a report is invalid.
const WIDEST_REASON: usize = 200;

/// What an invalid report is looked at for. Nothing else of it is kept in memory.
#[derive(Deserialize)]
struct Named {
    schema: String,
}

/// The reason why a text could not be read as a report.
#[derive(Debug)]
pub struct ReadError(String);

impl ReadError {
    #[inline] // as `from_json`
    fn of(text: &[u8], error: serde_json::Error) -> ReadError {
        let syntax = |error: serde_json::Error| match error.classify() {
            Category::Eof => format!("the JSON ends early: {error}"),
            _ => format!("not JSON: {error}"),
        };
        let foreign = "not a report of gpu-time: it has no `schema` name";
        if error.classify() != Category::Data {
            return ReadError(syntax(error));
        }
        // The first error may be a consequence of a different schema, which explains it better.
        if let Err(error) = serde_json::from_slice::<IgnoredAny>(text) {
            return ReadError(syntax(error));
        }
        ReadError(match serde_json::from_slice(text) {
            Ok(Named { schema }) if schema == schema::NAME => {
                // It may repeat a long value of the report.
                let why = shortened(&[&error.to_string()], WIDEST_REASON).concat();
                format!("invalid `{}` report: {why}", schema::NAME)
            }
            Ok(Named { schema }) => {
                let shown: String = schema.chars().take(40).collect();
                format!("unsupported schema {shown:?}: this version reads `{}`", schema::NAME)
            }
            Err(_) => foreign.to_owned(),
        })
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ReadError {}

/// The depth down to which each value gets its own line: this includes the members of a series, but
/// not the values inside them.
const DEEPEST: usize = 5;

/// Gives the values of the outer levels a line each, for readability, and keeps the inner ones compact.
fn laid_out(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let (mut depth, mut is_in_text, mut is_escaped, mut is_first) = (0, false, false, false);
    let new_line = |text: &mut String, depth: usize| {
        text.push('\n');
        text.extend(std::iter::repeat_n("  ", depth));
    };
    for c in json.chars() {
        if is_in_text {
            text.push(c);
            is_in_text = c != '"' || is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            continue;
        }
        let is_end = matches!(c, '}' | ']');
        depth -= usize::from(is_end);
        let is_empty = std::mem::take(&mut is_first) && is_end;
        let breaks_before = is_end || text.ends_with(['{', '[', ',']);
        if breaks_before && !is_empty && depth + usize::from(is_end) <= DEEPEST {
            new_line(&mut text, depth);
        }
        text.push(c);
        match c {
            '{' | '[' => (depth, is_first) = (depth + 1, true),
            ':' if depth <= DEEPEST => text.push(' '),
            '"' => is_in_text = true,
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests;
