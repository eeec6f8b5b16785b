//! Recognises `let _ = guard!(…)`, which would end the call at once. The compiler suggests it for a guard that is not
//! bound to anything.
//!
//! Imports nothing else, because without the feature the macro has no dependencies.

use std::fs;

use proc_macro::Span;

/// The error for such a guard.
pub const MESSAGE: &str =
    "`let _` would end the call at once: bind the guard to a name, as in `let _guard = …`";

/// Returns `true` if the macro call at this span is the value of a `let _`. A macro sees only its own tokens, so this
/// looks at the source before them.
pub fn is_unbound(call: Span) -> bool {
    let source = call.local_file().and_then(|path| fs::read_to_string(path).ok());
    source.is_some_and(|source| {
        let mut lines = source.split_inclusive('\n');
        let mut before: String = lines.by_ref().take(call.line().saturating_sub(1)).collect();
        let line = lines.next().unwrap_or_default().chars();
        before.extend(line.take(call.column().saturating_sub(1)));
        ends_in_wildcard(&before)
    })
}

fn ends_in_wildcard(source: &str) -> bool {
    let without = |text: &str, end: &str| text.trim_end().strip_suffix(end).map(str::to_owned);
    let before = without(source, "=").and_then(|text| without(&text, "_"));
    let keyword = before.filter(|text| text.ends_with(char::is_whitespace));
    let before = keyword.and_then(|text| without(&text, "let"));
    before.is_some_and(|text| !text.ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::ends_in_wildcard;

    #[test]
    fn only_a_wildcard_binds_nothing() {
        for source in ["let _ = ", "{let\n_=", "x;\n    let _  =\n        "] {
            assert!(ends_in_wildcard(source), "{source}");
        }
        for source in ["let _timed = ", "let x = ", "outlet _ = ", "let __ =", "_ = ", "f(", ""] {
            assert!(!ends_in_wildcard(source), "{source}");
        }
    }
}
