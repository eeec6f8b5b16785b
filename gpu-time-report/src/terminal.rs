//! What the table may use of the place that it is written to.

use std::io::{self, IsTerminal};

use terminal_size::{Width, terminal_size_of};

/// What the table may use of the place that it is written to; by default that is plain text of any width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// Whether escape sequences may colour the text.
    pub colours: bool,
    /// How many characters fit in a line, where that is known.
    pub columns: Option<usize>,
}

impl Terminal {
    /// What stdout is.
    pub fn stdout() -> Terminal {
        let is_terminal = io::stdout().is_terminal();
        Terminal::of(is_terminal, is_terminal.then(|| terminal_size_of(io::stdout())).flatten())
    }

    /// What stderr is.
    pub fn stderr() -> Terminal {
        let is_terminal = io::stderr().is_terminal();
        Terminal::of(is_terminal, is_terminal.then(|| terminal_size_of(io::stderr())).flatten())
    }

    fn of<T>(is_terminal: bool, size: Option<(Width, T)>) -> Terminal {
        Terminal {
            colours: has_colours(is_terminal),
            // A terminal that does not know its width says 0.
            columns: size.map(|(Width(columns), _)| columns.into()).filter(|&columns| columns > 0),
        }
    }
}

/// As `NO_COLOR`, `CLICOLOR_FORCE`, `CLICOLOR` and `TERM` say, the first of them first.
fn has_colours(is_terminal: bool) -> bool {
    let wanted = is_terminal
        && anstyle_query::clicolor() != Some(false)
        && anstyle_query::term_supports_ansi_color()
        && is_ready();
    !anstyle_query::no_color() && (anstyle_query::clicolor_force() || wanted)
}

/// Whether the terminal acts on escape sequences. That of Windows must be told to.
fn is_ready() -> bool {
    #[cfg(windows)]
    return anstyle_query::windows::enable_ansi_colors() == Some(true);
    #[cfg(not(windows))]
    true
}
