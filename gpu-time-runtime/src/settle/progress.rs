//! The line on a terminal that says how far a run has come.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::settle::verdict::Verdict;
use gpu_time_report::units::percent;

/// The line is written anew at most this often.
const PERIOD: Duration = Duration::from_millis(200);
/// To the beginning of the line, and clear it.
const CLEAR: &str = "\r\x1b[K";

/// One line that is written over and over, and cleared when this is dropped. Nothing is written where
/// there is no terminal.
pub(super) struct Progress<W: Write> {
    to: Option<W>,
    shown: Option<Instant>,
}

impl Progress<io::Stderr> {
    /// On stderr, if that is a terminal.
    pub fn on_terminal() -> Self {
        let stderr = io::stderr();
        Progress { to: stderr.is_terminal().then_some(stderr), shown: None }
    }
}

impl<W: Write> Progress<W> {
    /// Writes the line, unless it is too early to.
    pub fn show(&mut self, verdict: &Verdict, calls: u64, elapsed: Duration) {
        let Some(to) = &mut self.to else { return };
        if self.shown.is_some_and(|shown| shown.elapsed() < PERIOD) {
            return;
        }
        self.shown = Some(Instant::now());
        let widest = verdict.unmet.iter().filter_map(|unmet| unmet.margin()).reduce(f64::max);
        let widest =
            widest.map_or(String::new(), |margin| format!(", widest ±{}", percent(margin)));
        // A terminal that takes nothing is no reason to stop.
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
    fn the_line_is_written_over_and_cleared_at_the_end() {
        let mut written = Vec::new();
        let mut progress = Progress { to: Some(&mut written), shown: None };
        progress.show(&VERDICT, 120, Duration::from_millis(1_250));
        // Too early for another.
        progress.show(&VERDICT, 121, Duration::from_millis(1_251));
        drop(progress);
        let text = String::from_utf8(written).unwrap();
        assert_eq!(text, "\r\x1b[Kgpu-time: 2 of 2 settled, 120 calls, 1.2 s\r\x1b[K");
    }

    #[test]
    fn a_run_that_shows_nothing_clears_nothing() {
        let mut written = Vec::new();
        drop(Progress { to: Some(&mut written), shown: None });
        assert!(written.is_empty());
    }
}
