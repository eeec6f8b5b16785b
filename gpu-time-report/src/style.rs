//! Colours of the table and of the call tree.

use anstyle::{AnsiColor, Style};

use crate::Terminal;

pub const TITLE: Style = Style::new().bold();
pub const FUNCTION: Style = AnsiColor::Cyan.on_default().bold();
/// Less important text, such as the explanation of a mark.
pub const DIMMED: Style = Style::new().dimmed();
/// Figures and messages that deserve a second look.
pub const DOUBTFUL: Style = AnsiColor::Yellow.on_default();

/// Returns the text in a style, with escape sequences.
pub fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

impl Terminal {
    /// Returns the text in a style if the terminal supports colours, otherwise unchanged.
    pub fn styled(self, style: Style, text: &str) -> String {
        if self.colours { paint(style, text) } else { text.to_owned() }
    }
}
