//! Activity records: the observed work, and its layout in the scripted version's records.

use std::collections::HashMap;
use std::ffi::{CString, c_char};
use std::mem::size_of;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use crate::STREAM_IDS;
use crate::abi::{self, CopyRecord, KernelRecord, PeerRecord, SetRecord};
use crate::driver;
use crate::observed::{ObservedTimes, ObservedWork, WorkKind};

/// The channel of all work. The simulated driver has no channels.
const CHANNEL: u32 = 8;
const COMPUTE: u32 = 1;
const ASYNC_COPY: u32 = 2;
/// `CUPTI_ACTIVITY_MEMORY_KIND_DEVICE`. Host memory is reported as 0, an unknown kind.
const DEVICE_MEMORY: u8 = 3;
/// `CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC` and `CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC`.
const ASYNC: u8 = 1;

/// A recorded kernel, copy or memset.
#[derive(Clone, Copy)]
pub(crate) struct Record {
    kind: u32,
    work: ObservedWork,
    name: *const c_char,
    /// `None` until the driver has determined them.
    pub times: Option<ObservedTimes>,
    /// The times are reported as 0.
    pub is_zero: bool,
}

// SAFETY: the name is leaked, and the observed name is not used.
unsafe impl Send for Record {}

/// Returns the activity kinds that record this kind of work.
pub(crate) fn kinds_of(work: WorkKind) -> &'static [u32] {
    match work {
        WorkKind::Kernel => &[abi::CONCURRENT_KERNEL, abi::KERNEL],
        WorkKind::Memset => &[abi::MEMSET],
        WorkKind::CopyToDevice | WorkKind::CopyToHost | WorkKind::CopyWithin => &[abi::MEMCPY],
        WorkKind::CopyToPeer => &[abi::MEMCPY2],
    }
}

/// Returns a NUL-terminated copy of a name. The copy is never freed.
fn interned(name: &[u8]) -> *const c_char {
    static NAMES: Mutex<Option<HashMap<Vec<u8>, CString>>> = Mutex::new(None);
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let copy = || CString::new(name).expect("a kernel's name has no NUL");
    names.get_or_insert_default().entry(name.to_owned()).or_insert_with(copy).as_ptr()
}

impl Record {
    /// Creates a record of this kind. The work's name must be valid.
    pub fn new(kind: u32, work: &ObservedWork, is_zero: bool) -> Self {
        // SAFETY: guaranteed by the caller.
        let name = unsafe { std::slice::from_raw_parts(work.name, work.name_len) };
        Self { kind, work: *work, name: interned(name), times: None, is_zero }
    }

    pub fn kind(&self) -> u32 {
        self.kind
    }

    pub fn correlation(&self) -> u32 {
        self.work.correlation
    }

    /// Returns `true` if the host could see at `now` that the work had ended, or if it will never run.
    pub fn is_complete(&self, now: u64) -> bool {
        self.times.is_some_and(|times| times.visible_ns <= now)
    }

    /// Returns the start and the end, which are 0 if the work had not ended at `now`.
    fn span(&self, now: u64) -> (u64, u64) {
        match self.times {
            Some(times) if !self.is_zero && times.visible_ns != 0 && times.visible_ns <= now => {
                (driver::timestamp(times.start_ns), driver::timestamp(times.end_ns))
            }
            _ => (0, 0),
        }
    }

    /// Writes the first `bytes` bytes of the record as of `now`.
    ///
    /// # Safety
    /// `to` must be valid for writing `bytes` bytes.
    pub unsafe fn write(&self, to: *mut u8, bytes: usize, now: u64) {
        // SAFETY: guaranteed by the caller. The smaller records of older versions are prefixes.
        unsafe {
            match self.kind {
                abi::MEMCPY => put(&self.copy(now), to, bytes.min(size_of::<CopyRecord>())),
                abi::MEMCPY2 => put(&self.peer_copy(now), to, bytes.min(size_of::<PeerRecord>())),
                abi::MEMSET => put(&self.set(now), to, bytes.min(size_of::<SetRecord>())),
                _ => put(&self.kernel(now), to, bytes.min(size_of::<KernelRecord>())),
            }
        }
    }

    fn stream(&self) -> u32 {
        self.work.stream as u32 + STREAM_IDS
    }

    fn kernel(&self, now: u64) -> KernelRecord {
        let (work, (start, end)) = (&self.work, self.span(now));
        KernelRecord {
            kind: self.kind,
            cache_config: 0,
            shared_memory_config: 0,
            registers: work.registers,
            partitioned_cache: [0; 2],
            start,
            end,
            completed: end,
            device: work.device,
            context: work.context as u32,
            stream: self.stream(),
            grid: work.grid,
            block: work.block,
            static_shared_bytes: 0,
            dynamic_shared_bytes: work.shared_bytes,
            local_bytes_per_thread: 0,
            local_bytes: 0,
            correlation: work.correlation,
            grid_id: u64::from(work.correlation),
            name: self.name,
            reserved: ptr::null(),
            queued: 0,
            submitted: 0,
            launch_type: 0,
            carveout: [0; 3],
            shared_bytes_executed: work.shared_bytes,
            graph_node: work.graph_node,
            shared_limit: 0,
            graph: work.graph,
            access_policy: ptr::null(),
            channel: CHANNEL,
            channel_type: COMPUTE,
            cluster: [0; 3],
            cluster_policy: 0,
            local_bytes_2: 0,
            clusters: [0; 2],
            is_device_launched: 0,
            priority: [0; 2],
            execution_model: [0; 2],
            source_graph: [0; 2],
            source_graph_node: 0,
        }
    }

    fn copy(&self, now: u64) -> CopyRecord {
        let (work, (start, end)) = (&self.work, self.span(now));
        // `CUpti_ActivityMemcpyKind`, and the kinds of memory on both sides.
        let (copy_kind, source_kind, target_kind) = match work.kind {
            WorkKind::CopyToDevice => (1, 0, DEVICE_MEMORY),
            WorkKind::CopyToHost => (2, DEVICE_MEMORY, 0),
            _ => (8, DEVICE_MEMORY, DEVICE_MEMORY),
        };
        CopyRecord {
            kind: self.kind,
            copy_kind,
            source_kind,
            target_kind,
            flags: ASYNC,
            bytes: work.bytes,
            start,
            end,
            device: work.device,
            context: work.context as u32,
            stream: self.stream(),
            correlation: work.correlation,
            runtime_correlation: 0,
            padding: 0,
            reserved: ptr::null(),
            graph_node: work.graph_node,
            graph: work.graph,
            channel: CHANNEL,
            channel_type: ASYNC_COPY,
            is_device_launched: 0,
            copies: 1,
            source_graph: [0; 2],
            source_graph_node: 0,
        }
    }

    fn peer_copy(&self, now: u64) -> PeerRecord {
        let (work, (start, end)) = (&self.work, self.span(now));
        PeerRecord {
            kind: self.kind,
            copy_kind: 10,
            source_kind: DEVICE_MEMORY,
            target_kind: DEVICE_MEMORY,
            flags: ASYNC,
            bytes: work.bytes,
            start,
            end,
            device: work.device,
            context: work.context as u32,
            stream: self.stream(),
            peers: work.peers,
            correlation: work.correlation,
            reserved: ptr::null(),
            graph_node: work.graph_node,
            graph: work.graph,
            channel: CHANNEL,
            channel_type: ASYNC_COPY,
            padding: 0,
        }
    }

    fn set(&self, now: u64) -> SetRecord {
        let (work, (start, end)) = (&self.work, self.span(now));
        SetRecord {
            kind: self.kind,
            value: work.value,
            bytes: work.bytes,
            start,
            end,
            device: work.device,
            context: work.context as u32,
            stream: self.stream(),
            correlation: work.correlation,
            flags: ASYNC.into(),
            memory_kind: DEVICE_MEMORY.into(),
            padding: 0,
            reserved: ptr::null(),
            graph_node: work.graph_node,
            graph: work.graph,
            channel: CHANNEL,
            channel_type: COMPUTE,
            is_device_launched: 0,
            source_graph: [0; 2],
            source_graph_node: 0,
        }
    }
}

/// Copies the first `bytes` bytes of a record.
///
/// # Safety
/// `to` must be valid for writing `bytes` bytes, and `bytes` must not exceed the size of the record.
unsafe fn put<T>(record: &T, to: *mut u8, bytes: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { ptr::copy_nonoverlapping(ptr::from_ref(record).cast::<u8>(), to, bytes) };
}
