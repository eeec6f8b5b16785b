//! Shortens long names in the middle, keeping them distinguishable.

use std::collections::HashMap;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The length of the part kept at the beginning, in twelfths of the short form, for each attempt.
/// The end of a name is more informative than its beginning.
const HEADS: [usize; 4] = [4, 6, 8, 10];

/// Returns a short form for each text. It is at most `columns` wide, unless it would look the same
/// as another text.
pub fn shortened<'a>(
    texts: impl Iterator<Item = &'a str>,
    columns: usize,
) -> HashMap<&'a str, String> {
    let mut short: HashMap<&str, (usize, String)> =
        texts.map(|text| (text, (0, cut(text, columns, 0)))).collect();
    loop {
        let mut seen: HashMap<String, u32> = HashMap::new();
        short.values().for_each(|(_, cut)| *seen.entry(cut.clone()).or_default() += 1);
        let mut is_done = true;
        for (text, (attempt, shown)) in &mut short {
            if shown != text && seen.get(shown).is_some_and(|&count| count > 1) {
                is_done = false;
                *attempt += 1;
                *shown = cut(text, columns, *attempt);
            }
        }
        if is_done {
            return short.into_iter().map(|(text, (_, shown))| (text, shown)).collect();
        }
    }
}

/// Returns the beginning and the end of the text, split differently on each attempt. The width
/// doubles after every [`HEADS`] attempts, so the last attempt returns the whole text.
fn cut(text: &str, columns: usize, attempt: usize) -> String {
    let doubled = u32::try_from(attempt / HEADS.len()).unwrap_or(u32::MAX);
    let columns = columns.max(1).saturating_mul(2usize.saturating_pow(doubled));
    if text.width() <= columns {
        return text.to_owned();
    }
    let room = columns - 1;
    let head = HEADS.get(attempt % HEADS.len()).map_or(0, |twelfths| room * twelfths / 12);
    let mut tail: Vec<char> = fitting(text.chars().rev(), room - head).collect();
    tail.reverse();
    String::from_iter(fitting(text.chars(), head)) + "…" + &String::from_iter(tail)
}

/// Returns the longest prefix of the characters that fits.
fn fitting(chars: impl Iterator<Item = char>, mut room: usize) -> impl Iterator<Item = char> {
    chars.map_while(move |c| {
        room = room.checked_sub(c.width().unwrap_or_default())?;
        Some(c)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(texts: &[&str], columns: usize) -> Vec<String> {
        let short = shortened(texts.iter().copied(), columns);
        texts.iter().map(|text| short[text].clone()).collect()
    }

    #[test]
    fn shortened_cuts_only_wide_names() {
        assert_eq!(
            all(&["short", "model::decoder::attention::forward"], 16),
            ["short", "model…n::forward"]
        );
        assert_eq!(all(&["", "ab"], 0), ["", "…"]);
    }

    #[test]
    fn shortened_names_stay_distinct() {
        let names: Vec<String> =
            (0..300).map(|i| format!("model::decoder::layer_{i}::forward")).collect();
        let texts: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut short = all(&texts, 20);
        assert!(short.iter().all(|text| text.width() <= 20), "{short:?}");
        short.sort();
        short.dedup();
        assert_eq!(short.len(), 300);
        // A name that looks like a shortened one cannot be mistaken for it.
        assert_eq!(all(&["ab…gh", "abcdefgh"], 5), ["ab…gh", "a…fgh"]);
        assert_eq!(all(&["a…fgh", "abcdefgh"], 5)[0], "a…fgh");
        assert_ne!(all(&["a…fgh", "abcdefgh"], 5)[1], "a…fgh");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let [short] = &all(&["名前名前名前名前名前"], 9)[..] else { panic!() };
        assert_eq!(short, "名…前名前");
        assert!(short.width() <= 9);
    }
}
