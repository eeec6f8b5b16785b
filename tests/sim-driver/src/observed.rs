//! The interface through which the stand-in for CUPTI observes the simulated driver: plain values
//! with a C layout. The stand-in includes this file with `#[path]`. It cannot depend on this
//! package, because it would then export the driver's symbols.
#![allow(dead_code)] // each of the two libraries uses a part

use std::ffi::c_void;

/// Functions that the driver calls.
#[repr(C)]
pub(crate) struct Observer {
    /// Called on the calling thread before and after each driver call, without any lock held.
    pub call: unsafe extern "C" fn(*const ObservedCall),
    /// Called on the calling thread when a kernel, copy or memset is enqueued. Returns a non-zero
    /// number if the driver is to call `ended` for it. The driver is locked and must not be called.
    pub enqueued: unsafe extern "C" fn(*const ObservedWork) -> u64,
    /// Called on any thread once the times of work are known, with the number that `enqueued`
    /// returned for it. The driver is locked.
    pub ended: unsafe extern "C" fn(u64, ObservedTimes),
}

/// A driver call, before or after its execution.
#[repr(C)]
pub(crate) struct ObservedCall {
    pub is_exit: bool,
    /// Number of the call, counted from 1.
    pub correlation: u32,
    /// Name of the function, as UTF-8.
    pub name: *const u8,
    pub name_len: usize,
    /// A C structure with the arguments as its fields.
    pub parameters: *const c_void,
    /// Result code, valid at the exit.
    pub result: i32,
    /// Handle and id of the thread's current context, or 0.
    pub context: u64,
    pub context_id: u64,
}

/// The kind of observed work.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkKind {
    Kernel,
    Memset,
    CopyToDevice,
    CopyToHost,
    CopyWithin,
    CopyToPeer,
}

/// A kernel, copy or memset.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ObservedWork {
    pub kind: WorkKind,
    /// Number of the call that enqueued the work.
    pub correlation: u32,
    pub device: u32,
    /// Id of the context, as returned by `cuCtxGetId`.
    pub context: u64,
    /// Id of the stream, as returned by `cuStreamGetId`.
    pub stream: u64,
    /// Id of the executable graph, or 0.
    pub graph: u32,
    /// Id of the node in the executable graph, or 0.
    pub graph_node: u64,
    /// Name of the kernel, as UTF-8, valid during the call.
    pub name: *const u8,
    pub name_len: usize,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub registers: u16,
    /// Dynamic shared memory.
    pub shared_bytes: u32,
    /// Size of a copy or memset in bytes.
    pub bytes: u64,
    /// Device and context id of the source of a peer copy, then of its destination.
    pub peers: [[u32; 2]; 2],
    /// Value of a memset.
    pub value: u32,
}

/// The times of observed work, all 0 if it will never run.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObservedTimes {
    pub start_ns: u64,
    pub end_ns: u64,
    /// Virtual time from which the host can see that the work has ended.
    pub visible_ns: u64,
}
