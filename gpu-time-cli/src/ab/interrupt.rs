//! The user's request to stop early.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// A flag that SIGHUP, SIGINT and SIGTERM set instead of ending this process, which would leave the
/// programs running.
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Handles the signals from now on.
    pub fn on_signals() -> io::Result<Interrupt> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
        Ok(Interrupt(flag))
    }

    /// Returns `true` if a signal has arrived.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
