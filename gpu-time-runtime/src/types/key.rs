//! Values of the attribute's `key`, which divides a site's samples into series.

use std::fmt::{self, Display, Write};
use std::sync::OnceLock;

/// The maximum number of distinct values per site.
const MAX_KEYS: usize = 64;
/// The maximum number of bytes kept from a value's text.
const LONGEST: usize = 96;
/// The mark that ends a truncated text. It is followed by eight hash digits, computed from the
/// whole text, which distinguish texts with the same beginning.
const CUT: &str = "…";
const CUT_BYTES: usize = CUT.len() + 8;
/// The text that all further values share.
const OTHER: &str = "<other>";

/// The text of one value, stored without allocating.
///
/// Invariant: the first `len` bytes are the text, in UTF-8.
pub struct KeyText {
    len: usize,
    bytes: [u8; LONGEST],
    /// The hash of the whole text, if the text does not fit.
    hash: Option<Hash>,
}

/// An FNV-1a hash. It is the same in every build, so reports from different builds agree.
#[derive(Clone, Copy)]
struct Hash(u32);

impl Hash {
    const NONE: Hash = Hash(0x811c_9dc5);

    fn and(self, bytes: &[u8]) -> Hash {
        let step = |hash: u32, &byte: &u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        Hash(bytes.iter().fold(self.0, step))
    }
}

impl KeyText {
    /// Formats the value, truncating a long text. If `Display` fails, keeps the text written so
    /// far.
    pub fn of<V: Display + ?Sized>(value: &V) -> KeyText {
        let mut text = KeyText { len: 0, bytes: [0; LONGEST], hash: None };
        // Fails only if the value's `Display` does.
        _ = write!(text, "{value}");
        if let Some(Hash(hash)) = text.hash.take() {
            // `CUT_BYTES` have been left free.
            _ = write!(text, "{CUT}{hash:08x}");
        }
        text
    }

    fn as_str(&self) -> &str {
        str::from_utf8(self.bytes.get(..self.len).unwrap_or_default()).unwrap_or_default()
    }

    fn push(&mut self, part: &str) {
        if let Some(room) = self.bytes.get_mut(self.len..self.len + part.len()) {
            room.copy_from_slice(part.as_bytes());
            self.len += part.len();
        }
    }
}

impl Write for KeyText {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.hash.is_none() && self.len + part.len() <= LONGEST {
            self.push(part);
            return Ok(());
        }
        if self.hash.is_none() {
            self.hash = Some(Hash::NONE.and(self.as_str().as_bytes()));
            let room = LONGEST - CUT_BYTES;
            match room.checked_sub(self.len) {
                Some(room) => self.push(fitting(part, room)),
                // The text already extends into the space reserved for the mark.
                None => self.len = fitting(self.as_str(), room).len(),
            }
        }
        self.hash = self.hash.map(|hash| hash.and(part.as_bytes()));
        Ok(())
    }
}

/// Returns the longest prefix that fits into `room` bytes.
fn fitting(text: &str, room: usize) -> &str {
    let end = (0..=room.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    text.get(..end.unwrap_or_default()).unwrap_or_default()
}

/// A number that identifies a key value within its site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SeriesKey(u8);

impl SeriesKey {
    /// The key for calls without a value.
    pub const NONE: SeriesKey = SeriesKey(0);
    /// The key for all values beyond the first [`MAX_KEYS`].
    pub const OTHER: SeriesKey = SeriesKey(MAX_KEYS as u8 + 1);

    /// Returns the number, which is at most [`MAX_KEYS`] + 1.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A site's key values, in order of first use. They are never removed, so a call can find its value
/// without a lock.
pub(crate) struct Keys(OnceLock<Box<[OnceLock<Box<str>>; MAX_KEYS]>>);

impl Keys {
    pub const fn new() -> Self {
        Keys(OnceLock::new())
    }

    /// Returns the value's number, assigning one on first use.
    pub fn find(&self, text: &KeyText) -> SeriesKey {
        let text = text.as_str();
        if text == OTHER {
            return SeriesKey::OTHER;
        }
        let names = self.0.get_or_init(|| Box::new([const { OnceLock::new() }; MAX_KEYS]));
        // If another thread claims a place for a different value first, the search continues.
        let at = names.iter().position(|name| {
            let known: &str = name.get_or_init(|| text.into());
            known == text
        });
        at.map_or(SeriesKey::OTHER, |at| SeriesKey(at as u8 + 1))
    }

    /// Returns the text of the value with this key.
    pub fn text(&self, key: SeriesKey) -> Option<&str> {
        match key {
            SeriesKey::NONE => None,
            SeriesKey::OTHER => Some(OTHER),
            SeriesKey(number) => Some(self.0.get()?.get(usize::from(number) - 1)?.get()?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn further_values_share_one_number() {
        let keys = Keys::new();
        let find = |value: usize| keys.find(&KeyText::of(&value));
        let numbers: Vec<SeriesKey> = (0..70).map(find).collect();
        assert_eq!(numbers, (0..70).map(find).collect::<Vec<_>>());
        assert_eq!(keys.text(numbers[63]), Some("63"));
        assert!(numbers[64..].iter().all(|&key| keys.text(key) == Some("<other>")));
        assert_eq!(keys.text(SeriesKey::NONE), None);
        // A value with this text gets the same number, so no two series have the same name.
        assert_eq!(keys.find(&KeyText::of("<other>")), numbers[64]);
    }

    #[test]
    fn threads_agree_on_numbers() {
        let keys = Keys::new();
        let find = || (0..30usize).map(|value| keys.find(&KeyText::of(&(value % 15)))).collect();
        let found: Vec<Vec<SeriesKey>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(find)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(found.iter().all(|numbers| *numbers == found[0]));
    }

    #[test]
    fn failing_display_keeps_what_it_wrote() {
        struct Fails;
        impl Display for Fails {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("half")?;
                Err(fmt::Error)
            }
        }
        assert_eq!(KeyText::of(&Fails).as_str(), "half");
    }

    #[test]
    fn long_texts_with_same_beginning_differ() {
        let keys = Keys::new();
        let texts = [1, 2, 3].map(|last| KeyText::of(&format!("{}{last}", "shape".repeat(20))));
        let found = texts.map(|text| {
            let key = keys.find(&text);
            assert_eq!(key, keys.find(&text));
            keys.text(key).unwrap()
        });
        let begin = "shape".repeat(17);
        assert_eq!(found, ["e189ccc0", "e489d179", "e389cfe6"].map(|end| format!("{begin}…{end}")));
    }

    proptest! {
        #[test]
        fn long_text_is_cut_at_character_boundary(parts in prop::collection::vec("\\PC{0,40}", 0..9)) {
            struct Parts(Vec<String>);
            impl Display for Parts {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    self.0.iter().try_for_each(|part| f.write_str(part))
                }
            }
            let whole = parts.concat();
            let text = KeyText::of(&Parts(parts));
            if whole.len() <= LONGEST {
                prop_assert_eq!(text.as_str(), whole);
            } else {
                let (cell, hash) = text.as_str().rsplit_once(CUT).unwrap();
                prop_assert!(whole.starts_with(cell));
                prop_assert!(cell.len() > LONGEST - CUT_BYTES - 4 && text.len <= LONGEST);
                // The hash does not depend on how the text was split.
                prop_assert_eq!(hash, format!("{:08x}", Hash::NONE.and(whole.as_bytes()).0));
            }
        }
    }
}
