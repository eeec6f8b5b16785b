use loom::thread;

use super::*;

/// Returns the entry of a thread that is inside of the first frame of a call.
fn inside(call: u64) -> &'static ThreadFrames {
    let thread: &'static ThreadFrames = Box::leak(Box::new(ThreadFrames::new()));
    thread.set(Some(first_of(call)));
    thread
}

/// Returns a frame that tells its call.
fn first_of(call: u64) -> OpenFrame {
    OpenFrame { call, nth: call }
}

/// A thread ends a call and opens the next one, while another thread reads.
pub fn frame_is_of_the_call_that_is_read() {
    let owner = inside(1);
    let changes = thread::spawn(move || {
        owner.end_call(false);
        owner.set(Some(first_of(2)));
    });
    if let Some(Some(frame)) = owner.read() {
        assert_eq!(frame, first_of(frame.call), "the frame is of another call");
    }
    changes.join().unwrap();
}

/// A thread ends a call, and takes what was noted for it. Another thread notes a launch meanwhile, unless the call has
/// ended.
pub fn launch_is_noted_before_its_call_ends() {
    let owner = inside(1);
    let noted: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
    noted.load(Relaxed);
    let helper = thread::spawn(move || {
        let Some(Some(frame)) = owner.read() else { return false };
        noted.store(1, Relaxed);
        !OnlyThread { frame: Some(frame), thread: owner }.has_ended()
    });
    owner.end_call(false);
    let taken = noted.load(Relaxed);
    assert!(!helper.join().unwrap() || taken == 1, "the launch came too late");
}
