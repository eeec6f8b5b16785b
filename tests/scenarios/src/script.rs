//! A random program as data: made by a test, carried out by the scenario `random/script`.

use serde::{Deserialize, Serialize};

/// Sites that a script can call: see the scenario for what each does.
pub const SITES: usize = 6;
/// Streams that all threads share; the first is the NULL stream.
pub const STREAMS: usize = 4;

/// What the threads of a program do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Script {
    /// The first one is the main thread.
    pub threads: Vec<Vec<Step>>,
}

/// One step of a thread.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Step {
    /// Calls a site on a shared stream.
    Call(Call),
    /// Waits for a shared stream.
    Synchronize(usize),
    /// Captures calls on a stream of the thread's own, and replays the graph.
    Capture(Mode, Vec<Call>),
    /// Asks for a snapshot.
    Snapshot,
    /// Turns timing on or off, for all threads.
    Switch(bool),
    /// Lets virtual time pass, in microseconds.
    Advance(u64),
}

/// One call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Call {
    /// Which site, below [`SITES`].
    pub site: usize,
    /// Which stream, below [`STREAMS`]. In a capture it is the captured one.
    pub stream: usize,
    /// How it goes.
    pub course: Course,
    /// A call inside of it, on the same stream.
    pub inner: Option<Box<Call>>,
}

/// How a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Course {
    /// All of its launches are made.
    Whole,
    /// It returns before its last launch.
    Early,
    /// Its last launch fails.
    Fails,
    /// It panics before its last launch.
    Panics,
}

/// The mode of a capture.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Mode {
    /// No thread may make an unsafe call.
    Global,
    /// The capturing thread may not.
    ThreadLocal,
    /// All may.
    Relaxed,
}
