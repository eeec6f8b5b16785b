//! Shortens long names in the middle, keeping them distinguishable.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The length of the part kept at the beginning, in twelfths of the short form, for each attempt.
/// The end of a name is more informative than its beginning.
const HEADS: [usize; 4] = [4, 6, 8, 10];

/// Returns a short form for each text. It is at most `columns` wide, unless it would look the same
/// as another text.
pub fn shortened(texts: &[&str], columns: usize) -> Vec<String> {
    let first = |texts: &[&str]| texts.iter().map(|text| cut(text, columns, 0)).collect();
    told_apart(texts, &first, &|text, attempt| cut(text, columns, attempt))
}

/// Returns a form for each text: of those that `first` returns for all different texts, in order, and of later attempts for
/// texts that would look the same. The last attempt must return the whole text.
pub fn told_apart(
    texts: &[&str],
    first: &dyn Fn(&[&str]) -> Vec<String>,
    next: &dyn Fn(&str, usize) -> String,
) -> Vec<String> {
    let mut different = texts.to_vec();
    different.sort_unstable();
    different.dedup();
    let mut forms = first(&different);
    for attempt in 1.. {
        let mut shown: Vec<&str> = forms.iter().map(String::as_str).collect();
        shown.sort_unstable();
        let is_twice = |form: &str| {
            shown[shown.partition_point(|other| *other < form)..].get(1) == Some(&form)
        };
        let places = 0..different.len();
        let again: Vec<usize> =
            places.filter(|&at| forms[at] != different[at] && is_twice(&forms[at])).collect();
        if again.is_empty() {
            break;
        }
        again.into_iter().for_each(|at| forms[at] = next(different[at], attempt));
    }
    let form = |text: &&str| different.binary_search(text).map(|at| forms[at].clone());
    texts.iter().map(|text| form(text).unwrap_or_default()).collect()
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

    #[test]
    fn shortened_cuts_only_wide_names() {
        assert_eq!(
            shortened(&["short", "model::decoder::attention::forward"], 16),
            ["short", "model…n::forward"]
        );
        assert_eq!(shortened(&["", "ab"], 0), ["", "…"]);
    }

    #[test]
    fn shortened_names_stay_distinct() {
        let names: Vec<String> =
            (0..300).map(|i| format!("model::decoder::layer_{i}::forward")).collect();
        let texts: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut short = shortened(&texts, 20);
        assert!(short.iter().all(|text| text.width() <= 20), "{short:?}");
        short.sort();
        short.dedup();
        assert_eq!(short.len(), 300);
        // A name that looks like a shortened one cannot be mistaken for it.
        assert_eq!(shortened(&["ab…gh", "abcdefgh"], 5), ["ab…gh", "a…fgh"]);
        assert_eq!(shortened(&["a…fgh", "abcdefgh"], 5)[0], "a…fgh");
        assert_ne!(shortened(&["a…fgh", "abcdefgh"], 5)[1], "a…fgh");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let [short] = &shortened(&["名前名前名前名前名前"], 9)[..] else { panic!() };
        assert_eq!(short, "名…前名前");
        assert!(short.width() <= 9);
    }
}
