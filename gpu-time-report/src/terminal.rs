//! Properties of the terminal that the table is written to.

use std::io::{self, IsTerminal};

use terminal_size::{Width, terminal_size_of};

/// The properties of the target that affect the layout of the table. The default is plain text of
/// any width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// Escape sequences may colour the text.
    pub colours: bool,
    /// The width in characters, if it is known.
    pub columns: Option<usize>,
}

impl Terminal {
    /// Returns the properties of stdout.
    pub fn stdout() -> Terminal {
        let is_terminal = io::stdout().is_terminal();
        Terminal::of(is_terminal, is_terminal.then(|| terminal_size_of(io::stdout())).flatten())
    }

    /// Returns the properties of stderr.
    pub fn stderr() -> Terminal {
        let is_terminal = io::stderr().is_terminal();
        Terminal::of(is_terminal, is_terminal.then(|| terminal_size_of(io::stderr())).flatten())
    }

    fn of<T>(is_terminal: bool, size: Option<(Width, T)>) -> Terminal {
        Terminal {
            colours: has_colours(is_terminal),
            // A terminal that does not know its width reports 0.
            columns: size.map(|(Width(columns), _)| columns.into()).filter(|&columns| columns > 0),
        }
    }
}

/// Decides by `NO_COLOR`, `CLICOLOR_FORCE`, `CLICOLOR` and `TERM`, in this order of precedence.
fn has_colours(is_terminal: bool) -> bool {
    let wanted = is_terminal
        && anstyle_query::clicolor() != Some(false)
        && anstyle_query::term_supports_ansi_color()
        && is_ready();
    !anstyle_query::no_color() && (anstyle_query::clicolor_force() || wanted)
}

/// Returns `true` if the terminal interprets escape sequences. On Windows, that must be switched on
/// first.
fn is_ready() -> bool {
    #[cfg(windows)]
    return anstyle_query::windows::enable_ansi_colors() == Some(true);
    #[cfg(not(windows))]
    true
}
