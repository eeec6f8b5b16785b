//! Properties of the terminal to which the table is written.

use std::io::{self, IsTerminal};
#[cfg(unix)]
use std::os::fd::AsRawFd as Handle;
#[cfg(windows)]
use std::os::windows::io::AsHandle as Handle;

use crate::kinds::named;

/// Properties of the output that affect the table's layout. The default is plain text of any width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// Escape sequences may be used to colour the text.
    pub colours: bool,
    /// The width in characters, if it is known.
    pub columns: Option<usize>,
    /// The view of the functions in the table.
    pub view: View,
    /// The maximum number of functions in a [brief](crate::Detail::Brief) table, or `None` for all.
    pub most_functions: Option<usize>,
}

named! {
    /// The arrangement of the functions in the table.
    #[derive(Default)]
    pub enum View {
        /// Functions, each with the sum over all its callers.
        #[default]
        Functions = "functions",
        /// Functions under their callers.
        Tree = "tree",
    }
}

/// The maximum width of a name if the terminal's width is unknown.
const NAME: usize = 60;
/// The minimum width of a long name, on the narrowest terminal.
const NARROW_NAME: usize = 24;

/// Returns the maximum width of names beside columns with this width.
pub(crate) fn room_for_names(to: Terminal, others: usize) -> usize {
    to.columns.map_or(NAME, |columns| columns.saturating_sub(others).max(NARROW_NAME))
}

impl View {
    /// The valid values, in a form that completes a sentence ending in "expected".
    pub const EXPECTED: &str = "`functions` or `tree`";

    /// Parses the value of `GPU_TIME_VIEW`.
    pub fn parse(text: &str) -> Option<View> {
        View::ALL.into_iter().find(|view| view.name() == text)
    }
}

impl Terminal {
    /// The maximum number of functions in a table that a program prints by itself.
    pub const MOST_FUNCTIONS: usize = 30;

    /// Returns the properties of stdout.
    pub fn stdout() -> Terminal {
        Terminal::of(&io::stdout())
    }

    /// Returns the properties of stderr.
    pub fn stderr() -> Terminal {
        Terminal::of(&io::stderr())
    }

    fn of(stream: &(impl IsTerminal + Handle)) -> Terminal {
        let is_terminal = stream.is_terminal();
        let columns = is_terminal.then(|| columns(stream)).flatten();
        // A terminal that does not know its width reports 0.
        let columns = columns.map(usize::from).filter(|&columns| columns > 0);
        Terminal { colours: has_colours(is_terminal), columns, ..Terminal::default() }
    }
}

/// Returns the width of a terminal.
#[cfg(unix)]
#[allow(unsafe_code, reason = "one system call; the crates that wrap it cost seconds to build")]
fn columns(terminal: &impl Handle) -> Option<u16> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: `TIOCGWINSZ` writes one `winsize`, and `size` outlives the call.
    let status = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCGWINSZ, &mut size) };
    (status == 0).then_some(size.ws_col)
}

/// Returns the width of a terminal.
#[cfg(windows)]
fn columns(terminal: &impl Handle) -> Option<u16> {
    terminal_size::terminal_size_of(terminal).map(|(terminal_size::Width(columns), _)| columns)
}

/// Decides based on `NO_COLOR`, `CLICOLOR_FORCE`, `CLICOLOR` and `TERM`, in this order of
/// precedence.
fn has_colours(is_terminal: bool) -> bool {
    let wanted = is_terminal
        && anstyle_query::clicolor() != Some(false)
        && anstyle_query::term_supports_ansi_color()
        && is_ready();
    !anstyle_query::no_color() && (anstyle_query::clicolor_force() || wanted)
}

/// Returns `true` if the terminal interprets escape sequences. On Windows, this must be enabled
/// first.
fn is_ready() -> bool {
    #[cfg(windows)]
    return anstyle_query::windows::enable_ansi_colors() == Some(true);
    #[cfg(not(windows))]
    true
}
