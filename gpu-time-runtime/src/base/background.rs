//! Background threads of the runtime.

use std::io;
use std::thread;

use crate::base::signal_mask::BlockedSignals;
use crate::base::{inside, pin};

/// Starts a thread with every signal blocked, so that signals still go to the application's threads.
///
/// # Errors
///
/// The error of the operating system if it cannot create a thread.
pub(crate) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    pin::pin_runtime();
    let _blocked = BlockedSignals::all();
    let run = || {
        let _inside = inside::enter();
        run();
    };
    thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}
