use std::sync::Arc;

use loom::thread;

use super::*;

/// Two threads each begin a capture, of different streams. Each thread finds its own capture, with a
/// number above that of all captures begun before. Otherwise, a call that began before the capture would
/// count as captured, or a call inside the capture as not captured.
pub fn captures_keep_their_numbers() {
    let captures = Arc::new(Captures::new());
    for slot in &captures.slots {
        assert_eq!((slot.stream.load(SeqCst), slot.number.load(SeqCst)), (FREE, 0));
    }
    assert_eq!((captures.begun.load(SeqCst), captures.under_way.load(SeqCst)), (0, 0));
    let threads = [0x70, 0x71].map(|stream| {
        let captures = captures.clone();
        thread::spawn(move || {
            let before = captures.begun.load(SeqCst);
            captures.begin(Stream(stream));
            let number = captures.of(Stream(stream)).expect("the capture is known");
            assert!(number > before, "a capture has the number of another one");
        })
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
