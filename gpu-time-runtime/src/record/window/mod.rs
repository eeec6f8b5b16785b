//! Windows: short times in which everything that the process enqueues is recorded, to tell how busy
//! its devices are.
//!
//! A thread opens windows after random pauses, by the plan, or when it is asked to. It
//! holds CUPTI on, while launches leave [notes](notes) on their threads. The collector of opened
//! calls hands all records over to [matching], which adds a window to the sums when the records of
//! its launches have come.

pub(crate) mod matching;
pub(crate) mod notes;
pub(crate) mod thread;
