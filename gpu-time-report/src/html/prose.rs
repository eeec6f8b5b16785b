//! Sentences of the report as markup.

use maud::{Markup, html};

use crate::units::printable;

/// Renders a sentence. Text between backticks becomes code.
pub fn prose(sentence: &str) -> Markup {
    let parts: Vec<&str> = sentence.split('`').collect();
    // The last backtick of an odd number stands for itself.
    let unpaired = parts.len().is_multiple_of(2);
    html! {
        @for (at, part) in parts.iter().enumerate() {
            @if unpaired && at + 1 == parts.len() {
                "`" (printable(part))
            } @else if at % 2 == 1 {
                code { (printable(part)) }
            } @else {
                (printable(part))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::prose;

    #[test]
    fn paired_backticks_become_code() {
        let html = |text| prose(text).into_string();
        assert_eq!(html("a `<b>` c"), "a <code>&lt;b&gt;</code> c");
        assert_eq!(html("a `b` c`d"), "a <code>b</code> c`d");
        assert_eq!(html("`"), "`");
        assert_eq!(html("a"), "a");
    }
}
