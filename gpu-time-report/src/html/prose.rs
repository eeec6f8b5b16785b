//! Sentences and names of the report as markup.

use maud::{Markup, html};

use crate::units::printable;

/// Renders a sentence. Text between backticks becomes code.
pub fn prose(sentence: &str) -> Markup {
    let parts: Vec<&str> = sentence.split('`').collect();
    // If the number of backticks is odd, the last one stands for itself.
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

/// Renders a name. A line that is too short for it preferably ends after `::`.
pub fn path(name: &str) -> Markup {
    let name = printable(name);
    html! {
        @for (at, segment) in name.split("::").enumerate() {
            @if at > 0 { "::" wbr; }
            (segment)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{path, prose};

    #[test]
    fn names_may_break_after_colons() {
        assert_eq!(path("a::<b>::c").into_string(), "a::<wbr>&lt;b&gt;::<wbr>c");
        assert_eq!(path("a").into_string(), "a");
    }

    #[test]
    fn paired_backticks_become_code() {
        let html = |text| prose(text).into_string();
        assert_eq!(html("a `<b>` c"), "a <code>&lt;b&gt;</code> c");
        assert_eq!(html("a `b` c`d"), "a <code>b</code> c`d");
        assert_eq!(html("`"), "`");
        assert_eq!(html("a"), "a");
    }
}
