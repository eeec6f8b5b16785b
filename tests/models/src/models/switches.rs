use std::sync::Arc;

use loom::thread;

use super::*;

/// Two threads call `set_enabled` while the process ends.
pub fn close_wins_over_concurrent_switch() {
    let timing = Arc::new(TimingSwitch::new());
    timing.0.load(Relaxed);
    let switches = [true, false].map(|on| {
        let timing = timing.clone();
        thread::spawn(move || timing.switch(on))
    });
    timing.close();
    switches.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(timing.now().is_closed(), "closed timing was switched on");
}
