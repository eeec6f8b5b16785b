//! The progress line of a run on a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::base::fork;

/// Moves the cursor to the beginning of the line and clears the line.
const CLEAR: &str = "\r\x1b[K";

/// A line that is updated in place and cleared on drop. Prints nothing if stderr is not a terminal.
pub struct Progress<W: Write> {
    to: Option<W>,
    /// The shortest time between two updates.
    period: Duration,
    /// The time of the last update.
    shown: Option<Instant>,
}

impl Progress<io::Stderr> {
    /// Creates a progress line on stderr.
    pub fn on_terminal(period: Duration) -> Self {
        let stderr = io::stderr();
        Progress { to: stderr.is_terminal().then_some(stderr), period, shown: None }
    }
}

impl<W: Write> Progress<W> {
    /// Updates the line, unless it was updated very recently.
    pub fn show(&mut self, line: impl FnOnce() -> String) {
        let Some(to) = &mut self.to else { return };
        if self.shown.is_some_and(|shown| shown.elapsed() < self.period) {
            return;
        }
        self.shown = Some(Instant::now());
        // Failure to write to the terminal does not stop the run.
        _ = write!(to, "{CLEAR}gpu-time: {}", line());
        _ = to.flush();
    }
}

impl<W: Write> Drop for Progress<W> {
    fn drop(&mut self) {
        if let Some(to) = &mut self.to
            && self.shown.is_some()
            && !fork::is_forked()
        {
            _ = to.write_all(CLEAR.as_bytes());
            _ = to.flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(to: &mut Vec<u8>) -> Progress<&mut Vec<u8>> {
        Progress { to: Some(to), period: Duration::from_secs(9), shown: None }
    }

    #[test]
    fn line_is_updated_in_place_and_cleared_on_drop() {
        let mut written = Vec::new();
        let mut progress = progress(&mut written);
        progress.show(|| "1 call".to_owned());
        // Too early for an update.
        progress.show(|| "2 calls".to_owned());
        drop(progress);
        assert_eq!(String::from_utf8(written).unwrap(), "\r\x1b[Kgpu-time: 1 call\r\x1b[K");
    }

    #[test]
    fn unshown_line_is_not_cleared() {
        let mut written = Vec::new();
        drop(progress(&mut written));
        assert!(written.is_empty());
    }
}
