use std::sync::Arc;

use loom::thread;

use super::*;
use crate::atomic::Ordering::Acquire;

fn holds() -> Arc<Holds> {
    let holds = Holds::default();
    holds.prepare(&Module, Stream(0x70)).unwrap();
    let slots = holds.slots().unwrap();
    slots.claimed.load(Relaxed);
    slots.words.0.iter().flatten().for_each(|word| _ = word.load(Relaxed));
    Arc::new(holds)
}

/// Returns `true` if the GPU would see the hold as released.
fn is_released(holds: &Holds, hold: &StreamHold) -> bool {
    holds.slots().unwrap().words.0[hold.slot as usize][RELEASED].load(Acquire) >= hold.ticket
}

/// Two threads each hold a stream.
pub fn release_frees_no_other_hold() {
    let holds = holds();
    let threads = [(); 2].map(|()| {
        let holds = holds.clone();
        thread::spawn(move || holds.hold(Stream(0x70), 1).unwrap())
    });
    let [one, other] = threads.map(|thread| thread.join().unwrap());
    assert_ne!(one.slot, other.slot, "two holds have one slot");
    holds.release(one);
    assert!(!is_released(&holds, &other));
    holds.release(other);
}

/// One call is in progress while the process ends, and another call follows.
pub fn exit_releases_later_holds() {
    let holds = holds();
    let call = {
        let holds = holds.clone();
        thread::spawn(move || {
            let hold = holds.hold(Stream(0x70), 1).unwrap();
            holds.release(hold);
        })
    };
    holds.release_all(true);
    call.join().unwrap();
    let later = holds.hold(Stream(0x70), 1).unwrap();
    assert!(is_released(&holds, &later), "a hold was left");
}

/// Timing is switched off during a call. The call's hold then does not prove that its bracket was fed.
pub fn hold_that_is_let_go_counts_as_expired() {
    let holds = holds();
    let call = {
        let holds = holds.clone();
        thread::spawn(move || {
            let hold = holds.hold(Stream(0x70), 1).unwrap();
            let was_let_go = is_released(&holds, &hold);
            let result = holds.release(hold);
            assert!(!was_let_go || holds.has_expired(result), "the bracket counts as fed");
        })
    };
    holds.release_all(false);
    call.join().unwrap();
}
