use std::sync::Arc;

use loom::thread;

use super::*;

/// Two calls return, with a status each, while another thread takes those that have.
pub fn returned_calls_are_taken_once() {
    let statuses = Arc::new(CallStatuses::default());
    statuses.head.load(Relaxed);
    statuses.entries.iter().for_each(|entry| _ = entry.load(Relaxed));
    let calls = [(0, None), (1, Some(Lost::Cancelled))];
    let returns = calls.map(|(call, lost)| {
        let statuses = statuses.clone();
        thread::spawn(move || statuses.set(SumId::at(call), lost))
    });
    let mut taken: Vec<_> = statuses.take().collect();
    returns.into_iter().for_each(|thread| thread.join().unwrap());
    taken.extend(statuses.take());
    taken.sort_by_key(|(call, _)| call.index());
    assert_eq!(taken, calls.map(|(call, lost)| (SumId::at(call), lost)), "calls were lost");
}
