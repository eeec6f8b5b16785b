//! Bounds on the JSON that is read, so that a report from elsewhere takes at most some times its own size of memory.

use std::slice::Iter;

use crate::checked::MAX_TEXT;
use crate::units::count;

/// The maximum number of values. A report of 500 series has some 500,000.
const MAX_VALUES: u64 = 16 << 20;

/// # Errors
///
/// The limit that the text exceeds, and what it has.
#[inline] // as `from_json`
pub fn check(json: &[u8]) -> Result<(), String> {
    let (mut values, mut longest) = (0, 0);
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b',' | b'[' | b'{' => values += 1,
            b'"' => longest = longest.max(rest_of_text(&mut bytes)),
            _ => {}
        }
    }
    let [max_values, max_text] = [MAX_VALUES, MAX_TEXT as u64];
    let excess = if values > max_values {
        Some((values, "values", max_values))
    } else if longest > max_text {
        Some((longest, "bytes in a name or another text", max_text))
    } else {
        None
    };
    excess.map_or(Ok(()), |(found, what, most)| {
        Err(format!("{} {what}: at most {} are read", count(found), count(most)))
    })
}

/// Reads to the end of a text. Returns its length in bytes, in which an escaped quote is one.
fn rest_of_text(bytes: &mut Iter<'_, u8>) -> u64 {
    let mut length = 0;
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => break,
            b'\\' => _ = bytes.next(),
            _ => {}
        }
        length += 1;
    }
    length
}
