//! The progress line of an experiment, on a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use gpu_time_report::judge::Verdict;

/// Moves the cursor to the beginning of the line and clears the line.
const CLEAR: &str = "\r\x1b[K";

/// A line that is updated in place and cleared on drop. Writes nothing if stderr is not a terminal.
pub struct Progress(Option<io::Stderr>);

impl Progress {
    /// Creates a progress line on stderr.
    pub fn on_terminal() -> Progress {
        let stderr = io::stderr();
        Progress(stderr.is_terminal().then_some(stderr))
    }

    /// Updates the line.
    pub fn show(&mut self, runs: u64, verdicts: &[Verdict], elapsed: Duration, limit: Duration) {
        let Some(to) = &mut self.0 else { return };
        let count = |verdict| verdicts.iter().filter(|&&other| other == verdict).count();
        // A failure to write to the terminal does not stop the experiment.
        _ = write!(
            to,
            "{CLEAR}gpu-time: {runs} runs, {:.0} of {:.0} s: {} slower, {} faster, {} the same, {} undecided",
            elapsed.as_secs_f64(),
            limit.as_secs_f64(),
            count(Verdict::Slower),
            count(Verdict::Faster),
            count(Verdict::Same),
            count(Verdict::Unknown)
        );
        _ = to.flush();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(to) = &mut self.0 {
            _ = to.write_all(CLEAR.as_bytes());
            _ = to.flush();
        }
    }
}
