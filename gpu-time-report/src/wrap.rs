//! Breaks text into lines.

use unicode_width::UnicodeWidthStr;

/// Precedes all lines of a text but the first.
const INDENT: &str = "    ";

/// Breaks a text at spaces so that its lines fit the terminal, if its width is known. Indents all
/// lines but the first.
pub fn wrapped(text: &str, columns: Option<usize>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_inclusive(' ') {
        match lines.last_mut() {
            Some(last)
                if columns.is_none_or(|most| last.width() + word.trim_end().width() <= most)
                    || last.trim_start().is_empty() =>
            {
                last.push_str(word)
            }
            Some(_) => lines.push(format!("{INDENT}{word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}
