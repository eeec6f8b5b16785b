//! Writes and reads the report as JSON.

mod limits;

use std::{fmt, io};

use serde::{Deserialize, Serialize};
use serde_json::error::Category;
use serde_json::ser::Formatter;

use crate::{Snapshot, schema, tree};

impl Snapshot {
    /// Returns the JSON report.
    pub fn to_json(&self) -> String {
        let mut text = Vec::new();
        let mut serializer = serde_json::Serializer::with_formatter(&mut text, Layout::default());
        // Cannot fail: every key is a string and every value a number, a string or a list.
        _ = self.serialize(&mut serializer);
        String::from_utf8(text).unwrap_or_default()
    }

    /// Reads a JSON report. Floats are exact if the program enables serde_json's `float_roundtrip`
    /// feature; otherwise they may differ in the last bit. Unknown fields are ignored, so reports
    /// from later versions can be read too. Impossible figures, such as negative times, are brought
    /// into range, and control characters in texts are escaped.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not JSON, or not a report of the schema `gpu-time/1`, or if it has more than 16
    /// million values or a name of more than 64 KiB.
    #[inline] // compiled only in crates that call it: a third of this crate's build time
    pub fn from_json(json: &[u8]) -> Result<Snapshot, ReadError> {
        limits::check(json).map_err(|excess| ReadError(format!("too large: {excess}")))?;
        let mut snapshot: Snapshot =
            serde_json::from_slice(json).map_err(|error| ReadError::of(json, error))?;
        snapshot.check();
        for device in &mut snapshot.devices {
            device.used_by.sort_unstable();
            device.used_by.dedup();
        }
        tree::shares::share_out(&mut snapshot.tree, &mut snapshot.sites);
        Ok(snapshot)
    }
}

/// The reason why a text could not be read as a report.
#[derive(Debug)]
pub struct ReadError(String);

impl ReadError {
    fn of(text: &[u8], error: serde_json::Error) -> ReadError {
        #[derive(Deserialize)]
        struct Head {
            schema: Option<String>,
        }
        let syntax = |error: serde_json::Error| match error.classify() {
            Category::Eof => format!("the JSON ends early: {error}"),
            _ => format!("not JSON: {error}"),
        };
        let foreign = "not a report of gpu-time: it has no `schema` name";
        if error.classify() != Category::Data {
            return ReadError(syntax(error));
        }
        // The first error may be a consequence of a different schema, which explains it better.
        ReadError(match serde_json::from_slice(text) {
            Ok(Head { schema: Some(schema) }) if schema == schema::NAME => {
                format!("invalid `{}` report: {error}", schema::NAME)
            }
            Ok(Head { schema: Some(schema) }) => {
                let shown: String = schema.chars().take(40).collect();
                format!("unsupported schema {shown:?}: this version reads `{}`", schema::NAME)
            }
            Ok(Head { schema: None }) => foreign.to_owned(),
            Err(error) if error.classify() == Category::Data => foreign.to_owned(),
            Err(error) => syntax(error),
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

/// A formatter that indents the outer levels for readability and keeps the inner ones compact.
#[derive(Default)]
struct Layout {
    depth: usize,
    /// The current array or object is not empty.
    has_content: bool,
}

impl Layout {
    fn begin<W: io::Write + ?Sized>(&mut self, to: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.has_content = false;
        to.write_all(bracket)
    }

    fn end<W: io::Write + ?Sized>(&mut self, to: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.has_content && self.depth < DEEPEST {
            self.indent(to)?;
        }
        self.has_content = true;
        to.write_all(bracket)
    }

    fn separate<W: io::Write + ?Sized>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if !first {
            to.write_all(b",")?;
        }
        if self.depth <= DEEPEST { self.indent(to) } else { Ok(()) }
    }

    fn indent<W: io::Write + ?Sized>(&self, to: &mut W) -> io::Result<()> {
        to.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| to.write_all(b"  "))
    }
}

impl Formatter for Layout {
    fn begin_array<W: io::Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        self.begin(to, b"[")
    }

    fn end_array<W: io::Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        self.end(to, b"]")
    }

    fn begin_array_value<W: io::Write + ?Sized>(
        &mut self,
        to: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.separate(to, first)
    }

    fn end_array_value<W: io::Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_content = true;
        Ok(())
    }

    fn begin_object<W: io::Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        self.begin(to, b"{")
    }

    fn end_object<W: io::Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        self.end(to, b"}")
    }

    fn begin_object_key<W: io::Write + ?Sized>(
        &mut self,
        to: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.separate(to, first)
    }

    fn begin_object_value<W: io::Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(if self.depth <= DEEPEST { b": " } else { b":" })
    }

    fn end_object_value<W: io::Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_content = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
