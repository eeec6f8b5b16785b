//! The driver functions that enqueue work.

use crate::cupti::records::{MEMCPY, MEMCPY2, MEMSET};

/// `CU_STREAM_PER_THREAD`. In calls compiled for per-thread default streams, stream 0 means this
/// one.
const PER_THREAD: usize = 2;
/// The offset of the stream in `CUlaunchConfig`.
const STREAM_IN_CONFIG: usize = 32;

/// The work that a function enqueues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Enqueues {
    Kernel,
    Copy,
    CopyBatch,
    PeerCopy,
    Set,
    Graph,
}

/// The location of the stream in the arguments of a call.
#[derive(Clone, Copy, Debug)]
enum StreamAt {
    /// At this offset.
    Offset(u8),
    /// In the `CUlaunchConfig` that the first argument points to.
    Config,
    /// The call has no stream argument and uses the default stream.
    Default,
    /// The call launches on several streams.
    Several,
}

/// The location of the number of bytes, elements or rows in the arguments of a call.
#[derive(Clone, Copy, Debug)]
enum SizeAt {
    /// The call has no size, or one for each of several copies.
    Nowhere,
    /// At this offset.
    At(u8),
    /// The width and the height, at these offsets.
    Plane(u8, u8),
    /// In the `CUDA_MEMCPY2D` that the first argument points to.
    Copy2D,
    /// In the `CUDA_MEMCPY3D` or `CUDA_MEMCPY3D_PEER` that the first argument points to.
    Copy3D,
}

/// The offsets of the width and the height in `CUDA_MEMCPY2D`.
const EXTENT_2D: [usize; 2] = [112, 120];
/// The offsets of the width, the height and the depth in `CUDA_MEMCPY3D` and `CUDA_MEMCPY3D_PEER`.
const EXTENT_3D: [usize; 3] = [176, 184, 192];

/// A driver function. It has two callback ids: for the legacy default stream, and for per-thread
/// default streams.
#[derive(Clone, Copy, Debug)]
struct DriverFunction {
    legacy: u32,
    per_thread: u32,
    enqueues: Enqueues,
    stream: StreamAt,
    size: SizeAt,
}

const fn function(
    legacy: u32,
    per_thread: u32,
    enqueues: Enqueues,
    stream: StreamAt,
    size: SizeAt,
) -> DriverFunction {
    DriverFunction { legacy, per_thread, enqueues, stream, size }
}

use Enqueues::*;
use SizeAt::*;
use StreamAt::*;

/// Every driver function that enqueues a kernel, a copy, a memset or a graph. The ids are from
/// `cupti_driver_cbid.h` and never change.
#[rustfmt::skip]
const FUNCTIONS: [DriverFunction; 47] = [
    function(216, 428, Set, Offset(24), At(16)),        // cuMemsetD8Async
    function(218, 429, Set, Offset(24), At(16)),        // cuMemsetD16Async
    function(220, 430, Set, Offset(24), At(16)),        // cuMemsetD32Async
    function(222, 431, Set, Offset(40), Plane(24, 32)), // cuMemsetD2D8Async
    function(224, 432, Set, Offset(40), Plane(24, 32)), // cuMemsetD2D16Async
    function(226, 433, Set, Offset(40), Plane(24, 32)), // cuMemsetD2D32Async
    function(249, 411, Set, Default, At(16)),           // cuMemsetD8_v2
    function(250, 412, Set, Default, At(16)),           // cuMemsetD16_v2
    function(251, 413, Set, Default, At(16)),           // cuMemsetD32_v2
    function(252, 414, Set, Default, Plane(24, 32)),    // cuMemsetD2D8_v2
    function(253, 415, Set, Default, Plane(24, 32)),    // cuMemsetD2D16_v2
    function(254, 416, Set, Default, Plane(24, 32)),    // cuMemsetD2D32_v2
    function(276, 397, Copy, Default, At(16)),          // cuMemcpyHtoD_v2
    function(277, 421, Copy, Offset(24), At(16)),       // cuMemcpyHtoDAsync_v2
    function(278, 398, Copy, Default, At(16)),          // cuMemcpyDtoH_v2
    function(279, 422, Copy, Offset(24), At(16)),       // cuMemcpyDtoHAsync_v2
    function(280, 399, Copy, Default, At(16)),          // cuMemcpyDtoD_v2
    function(281, 423, Copy, Offset(24), At(16)),       // cuMemcpyDtoDAsync_v2
    function(282, 403, Copy, Default, At(24)),          // cuMemcpyAtoH_v2
    function(283, 420, Copy, Offset(32), At(24)),       // cuMemcpyAtoHAsync_v2
    function(284, 401, Copy, Default, At(24)),          // cuMemcpyAtoD_v2
    function(285, 400, Copy, Default, At(24)),          // cuMemcpyDtoA_v2
    function(286, 404, Copy, Default, At(32)),          // cuMemcpyAtoA_v2
    function(287, 405, Copy, Default, Copy2D),          // cuMemcpy2D_v2
    function(288, 406, Copy, Default, Copy2D),          // cuMemcpy2DUnaligned_v2
    function(289, 424, Copy, Offset(8), Copy2D),        // cuMemcpy2DAsync_v2
    function(290, 407, Copy, Default, Copy3D),          // cuMemcpy3D_v2
    function(291, 425, Copy, Offset(8), Copy3D),        // cuMemcpy3DAsync_v2
    function(292, 402, Copy, Default, At(24)),          // cuMemcpyHtoA_v2
    function(293, 419, Copy, Offset(32), At(24)),       // cuMemcpyHtoAAsync_v2
    function(305, 408, Copy, Default, At(16)),          // cuMemcpy
    function(306, 418, Copy, Offset(24), At(16)),       // cuMemcpyAsync
    function(307, 442, Kernel, Offset(40), Nowhere),    // cuLaunchKernel
    function(318, 409, PeerCopy, Default, At(32)),      // cuMemcpyPeer
    function(319, 426, PeerCopy, Offset(40), At(32)),   // cuMemcpyPeerAsync
    function(320, 410, PeerCopy, Default, Copy3D),      // cuMemcpy3DPeer
    function(321, 427, PeerCopy, Offset(8), Copy3D),    // cuMemcpy3DPeerAsync
    function(477, 478, Kernel, Offset(40), Nowhere),    // cuLaunchCooperativeKernel
    function(480, 480, Kernel, Several, Nowhere),       // cuLaunchCooperativeKernelMultiDevice
    function(514, 515, Graph, Offset(8), Nowhere),      // cuGraphLaunch
    function(652, 653, Kernel, Config, Nowhere),        // cuLaunchKernelEx
    function(776, 777, CopyBatch, Offset(64), Nowhere), // cuMemcpyBatchAsync
    function(778, 779, CopyBatch, Offset(32), Nowhere), // cuMemcpy3DBatchAsync
    function(796, 797, CopyBatch, Offset(56), Nowhere), // cuMemcpyBatchAsync_v2
    function(798, 799, CopyBatch, Offset(24), Nowhere), // cuMemcpy3DBatchAsync_v2
    function(837, 838, Copy, Offset(32), At(16)),       // cuMemcpyWithAttributesAsync
    function(839, 840, Copy, Offset(16), Nowhere),      // cuMemcpy3DWithAttributesAsync
];

/// One more than the highest id.
const IDS: usize = 841;

/// The callback of one function, in one of its two forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Callback(u8);

/// For each id, the callback plus 1, or 0 if the function enqueues nothing.
const CALLBACKS: [u8; IDS] = {
    let mut callbacks = [0; IDS];
    let mut index = 0;
    while index < FUNCTIONS.len() {
        let DriverFunction { legacy, per_thread, .. } = FUNCTIONS[index];
        callbacks[per_thread as usize] = 2 * index as u8 + 2;
        callbacks[legacy as usize] = 2 * index as u8 + 1;
        index += 1;
    }
    callbacks
};

impl Callback {
    /// Returns the callback with this id, if its function enqueues work.
    #[inline]
    pub fn with_id(id: u32) -> Option<Callback> {
        CALLBACKS.get(id as usize)?.checked_sub(1).map(Callback)
    }

    /// Returns all callbacks.
    pub fn all() -> impl Iterator<Item = Callback> {
        (0..IDS as u32).filter_map(Callback::with_id)
    }

    fn function(self) -> &'static DriverFunction {
        // Every callback comes from an entry of the table.
        &FUNCTIONS[usize::from(self.0 / 2)]
    }

    fn is_per_thread(self) -> bool {
        self.0 % 2 == 1
    }

    pub fn id(self) -> u32 {
        let function = self.function();
        if self.is_per_thread() { function.per_thread } else { function.legacy }
    }

    pub fn is_graph(self) -> bool {
        self.function().enqueues == Graph
    }

    /// Returns `true` if a call may have any number of records.
    pub fn is_group(self) -> bool {
        let DriverFunction { enqueues, stream, .. } = self.function();
        matches!(enqueues, Graph | CopyBatch) || matches!(stream, Several)
    }

    /// Returns the kinds of activity, other than kernels, that must be on for CUPTI to record the
    /// work.
    pub fn kinds(self) -> &'static [u32] {
        match self.function().enqueues {
            Kernel => &[],
            Copy | CopyBatch => &[MEMCPY],
            PeerCopy => &[MEMCPY, MEMCPY2],
            Set => &[MEMSET],
            Graph => &[MEMCPY, MEMSET],
        }
    }

    /// Returns `true` if the call copies or sets 0 bytes. It then enqueues nothing.
    ///
    /// # Safety
    ///
    /// As for [`stream`](Self::stream).
    pub unsafe fn is_empty(self, params: *const u8) -> bool {
        if params.is_null() {
            return false;
        }
        // SAFETY: the table gives the offsets of the sizes in this function's arguments; a description of a copy
        // that is not null is valid.
        let is_zero =
            |of: *const u8, at: usize| unsafe { of.add(at).cast::<usize>().read_unaligned() } == 0;
        let copy = || {
            // SAFETY: the first argument of these functions is a pointer.
            let copy = unsafe { params.cast::<*const u8>().read_unaligned() };
            (!copy.is_null()).then_some(copy)
        };
        match self.function().size {
            Nowhere => false,
            At(at) => is_zero(params, at.into()),
            Plane(width, height) => is_zero(params, width.into()) || is_zero(params, height.into()),
            Copy2D => copy().is_some_and(|copy| EXTENT_2D.iter().any(|at| is_zero(copy, *at))),
            Copy3D => copy().is_some_and(|copy| EXTENT_3D.iter().any(|at| is_zero(copy, *at))),
        }
    }

    /// Returns the stream that a call enqueues work on, or `None` if there are several or it is
    /// unknown.
    ///
    /// # Safety
    ///
    /// `params` must be null or point to the arguments of this function, as CUPTI passes them.
    pub unsafe fn stream(self, params: *const u8) -> Option<usize> {
        if params.is_null() {
            return None;
        }
        // SAFETY: the table gives the offset of the stream in this function's arguments; a
        // configuration that is not null is valid.
        let stream = unsafe {
            match self.function().stream {
                Offset(at) => params.add(at.into()).cast::<usize>().read_unaligned(),
                Config => {
                    let config = params.cast::<*const u8>().read_unaligned();
                    if config.is_null() {
                        return None;
                    }
                    config.add(STREAM_IN_CONFIG).cast::<usize>().read_unaligned()
                }
                Default => 0,
                Several => return None,
            }
        };
        Some(if stream == 0 && self.is_per_thread() { PER_THREAD } else { stream })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_id(id: u32) -> Callback {
        Callback::with_id(id).unwrap()
    }

    fn stream(id: u32, params: &[usize]) -> Option<usize> {
        // SAFETY: the tests pass enough arguments for each function.
        unsafe { with_id(id).stream(params.as_ptr().cast()) }
    }

    #[test]
    fn every_id_has_its_own_callback() {
        let ids: Vec<u32> = Callback::all().map(Callback::id).collect();
        // One function has a single id.
        assert_eq!(ids.len(), 2 * FUNCTIONS.len() - 1);
        assert!(ids.is_sorted_by(|one, other| one < other));
        for function in FUNCTIONS {
            for id in [function.legacy, function.per_thread] {
                assert_eq!(with_id(id).id(), id);
            }
        }
        assert_eq!((Callback::with_id(0), Callback::with_id(IDS as u32)), (None, None));
        assert_eq!((Callback::with_id(115), Callback::with_id(u32::MAX)), (None, None));
    }

    #[test]
    fn stream_is_found_in_arguments() {
        assert_eq!(stream(307, &[0, 0, 0, 0, 0, 7]), Some(7));
        assert_eq!(stream(442, &[0, 0, 0, 0, 0, 0]), Some(PER_THREAD));
        assert_eq!(stream(514, &[0, 9]), Some(9));
        assert_eq!(stream(276, &[0]), Some(0));
        assert_eq!(stream(397, &[0]), Some(PER_THREAD));
        assert_eq!(stream(480, &[0]), None);
        let config: [usize; 5] = [0, 0, 0, 0, 11];
        assert_eq!(stream(652, &[config.as_ptr().expose_provenance()]), Some(11));
        // SAFETY: null is allowed.
        assert_eq!(unsafe { with_id(307).stream(std::ptr::null()) }, None);
    }

    #[test]
    fn calls_for_no_bytes_are_empty() {
        // SAFETY: the tests pass enough arguments for each function.
        let is_empty =
            |id, params: &[usize]| unsafe { with_id(id).is_empty(params.as_ptr().cast()) };
        for (id, size) in [(216, 2), (428, 2), (276, 2), (282, 3), (286, 4), (319, 4)] {
            let mut params = [1; 6];
            assert!(!is_empty(id, &params), "{id}");
            params[size] = 0;
            assert!(is_empty(id, &params), "{id}");
        }
        for (id, sizes) in [(222, 3..5), (433, 3..5), (252, 3..5)] {
            for at in sizes {
                let mut params = [1; 6];
                assert!(!is_empty(id, &params), "{id}");
                params[at] = 0;
                assert!(is_empty(id, &params), "{id}");
            }
        }
        for (id, extent) in [(287, 14..16), (424, 14..16), (290, 22..25), (321, 22..25)] {
            for at in extent {
                let mut copy = [1_usize; 25];
                let params = |copy: &[usize; 25]| [copy.as_ptr().expose_provenance(), 0];
                assert!(!is_empty(id, &params(&copy)), "{id}");
                copy[at] = 0;
                assert!(is_empty(id, &params(&copy)), "{id}");
            }
            assert!(!is_empty(id, &[0, 0]), "{id}: null");
        }
        assert!(!is_empty(307, &[0; 6]), "a kernel has no size");
        // SAFETY: null is allowed.
        assert!(!unsafe { with_id(216).is_empty(std::ptr::null()) });
    }

    #[test]
    fn kinds_are_those_of_the_work() {
        assert_eq!(with_id(307).kinds(), [0; 0]);
        assert_eq!(with_id(279).kinds(), [MEMCPY]);
        assert_eq!(with_id(319).kinds(), [MEMCPY, MEMCPY2]);
        assert_eq!(with_id(216).kinds(), [MEMSET]);
        assert_eq!(with_id(796).kinds(), [MEMCPY]);
        assert_eq!((with_id(515).kinds(), with_id(515).is_graph()), (&[MEMCPY, MEMSET][..], true));
    }

    #[test]
    fn graphs_and_batches_have_any_number_of_records() {
        for group in [480, 514, 777, 778, 797, 798] {
            assert!(with_id(group).is_group(), "{group}");
        }
        for single in [307, 279, 216, 837] {
            assert!(!with_id(single).is_group(), "{single}");
        }
    }
}
