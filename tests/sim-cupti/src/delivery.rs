//! Puts records into the client's buffers, and returns complete buffers to the client. No lock is
//! held while the client's functions run.

use std::mem::size_of;
use std::ptr;

use crate::abi::{CompleteInfo, RequestInfo};
use crate::driver;
use crate::fragile;
use crate::process;
use crate::script::script;
use crate::state::{Buffer, BufferFunctions, State, state};

/// The buffers to deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// Full buffers in which all records are complete. CUPTI delivers them without a flush.
    Full,
    /// Buffers in which all records are complete.
    Complete,
    /// All buffers, even with incomplete records.
    All,
}

/// Puts the records of a call into buffers, and requests more buffers as needed. Drops records if
/// the client provides no buffer.
pub(crate) fn place(correlation: u32) {
    let numbers = state().take_unplaced(correlation);
    for number in numbers {
        if state().place(number) {
            continue;
        }
        if let Some(buffer) = request() {
            state().buffers.push_back(buffer);
        }
        let mut state = state();
        if !state.place(number) {
            state.drop_record(number);
        }
    }
}

/// Requests a buffer from the client. Returns `None` if the client declines.
fn request() -> Option<Buffer> {
    let functions = state().functions?;
    let (mut memory, mut size, mut max_records) = (ptr::null_mut(), 0, 0);
    // SAFETY: the client registered these functions.
    unsafe {
        match functions {
            BufferFunctions::First(requested, _) => {
                requested(&mut memory, &mut size, &mut max_records)
            }
            BufferFunctions::Second(requested, _) => {
                let info = RequestInfo { size: size_of::<RequestInfo>() };
                requested(&mut memory, &mut size, &mut max_records, &info)
            }
        }
    }
    if process::is_torn_down() && !memory.is_null() {
        fragile::fail("a buffer is provided after the teardown");
    }
    // CUPTI requires an alignment of eight bytes.
    let is_usable = !memory.is_null() && size > 0 && memory.addr().is_multiple_of(8);
    is_usable.then_some(Buffer {
        memory,
        size,
        max_records,
        records: Vec::new(),
        used: 0,
        is_full: false,
        complete_at: None,
    })
}

/// Writes the records into the buffers to deliver, and returns the buffers to the client.
pub(crate) fn deliver(which: Which) {
    let Some(now) = driver::now() else { return };
    let (functions, filled) = {
        let mut state = state();
        let Some(functions) = state.functions else { return };
        if which == Which::Full && !state.buffers.iter().any(|buffer| buffer.is_full) {
            return;
        }
        (functions, state.fill(which, now))
    };
    for buffer in filled {
        // SAFETY: the client registered these functions and provided the memory.
        unsafe {
            match functions {
                BufferFunctions::First(_, completed) => {
                    completed(ptr::null_mut(), 0, buffer.memory, buffer.size, buffer.used)
                }
                BufferFunctions::Second(_, completed) => {
                    let info = CompleteInfo {
                        size: size_of::<CompleteInfo>(),
                        thread: 0,
                        layouts: ptr::null(),
                        layout_count: 0,
                    };
                    completed(buffer.memory, buffer.size, buffer.used, &info)
                }
            }
        }
    }
}

impl State {
    /// Removes the buffers to deliver from the state, after writing their records to their memory.
    fn fill(&mut self, which: Which, now: u64) -> Vec<Buffer> {
        let mut kept = Vec::new();
        let mut filled = Vec::new();
        for mut buffer in std::mem::take(&mut self.buffers) {
            if self.is_due(&mut buffer, which, now) {
                self.write(&mut buffer, now);
                filled.push(buffer);
            } else {
                kept.push(buffer);
            }
        }
        self.buffers = kept.into();
        if script().reversed {
            filled.reverse();
        }
        filled
    }

    fn is_due(&self, buffer: &mut Buffer, which: Which, now: u64) -> bool {
        let is_complete =
            buffer.records.iter().all(|n| self.records.get(n).is_none_or(|r| r.is_complete(now)));
        match which {
            Which::All => true,
            Which::Full => buffer.is_full && is_complete && script().late == 0,
            Which::Complete if buffer.records.is_empty() && !buffer.is_full => false,
            Which::Complete => {
                if is_complete && buffer.complete_at.is_none() {
                    (buffer.complete_at, buffer.is_full) = (Some(self.flushes), true);
                }
                buffer.complete_at.is_some_and(|at| self.flushes - at >= script().late)
            }
        }
    }

    fn write(&mut self, buffer: &mut Buffer, now: u64) {
        if script().reversed {
            buffer.records.reverse();
        }
        buffer.used = 0;
        for number in &buffer.records {
            let Some(record) = self.records.remove(number) else { continue };
            let bytes = script().version.record_bytes(record.kind()).unwrap_or(0);
            // SAFETY: `place` has left space for all records.
            unsafe { record.write(buffer.memory.add(buffer.used), bytes, now) };
            buffer.used += bytes;
        }
    }
}
