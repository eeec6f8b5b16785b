use std::sync::Arc;

use loom::sync::Mutex;
use loom::thread;

use super::*;

/// A thread counts a call and ends. The next thread that needs a recorder takes over its counters, while
/// a report reads them. Without the lock on the list of idle recorders, both threads write at once.
pub fn counts_are_complete_after_a_hand_over(locks: bool) {
    let counters = Arc::new(CallCounters::default());
    counters.read();
    let turn = Arc::new(Mutex::new(()));
    let threads = [Outcome::Timed, Outcome::Timed].map(|outcome| {
        let (counters, turn) = (counters.clone(), turn.clone());
        thread::spawn(move || {
            let _turn = locks.then(|| turn.lock().unwrap());
            counters.count(outcome);
        })
    });
    let (early, late) = (counters.read().calls(), counters.read().calls());
    assert!(early <= late && late <= 2, "counts fell");
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(counters.read().timed, 2, "calls were lost");
}
