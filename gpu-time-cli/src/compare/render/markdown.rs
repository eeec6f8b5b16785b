//! A comparison as a comment for a pull request, in GitHub's Markdown.

use gpu_time_report::judge::Verdict;
use gpu_time_report::printable;

use super::figures::{COLUMNS, CONTROL, KERNEL_COLUMNS, figures};
use crate::compare::comparison::{Comparison, Row};

/// The maximum number of rows in a table and of names in a list. A comment has at most 65,536
/// characters.
const MAX_ROWS: usize = 150;

/// Renders a comparison. Folds away the series with the verdict `same`, and the control.
pub fn text(comparison: &Comparison, control: Option<&Comparison>) -> String {
    let mut text = format!("**gpu-time: {}**\n\n", comparison.summary()) + &body(comparison);
    if let Some(control) = control {
        let title = format!("{CONTROL}: {}", control.summary());
        text += &folded(&title, &body(control));
    }
    text
}

fn body(comparison: &Comparison) -> String {
    // The rows are sorted by verdict, and `same` comes last.
    let at = comparison.rows.partition_point(|row| row.change.verdict != Verdict::Same);
    let (changed, same) = comparison.rows.split_at(at);
    let mut text = table(COLUMNS, changed);
    if let Some(kernels) = &comparison.kernels {
        text += &table(KERNEL_COLUMNS, kernels.changed());
    }
    if !same.is_empty() {
        text += &folded(&format!("{} the same", same.len()), &table(COLUMNS, same));
    }
    for (title, names) in comparison.unmatched() {
        if !names.is_empty() {
            let names: Vec<String> = names.iter().take(MAX_ROWS).map(|name| code(name)).collect();
            text += &format!("- {title}: {}\n", names.join(", "));
        }
    }
    for note in comparison.all_notes() {
        text += &format!("- note: {}\n", escaped(&printable(&note)));
    }
    text
}

fn table(columns: [&str; 6], rows: &[Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = format!("| {} |\n|---|--:|--:|--:|--:|---|\n", columns.join(" | "));
    for row in rows.iter().take(MAX_ROWS) {
        let mark = match row.change.verdict {
            Verdict::Slower => "🔴 ",
            Verdict::Faster => "🟢 ",
            Verdict::Unknown => "⚪ ",
            Verdict::Same => "",
        };
        let [base, new, change, interval, verdict] = figures(&row.change);
        let name = code(&row.name).replace('|', "\\|");
        text += &format!("| {name} | {base} | {new} | {change} | {interval} | {mark}{verdict} |\n");
    }
    match rows.len().saturating_sub(MAX_ROWS) {
        0 => text + "\n",
        more => text + &format!("\nand {more} more\n\n"),
    }
}

fn folded(title: &str, body: &str) -> String {
    format!("<details><summary>{title}</summary>\n\n{}\n\n</details>\n\n", body.trim_end())
}

/// Returns the text as inline code, in which Markdown has no effect.
fn code(text: &str) -> String {
    let text = printable(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    let space = if longest > 0 { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// Escapes characters that Markdown reads as a tag, a link, emphasis, an issue or a mention.
fn escaped(text: &str) -> String {
    let escape = |c: char| match c {
        '&' | '<' | '>' | '@' | '[' | '*' | '#' | '\\' => format!("&#{};", u32::from(c)),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_holds_any_text() {
        assert_eq!(code("app::f on cuda:0"), "`app::f on cuda:0`");
        assert_eq!(code("a`b"), "`` a`b ``");
        assert_eq!(code("``"), "``` `` ```");
        assert_eq!(code("a\nb"), "`a\\nb`");
    }

    #[test]
    fn escaped_text_mentions_nobody() {
        assert_eq!(escaped("@user <b> `x`"), "&#64;user &#60;b&#62; `x`");
    }
}
