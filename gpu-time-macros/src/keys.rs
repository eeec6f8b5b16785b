//! The keys of the attribute, with and without the feature `enabled`, and the messages about them.
//!
//! Imports nothing, because without the feature the macro has no dependencies.

/// A key of the attribute.
pub struct Key {
    pub name: &'static str,
    /// Its accepted forms, for messages.
    pub example: &'static str,
    pub arity: Arity,
}

/// The number of values that a key has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Arity {
    None,
    /// The key is valid with and without a value.
    Optional,
    One,
}

const fn value(name: &'static str, example: &'static str) -> Key {
    Key { name, example, arity: Arity::One }
}

const fn optional(name: &'static str, example: &'static str) -> Key {
    Key { name, example, arity: Arity::Optional }
}

const fn flag(name: &'static str, example: &'static str) -> Key {
    Key { name, example, arity: Arity::None }
}

/// All keys, in the order in which messages list them.
const KEYS: [Key; 17] = [
    value("stream", "`stream = EXPR`"),
    value("name", "`name = \"…\"`"),
    value("warmup", "`warmup = 10`"),
    value("sample", "`sample = 0.01`"),
    value("every", "`every = 100`"),
    optional("cold", "`cold` or `cold = \"dirty\"`"),
    optional("sleep", "`sleep` or `sleep = \"50us\"`"),
    optional("kernels", "`kernels` or `kernels = 0.01`"),
    flag("graph", "`graph`"),
    value("scope", "`scope = \"launches\"` or `scope = \"body\"`"),
    value("launch", "`launch = \"gemm\"` or `launch = [\"gemm\", \"conv\"]`"),
    value(
        "clock",
        "`clock = \"events\"`, `clock = \"sync\"`, `clock = \"host\"` or `clock = \"kernels\"`",
    ),
    value("key", "`key = EXPR`"),
    value("bytes", "`bytes = EXPR`"),
    value("flops", "`flops = EXPR`"),
    value("crate", "`crate = PATH`"),
    flag(SKIP, "`skip`"),
];

/// The key that leaves a function or an inner item untimed.
pub const SKIP: &str = "skip";

/// A name counts as misspelled if it differs from a key by at most this many letters.
const MAX_TYPOS: usize = 2;

impl Key {
    /// Returns the key of this name, or the message for an unknown key.
    pub fn find(name: &str) -> Result<&'static Key, String> {
        let known = KEYS.iter().find(|key| key.name == name);
        known.ok_or_else(|| {
            let hint = match Key::nearest(name) {
                Some(near) => format!("did you mean `{}`?", near.name),
                None => format!("expected one of `{}`", KEYS.map(|key| key.name).join("`, `")),
            };
            format!("unknown key `{name}`: {hint}")
        })
    }

    /// Returns the key that `name` most likely misspells. It shares at least one letter with it.
    fn nearest(name: &str) -> Option<&'static Key> {
        let near = KEYS.iter().map(|key| (distance(key.name, name), key));
        let near = near.filter(|(typos, _)| *typos <= MAX_TYPOS && *typos < name.chars().count());
        near.min_by_key(|(typos, _)| *typos).map(|(_, key)| key)
    }

    /// The message for a key without its value, or with nothing after its `=`.
    pub fn missing_value(&self) -> String {
        match self.arity {
            Arity::None => self.takes_no_value(),
            Arity::Optional => self.expected(),
            Arity::One => format!("`{}` needs a value: {}", self.name, self.example),
        }
    }

    /// The message for a value of the wrong form.
    pub fn expected(&self) -> String {
        format!("expected {}", self.example)
    }

    /// The message for a value of a key that has none.
    pub fn takes_no_value(&self) -> String {
        format!("`{}` takes no value", self.name)
    }

    /// The message for a key that was given before.
    pub fn repeated(&self) -> String {
        format!("`{}` is given twice", self.name)
    }
}

pub const EXPECTED_KEY: &str = "expected a key, such as `warmup = 10`";
pub const EXPECTED_COMMA: &str = "expected `,`";
pub const SKIP_ALONE: &str = "`skip` conflicts with every other key: it leaves the item untimed";
pub const NAME_IS_FIRST: &str = "`name` is given twice: the first argument is the name";
pub const SKIPPED_BLOCK: &str = "`skip` leaves a function out, and cannot be used here";

/// The message for a `name` that is given to an `impl`, `trait` or `mod`.
pub fn name_of_container(keyword: &str) -> String {
    format!("`name` is for one function: give it to a function in this `{keyword}`")
}

/// The message for a key about launches that is given to a guard.
pub fn unseen_by_guard(key: &str) -> String {
    format!(
        "`{key}` needs visible launches, and a guard sees none: write `scope!(\"name\", {{ … }})`"
    )
}

/// Returns the Levenshtein distance: the number of letters to change, add or remove to turn one
/// word into the other.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut above_left = i;
        let mut left = i + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cell, y) in row.iter_mut().skip(1).zip(b.chars()) {
            let above = *cell;
            left = (above_left + usize::from(x != y)).min(above + 1).min(left + 1);
            above_left = above;
            *cell = left;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("warmup", "warmup"), 0);
        assert_eq!(distance("warmup", "warmpu"), 2);
        assert_eq!(distance("launch", "lanch"), 1);
        assert_eq!(distance("cold", "clock"), 3);
        assert_eq!(distance("", "name"), 4);
    }

    #[test]
    fn misspelt_key_suggests_nearest_one() {
        for (name, near) in [
            ("warmpu", Some("warmup")),
            ("skop", Some("skip")),
            ("scop", Some("scope")),
            ("ky", Some("key")),
            ("by", None),
            ("", None),
            ("iterations", None),
        ] {
            assert_eq!(Key::nearest(name).map(|key| key.name), near, "{name}");
        }
    }
}
