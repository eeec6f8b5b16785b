//! Keeps threads of the runtime out of CUPTI once the exit handler has returned, because CUPTI then frees its
//! tables.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Instant;

use crate::base::clock;

pub(super) struct Gate {
    /// The number of threads that may be in a function of CUPTI.
    inside: AtomicUsize,
    is_closed: AtomicBool,
}

pub(super) static GATE: Gate = Gate::new();

/// The right to call CUPTI. Each `Permit` contains one.
#[must_use]
pub(super) struct Entry(&'static Gate);

impl Drop for Entry {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, SeqCst);
    }
}

impl Gate {
    const fn new() -> Gate {
        Gate { inside: AtomicUsize::new(0), is_closed: AtomicBool::new(false) }
    }

    /// Returns the right to call CUPTI, or `None` once the gate is closed.
    pub fn enter(&'static self) -> Option<Entry> {
        // Counted before the check, so that either this thread sees that the gate is closed, or the thread that
        // closes it sees this one.
        self.inside.fetch_add(1, SeqCst);
        let entry = Entry(self);
        (!self.is_closed.load(SeqCst)).then_some(entry)
    }

    /// Returns `true` once CUPTI must not be called any more.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(SeqCst)
    }

    /// Closes the gate, and waits for the threads inside until the deadline.
    pub fn close(&self, deadline: Instant) {
        self.is_closed.store(true, SeqCst);
        clock::wait_until(deadline, clock::BRIEFLY, || self.inside.load(SeqCst) == 0);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    fn after(time: Duration) -> Instant {
        Instant::now() + time
    }

    #[test]
    fn nobody_enters_a_closed_gate() {
        static GATE: Gate = Gate::new();
        drop(GATE.enter().unwrap());
        GATE.close(Instant::now());
        assert!(GATE.enter().is_none());
        assert_eq!(GATE.inside.load(SeqCst), 0);
    }

    #[test]
    fn closing_waits_for_those_inside() {
        static GATE: Gate = Gate::new();
        static HAS_LEFT: AtomicBool = AtomicBool::new(false);
        let entry = GATE.enter().unwrap();
        let leaving = thread::spawn(move || {
            while !GATE.is_closed.load(SeqCst) {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(5));
            HAS_LEFT.store(true, SeqCst);
            drop(entry);
        });
        GATE.close(after(Duration::from_secs(60)));
        assert!(HAS_LEFT.load(SeqCst));
        leaving.join().unwrap();
    }

    #[test]
    fn closing_does_not_wait_beyond_the_deadline() {
        static GATE: Gate = Gate::new();
        let _entry = GATE.enter().unwrap();
        GATE.close(after(Duration::from_millis(1)));
        assert!(GATE.enter().is_none());
    }
}
