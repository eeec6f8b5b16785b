//! Values and structures of CUPTI's C interface.

use std::ffi::{c_char, c_void};

/// `CUptiResult`.
pub(crate) type Code = u32;

pub(crate) const SUCCESS: Code = 0;
pub(crate) const INVALID_PARAMETER: Code = 1;
pub(crate) const INVALID_OPERATION: Code = 7;
pub(crate) const MAX_LIMIT_REACHED: Code = 12;
pub(crate) const NOT_COMPATIBLE: Code = 14;
pub(crate) const NOT_INITIALIZED: Code = 15;
pub(crate) const INVALID_STREAM: Code = 20;
pub(crate) const INVALID_KIND: Code = 21;
pub(crate) const INSUFFICIENT_PRIVILEGES: Code = 35;
pub(crate) const MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED: Code = 39;

/// Returns the name of a result code, or `None` if neither the stand-in nor a script returns it.
pub(crate) fn name(code: Code) -> Option<&'static std::ffi::CStr> {
    Some(match code {
        SUCCESS => c"CUPTI_SUCCESS",
        INVALID_PARAMETER => c"CUPTI_ERROR_INVALID_PARAMETER",
        2 => c"CUPTI_ERROR_INVALID_DEVICE",
        3 => c"CUPTI_ERROR_INVALID_CONTEXT",
        INVALID_OPERATION => c"CUPTI_ERROR_INVALID_OPERATION",
        8 => c"CUPTI_ERROR_OUT_OF_MEMORY",
        9 => c"CUPTI_ERROR_HARDWARE",
        MAX_LIMIT_REACHED => c"CUPTI_ERROR_MAX_LIMIT_REACHED",
        13 => c"CUPTI_ERROR_NOT_READY",
        NOT_COMPATIBLE => c"CUPTI_ERROR_NOT_COMPATIBLE",
        NOT_INITIALIZED => c"CUPTI_ERROR_NOT_INITIALIZED",
        INVALID_STREAM => c"CUPTI_ERROR_INVALID_STREAM",
        INVALID_KIND => c"CUPTI_ERROR_INVALID_KIND",
        26 => c"CUPTI_ERROR_HARDWARE_BUSY",
        27 => c"CUPTI_ERROR_NOT_SUPPORTED",
        33 => c"CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED",
        INSUFFICIENT_PRIVILEGES => c"CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
        36 => c"CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED",
        38 => c"CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED",
        MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED => c"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
        40 => c"CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES",
        999 => c"CUPTI_ERROR_UNKNOWN",
        _ => return None,
    })
}

/// `CUPTI_CB_DOMAIN_DRIVER_API`.
pub(crate) const DRIVER_API: u32 = 1;
/// `CUPTI_CB_DOMAIN_SIZE`, one more than the highest domain.
pub(crate) const DOMAINS: u32 = 7;

/// `CUpti_CallbackFunc`.
pub(crate) type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const CallbackData);

/// `CUpti_CallbackData`.
#[repr(C)]
pub(crate) struct CallbackData {
    /// 0 on entry, 1 on exit.
    pub site: u32,
    pub function_name: *const c_char,
    pub parameters: *const c_void,
    pub return_value: *mut c_void,
    pub symbol_name: *const c_char,
    pub context: *mut c_void,
    pub context_id: u32,
    /// A value that the client may set on entry and read on exit.
    pub correlation_data: *mut u64,
    pub correlation: u32,
}

/// `CUpti_SubscriberParams`. An older caller's version is smaller: it lacks the last fields.
#[repr(C)]
pub(crate) struct SubscriberParams {
    pub size: usize,
    pub name: *const c_char,
    pub old_name: *mut c_char,
    pub old_name_size: usize,
    pub allows_others: u8,
    pub padding: [u8; 7],
}

/// `CUpti_BuffersCallbackRequestFunc`. The second version has an additional argument.
pub(crate) type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
pub(crate) type Requested2 =
    unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize, *const RequestInfo);

/// `CUpti_BuffersCallbackCompleteFunc` and its second version.
pub(crate) type Completed = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
pub(crate) type Completed2 = unsafe extern "C" fn(*mut u8, usize, usize, *const CompleteInfo);

/// `CUpti_BufferCallbackRequestInfo`.
#[repr(C)]
pub(crate) struct RequestInfo {
    pub size: usize,
}

/// `CUpti_BufferCallbackCompleteInfo`.
#[repr(C)]
pub(crate) struct CompleteInfo {
    pub size: usize,
    pub thread: u64,
    pub layouts: *const c_void,
    pub layout_count: usize,
}

/// `CUPTI_ACTIVITY_FLAG_FLUSH_FORCED`.
pub(crate) const FLUSH_FORCED: u32 = 1;

/// Activity kinds.
pub(crate) const MEMCPY: u32 = 1;
pub(crate) const MEMSET: u32 = 2;
pub(crate) const KERNEL: u32 = 3;
pub(crate) const CONCURRENT_KERNEL: u32 = 10;
/// Copies between devices.
pub(crate) const MEMCPY2: u32 = 22;

/// `CUpti_ActivityKernel13`. Earlier versions are prefixes of it.
#[repr(C)]
pub(crate) struct KernelRecord {
    pub kind: u32,
    pub cache_config: u8,
    pub shared_memory_config: u8,
    pub registers: u16,
    pub partitioned_cache: [u32; 2],
    pub start: u64,
    pub end: u64,
    pub completed: u64,
    pub device: u32,
    pub context: u32,
    pub stream: u32,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub static_shared_bytes: u32,
    pub dynamic_shared_bytes: u32,
    pub local_bytes_per_thread: u32,
    pub local_bytes: u32,
    pub correlation: u32,
    pub grid_id: u64,
    pub name: *const c_char,
    pub reserved: *const c_void,
    pub queued: u64,
    pub submitted: u64,
    pub launch_type: u8,
    pub carveout: [u8; 3],
    pub shared_bytes_executed: u32,
    pub graph_node: u64,
    pub shared_limit: u32,
    pub graph: u32,
    pub access_policy: *const c_void,
    pub channel: u32,
    pub channel_type: u32,
    pub cluster: [u32; 3],
    pub cluster_policy: u32,
    pub local_bytes_2: u64,
    pub clusters: [u32; 2],
    pub is_device_launched: u64,
    pub priority: [u32; 2],
    pub execution_model: [u32; 2],
    pub source_graph: [u32; 2],
    pub source_graph_node: u64,
}

/// `CUpti_ActivityMemcpy7`. Earlier versions are prefixes of it.
#[repr(C)]
pub(crate) struct CopyRecord {
    pub kind: u32,
    pub copy_kind: u8,
    pub source_kind: u8,
    pub target_kind: u8,
    pub flags: u8,
    pub bytes: u64,
    pub start: u64,
    pub end: u64,
    pub device: u32,
    pub context: u32,
    pub stream: u32,
    pub correlation: u32,
    pub runtime_correlation: u32,
    pub padding: u32,
    pub reserved: *const c_void,
    pub graph_node: u64,
    pub graph: u32,
    pub channel: u32,
    pub channel_type: u32,
    pub is_device_launched: u32,
    pub copies: u64,
    pub source_graph: [u32; 2],
    pub source_graph_node: u64,
}

/// `CUpti_ActivityMemcpyPtoP4`.
#[repr(C)]
pub(crate) struct PeerRecord {
    pub kind: u32,
    pub copy_kind: u8,
    pub source_kind: u8,
    pub target_kind: u8,
    pub flags: u8,
    pub bytes: u64,
    pub start: u64,
    pub end: u64,
    pub device: u32,
    pub context: u32,
    pub stream: u32,
    /// Device and context id of the source, then of the destination.
    pub peers: [[u32; 2]; 2],
    pub correlation: u32,
    pub reserved: *const c_void,
    pub graph_node: u64,
    pub graph: u32,
    pub channel: u32,
    pub channel_type: u32,
    pub padding: u32,
}

/// `CUpti_ActivityMemset5`. Earlier versions are prefixes of it.
#[repr(C)]
pub(crate) struct SetRecord {
    pub kind: u32,
    pub value: u32,
    pub bytes: u64,
    pub start: u64,
    pub end: u64,
    pub device: u32,
    pub context: u32,
    pub stream: u32,
    pub correlation: u32,
    pub flags: u16,
    pub memory_kind: u16,
    pub padding: u32,
    pub reserved: *const c_void,
    pub graph_node: u64,
    pub graph: u32,
    pub channel: u32,
    pub channel_type: u32,
    pub is_device_launched: u32,
    pub source_graph: [u32; 2],
    pub source_graph_node: u64,
}

// Checks sizes and offsets against the headers of CUPTI 13.5.
const _: () = {
    use std::mem::{offset_of, size_of};
    assert!(size_of::<CallbackData>() == 72 && offset_of!(CallbackData, correlation) == 64);
    assert!(size_of::<SubscriberParams>() == 40);
    assert!(size_of::<KernelRecord>() == 248 && size_of::<CopyRecord>() == 112);
    assert!(size_of::<SetRecord>() == 104 && size_of::<PeerRecord>() == 96);
    assert!(offset_of!(KernelRecord, start) == 16 && offset_of!(KernelRecord, grid) == 52);
    assert!(offset_of!(KernelRecord, correlation) == 92 && offset_of!(KernelRecord, name) == 104);
    assert!(offset_of!(KernelRecord, graph_node) == 144 && offset_of!(KernelRecord, graph) == 156);
    assert!(offset_of!(KernelRecord, channel) == 168 && offset_of!(KernelRecord, cluster) == 176);
    assert!(offset_of!(CopyRecord, start) == 16 && offset_of!(CopyRecord, correlation) == 44);
    assert!(offset_of!(CopyRecord, graph_node) == 64 && offset_of!(CopyRecord, channel) == 76);
    assert!(offset_of!(PeerRecord, start) == 16 && offset_of!(PeerRecord, correlation) == 60);
    assert!(offset_of!(PeerRecord, graph_node) == 72 && offset_of!(PeerRecord, channel) == 84);
    assert!(offset_of!(SetRecord, start) == 16 && offset_of!(SetRecord, correlation) == 44);
    assert!(offset_of!(SetRecord, graph_node) == 64 && offset_of!(SetRecord, channel) == 76);
};
