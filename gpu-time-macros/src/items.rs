//! The items that can be annotated, with and without the feature `enabled`, and the message for
//! all others.
//!
//! Imports nothing, because without the feature the macro has no dependencies.

pub const NO_BLOCK: &str = "expected a block at the end: `scope!(\"name\", { … })`";

/// The kind of an item, with the position of its keyword.
#[derive(Debug, PartialEq)]
pub enum Item {
    /// A function, whose `fn` is at this index.
    Function(usize),
    /// An `impl`, `trait` or `mod`, whose keyword is at this index.
    Container(usize),
    /// Another item, whose keyword is at this index.
    Other(usize),
    Unknown,
}

/// Classifies an item by the identifiers of its header that are outside of all delimiters.
pub fn item(words: &[String]) -> Item {
    const QUALIFIERS: [&str; 8] =
        ["pub", "default", "const", "async", "gen", "unsafe", "safe", "extern"];
    const CONTAINERS: [&str; 3] = ["impl", "trait", "mod"];
    const KEYWORDS: [&str; 12] = [
        "struct",
        "enum",
        "union",
        "trait",
        "impl",
        "mod",
        "type",
        "use",
        "static",
        "const",
        "extern",
        "macro_rules",
    ];
    let position = |is: &dyn Fn(&str) -> bool| words.iter().position(|word| is(word));
    match position(&|word| !QUALIFIERS.contains(&word)) {
        Some(0) if words.first().is_some_and(|word| word == "let") => Item::Unknown,
        Some(at) if words.get(at).is_some_and(|word| word == "fn") => Item::Function(at),
        _ => match position(&|word| KEYWORDS.contains(&word)) {
            Some(at) if words.get(at).is_some_and(|word| CONTAINERS.contains(&word.as_str())) => {
                Item::Container(at)
            }
            Some(at) => Item::Other(at),
            None => Item::Unknown,
        },
    }
}

/// The message for anything else. `keyword` is the keyword of an item, or `None` for a statement or
/// an expression.
pub fn not_annotated(keyword: Option<&str>) -> String {
    let expected = "expected a function, an `impl`, a `trait` or a `mod`";
    match keyword {
        Some(keyword) => format!("{expected}, found `{keyword}`"),
        None => format!(
            "{expected}: to time what a closure or a block does, write \
             `gpu_time::scope!(\"name\", {{ … }})` in it"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{Item, item};

    #[test]
    fn items() {
        for (header, expected) in [
            ("fn f", Item::Function(0)),
            ("pub default unsafe extern fn f", Item::Function(4)),
            ("pub const async fn f const N usize", Item::Function(3)),
            ("static F fn", Item::Other(0)),
            ("pub const F fn", Item::Other(1)),
            ("unsafe extern", Item::Other(1)),
            ("unsafe impl Send for fn", Item::Container(1)),
            ("pub mod m", Item::Container(1)),
            ("type F impl Fn", Item::Other(0)),
            ("f", Item::Unknown),
            ("let f impl", Item::Unknown),
            ("move", Item::Unknown),
            ("", Item::Unknown),
        ] {
            let words: Vec<String> = header.split_whitespace().map(str::to_owned).collect();
            assert_eq!(item(&words), expected, "{header}");
        }
    }
}
