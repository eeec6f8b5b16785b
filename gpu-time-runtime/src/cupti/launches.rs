//! The callback at the beginning of every API call that enqueues work.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;
use std::sync::OnceLock;

use crate::base::switches;
use crate::types::activity::Launched;

/// `CUPTI_CB_DOMAIN_DRIVER_API`. The runtime API and libraries launch through the driver's.
pub(super) const DRIVER_API: c_int = 1;
/// `CUPTI_API_ENTER`.
const ENTER: c_int = 0;
/// `CU_STREAM_PER_THREAD`, which 0 stands for in calls compiled for per-thread default streams.
const PER_THREAD: usize = 2;

/// `CUpti_CallbackData`, the same from CUDA 11.8 to 13.5.
#[repr(C)]
pub(super) struct CallbackData {
    site: c_int,
    function_name: *const c_char,
    /// The arguments of the call, in a struct.
    params: *const u8,
    return_value: *mut c_void,
    symbol_name: *const c_char,
    context: *mut c_void,
    context_uid: u32,
    correlation_data: *mut u64,
    correlation: u32,
}

const _: () = {
    assert!(offset_of!(CallbackData, params) == 16);
    assert!(offset_of!(CallbackData, context) == 40);
    assert!(offset_of!(CallbackData, correlation) == 64);
    assert!(size_of::<CallbackData>() == 72);
};

/// The place of the stream among the arguments of a call.
#[derive(Clone, Copy)]
enum StreamAt {
    /// At this offset.
    Offset(u8),
    /// In the `CUlaunchConfig` that the first argument points to.
    Config,
    /// The call has no such argument and uses the default stream.
    Default,
    /// The call has several.
    Several,
}

/// The offset of the stream in `CUlaunchConfig`.
const STREAM_IN_CONFIG: usize = 32;

/// The ids of a driver function: for the legacy default stream, and for per-thread default streams.
struct Function {
    legacy: u32,
    per_thread: u32,
    stream: StreamAt,
}

const fn function(legacy: u32, per_thread: u32, stream: StreamAt) -> Function {
    Function { legacy, per_thread, stream }
}

/// `CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch`.
const GRAPH_LAUNCH: Function = function(514, 515, StreamAt::Offset(8));

/// Every driver function that enqueues a kernel, a copy or a memset, in the order of the first ids.
#[rustfmt::skip]
const FUNCTIONS: [Function; 47] = [
    function(216, 428, StreamAt::Offset(24)), // cuMemsetD8Async
    function(218, 429, StreamAt::Offset(24)), // cuMemsetD16Async
    function(220, 430, StreamAt::Offset(24)), // cuMemsetD32Async
    function(222, 431, StreamAt::Offset(40)), // cuMemsetD2D8Async
    function(224, 432, StreamAt::Offset(40)), // cuMemsetD2D16Async
    function(226, 433, StreamAt::Offset(40)), // cuMemsetD2D32Async
    function(249, 411, StreamAt::Default),    // cuMemsetD8_v2
    function(250, 412, StreamAt::Default),    // cuMemsetD16_v2
    function(251, 413, StreamAt::Default),    // cuMemsetD32_v2
    function(252, 414, StreamAt::Default),    // cuMemsetD2D8_v2
    function(253, 415, StreamAt::Default),    // cuMemsetD2D16_v2
    function(254, 416, StreamAt::Default),    // cuMemsetD2D32_v2
    function(276, 397, StreamAt::Default),    // cuMemcpyHtoD_v2
    function(277, 421, StreamAt::Offset(24)), // cuMemcpyHtoDAsync_v2
    function(278, 398, StreamAt::Default),    // cuMemcpyDtoH_v2
    function(279, 422, StreamAt::Offset(24)), // cuMemcpyDtoHAsync_v2
    function(280, 399, StreamAt::Default),    // cuMemcpyDtoD_v2
    function(281, 423, StreamAt::Offset(24)), // cuMemcpyDtoDAsync_v2
    function(282, 403, StreamAt::Default),    // cuMemcpyAtoH_v2
    function(283, 420, StreamAt::Offset(32)), // cuMemcpyAtoHAsync_v2
    function(284, 401, StreamAt::Default),    // cuMemcpyAtoD_v2
    function(285, 400, StreamAt::Default),    // cuMemcpyDtoA_v2
    function(286, 404, StreamAt::Default),    // cuMemcpyAtoA_v2
    function(287, 405, StreamAt::Default),    // cuMemcpy2D_v2
    function(288, 406, StreamAt::Default),    // cuMemcpy2DUnaligned_v2
    function(289, 424, StreamAt::Offset(8)),  // cuMemcpy2DAsync_v2
    function(290, 407, StreamAt::Default),    // cuMemcpy3D_v2
    function(291, 425, StreamAt::Offset(8)),  // cuMemcpy3DAsync_v2
    function(292, 402, StreamAt::Default),    // cuMemcpyHtoA_v2
    function(293, 419, StreamAt::Offset(32)), // cuMemcpyHtoAAsync_v2
    function(305, 408, StreamAt::Default),    // cuMemcpy
    function(306, 418, StreamAt::Offset(24)), // cuMemcpyAsync
    function(307, 442, StreamAt::Offset(40)), // cuLaunchKernel
    function(318, 409, StreamAt::Default),    // cuMemcpyPeer
    function(319, 426, StreamAt::Offset(40)), // cuMemcpyPeerAsync
    function(320, 410, StreamAt::Default),    // cuMemcpy3DPeer
    function(321, 427, StreamAt::Offset(8)),  // cuMemcpy3DPeerAsync
    function(477, 478, StreamAt::Offset(40)), // cuLaunchCooperativeKernel
    function(480, 480, StreamAt::Several),    // cuLaunchCooperativeKernelMultiDevice
    GRAPH_LAUNCH,
    function(652, 653, StreamAt::Config),     // cuLaunchKernelEx
    function(776, 777, StreamAt::Offset(64)), // cuMemcpyBatchAsync
    function(778, 779, StreamAt::Offset(32)), // cuMemcpy3DBatchAsync
    function(796, 797, StreamAt::Offset(56)), // cuMemcpyBatchAsync_v2
    function(798, 799, StreamAt::Offset(24)), // cuMemcpy3DBatchAsync_v2
    function(837, 838, StreamAt::Offset(32)), // cuMemcpyWithAttributesAsync
    function(839, 840, StreamAt::Offset(16)), // cuMemcpy3DWithAttributesAsync
];

/// Returns the ids of the functions whose calls are observed.
pub(super) fn callback_ids() -> impl Iterator<Item = u32> {
    FUNCTIONS.iter().flat_map(|function| {
        let other = (function.per_thread != function.legacy).then_some(function.per_thread);
        [function.legacy].into_iter().chain(other)
    })
}

static OBSERVER: OnceLock<fn(Launched)> = OnceLock::new();

/// Sets the function that is called on the launching thread when a call that enqueues work begins, while
/// CUPTI is switched on. The first one stays. It must not panic, lock, allocate or call the driver, and
/// it is called for launches of the runtime itself as well.
pub(crate) fn observe_launches(observer: fn(Launched)) {
    _ = OBSERVER.set(observer);
}

/// The callback for API calls, on the thread that calls.
///
/// # Safety
///
/// `data` must be null or, for a driver call, describe the call `id` as CUPTI does.
pub(super) unsafe extern "C" fn on_call(
    _: *mut c_void,
    domain: c_int,
    id: u32,
    data: *const CallbackData,
) {
    thread_local! {
        // Without a destructor, so that it can be read as long as the thread runs at all.
        static LAST: Cell<u32> = const { Cell::new(0) };
    }
    // Also in a forked child, and during process exit.
    if domain != DRIVER_API || data.is_null() || switches::is_closed() {
        return;
    }
    // SAFETY: CUPTI passes this struct for calls of the driver's API.
    let data = unsafe { &*data };
    // A function that calls another one reports the same id for both.
    if data.site != ENTER || LAST.replace(data.correlation) == data.correlation {
        return;
    }
    if let Some(observer) = OBSERVER.get() {
        observer(Launched {
            correlation: data.correlation,
            context: data.context.addr(),
            // SAFETY: the caller's promise.
            stream: unsafe { stream(id, data.params) },
            is_graph: id == GRAPH_LAUNCH.legacy || id == GRAPH_LAUNCH.per_thread,
        });
    }
}

/// Returns the stream among the arguments of a call.
///
/// # Safety
///
/// `params` must be null or point to the arguments of the function with this id, as CUPTI passes them.
unsafe fn stream(id: u32, params: *const u8) -> Option<usize> {
    let function = FUNCTIONS.iter().find(|f| f.legacy == id || f.per_thread == id)?;
    if params.is_null() {
        return None;
    }
    // SAFETY: the table has the offsets of pointers in the arguments of each function. A launch has a
    // configuration.
    let stream = unsafe {
        match function.stream {
            StreamAt::Offset(at) => params.add(at.into()).cast::<usize>().read_unaligned(),
            StreamAt::Config => {
                let config = params.cast::<*const u8>().read_unaligned();
                if config.is_null() {
                    return None;
                }
                config.add(STREAM_IN_CONFIG).cast::<usize>().read_unaligned()
            }
            StreamAt::Default => 0,
            StreamAt::Several => return None,
        }
    };
    Some(if stream == 0 && id != function.legacy { PER_THREAD } else { stream })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::ptr;

    use super::*;

    thread_local! {
        static SEEN: RefCell<Vec<Launched>> = const { RefCell::new(Vec::new()) };
    }

    /// Calls the callback as CUPTI does, and returns what the observer saw.
    fn call(site: c_int, id: u32, correlation: u32, params: &[usize]) -> Vec<Launched> {
        observe_launches(|launched| SEEN.with_borrow_mut(|seen| seen.push(launched)));
        let data = CallbackData {
            site,
            function_name: ptr::null(),
            params: params.as_ptr().cast(),
            return_value: ptr::null_mut(),
            symbol_name: ptr::null(),
            context: ptr::without_provenance_mut(0xc0),
            context_uid: 1,
            correlation_data: ptr::null_mut(),
            correlation,
        };
        // SAFETY: the tests pass enough arguments for each function.
        unsafe { on_call(ptr::null_mut(), DRIVER_API, id, &raw const data) };
        SEEN.take()
    }

    fn launched(correlation: u32, stream: Option<usize>, is_graph: bool) -> [Launched; 1] {
        [Launched { correlation, context: 0xc0, stream, is_graph }]
    }

    #[test]
    fn stream_is_found_in_arguments() {
        assert_eq!(call(ENTER, 307, 1, &[0, 0, 0, 0, 0, 7]), launched(1, Some(7), false));
        assert_eq!(call(ENTER, 442, 2, &[0, 0, 0, 0, 0, 0]), launched(2, Some(PER_THREAD), false));
        assert_eq!(call(ENTER, 514, 3, &[0, 9]), launched(3, Some(9), true));
        assert_eq!(call(ENTER, 276, 4, &[0]), launched(4, Some(0), false));
        assert_eq!(call(ENTER, 480, 5, &[0]), launched(5, None, false));
        let config: [usize; 5] = [0, 0, 0, 0, 11];
        let at = config.as_ptr().expose_provenance();
        assert_eq!(call(ENTER, 652, 6, &[at]), launched(6, Some(11), false));
    }

    #[test]
    fn nested_call_and_exit_are_not_seen() {
        assert_eq!(call(ENTER, 307, 41, &[0; 6]).len(), 1);
        assert_eq!(call(ENTER, 652, 41, &[0; 6]), []);
        assert_eq!(call(1, 307, 42, &[0; 6]), []);
        assert_eq!(call(ENTER, 307, 43, &[0; 6]).len(), 1);
    }

    #[test]
    fn ids_are_unique() {
        let mut ids: Vec<u32> = callback_ids().collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }
}
