//! A run's progress line on a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::settle::stopping::Verdict;
use gpu_time_report::units::two_digit_percent;

/// The shortest time between two updates.
const PERIOD: Duration = Duration::from_millis(200);
/// Moves the cursor to the beginning of the line and clears the line.
const CLEAR: &str = "\r\x1b[K";

/// A line that is updated in place and cleared on drop. Prints nothing if stderr is not a terminal.
pub(super) struct Progress<W: Write> {
    to: Option<W>,
    /// The time of the last update.
    shown: Option<Instant>,
}

impl Progress<io::Stderr> {
    /// Creates a progress line on stderr.
    pub fn on_terminal() -> Self {
        let stderr = io::stderr();
        Progress { to: stderr.is_terminal().then_some(stderr), shown: None }
    }
}

impl<W: Write> Progress<W> {
    /// Updates the line, unless it was updated very recently.
    pub fn show(&mut self, verdict: &Verdict, calls: u64, elapsed: Duration) {
        let Some(to) = &mut self.to else { return };
        if self.shown.is_some_and(|shown| shown.elapsed() < PERIOD) {
            return;
        }
        self.shown = Some(Instant::now());
        let widest = verdict.unmet.iter().filter_map(|unmet| unmet.margin).reduce(f64::max);
        let widest = widest
            .map_or(String::new(), |margin| format!(", widest ±{}", two_digit_percent(margin)));
        // Failure to write to the terminal does not stop the run.
        _ = write!(
            to,
            "{CLEAR}gpu-time: {} of {} settled{widest}, {calls} calls, {:.1} s",
            verdict.settled,
            verdict.len(),
            elapsed.as_secs_f64()
        );
        _ = to.flush();
    }
}

impl<W: Write> Drop for Progress<W> {
    fn drop(&mut self) {
        if let Some(to) = &mut self.to
            && self.shown.is_some()
        {
            _ = to.write_all(CLEAR.as_bytes());
            _ = to.flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERDICT: Verdict = Verdict { settled: 2, unmet: Vec::new() };

    #[test]
    fn line_is_updated_in_place_and_cleared_on_drop() {
        let mut written = Vec::new();
        let mut progress = Progress { to: Some(&mut written), shown: None };
        progress.show(&VERDICT, 120, Duration::from_millis(1_250));
        // Too early for an update.
        progress.show(&VERDICT, 121, Duration::from_millis(1_251));
        drop(progress);
        let text = String::from_utf8(written).unwrap();
        assert_eq!(text, "\r\x1b[Kgpu-time: 2 of 2 settled, 120 calls, 1.2 s\r\x1b[K");
    }

    #[test]
    fn unshown_line_is_not_cleared() {
        let mut written = Vec::new();
        drop(Progress { to: Some(&mut written), shown: None });
        assert!(written.is_empty());
    }
}
