//! Ids of the driver functions that initialize CUDA, enqueue or capture work, load or unload code, destroy a stream, or
//! change a graph, as in `cupti_driver_cbid.h`.

use std::ffi::CStr;

/// A driver function with callbacks.
#[derive(Debug)]
pub(crate) struct Function {
    pub id: u32,
    pub name: &'static CStr,
}

/// The functions with callbacks that the simulated driver exports.
const FUNCTIONS: &[Function] = &[
    of(1, c"cuInit"),
    of(19, c"cuModuleLoadData"),
    of(20, c"cuModuleLoadDataEx"),
    of(22, c"cuModuleUnload"),
    of(216, c"cuMemsetD8Async"),
    of(218, c"cuMemsetD16Async"),
    of(220, c"cuMemsetD32Async"),
    of(249, c"cuMemsetD8_v2"),
    of(250, c"cuMemsetD16_v2"),
    of(251, c"cuMemsetD32_v2"),
    of(276, c"cuMemcpyHtoD_v2"),
    of(277, c"cuMemcpyHtoDAsync_v2"),
    of(278, c"cuMemcpyDtoH_v2"),
    of(279, c"cuMemcpyDtoHAsync_v2"),
    of(280, c"cuMemcpyDtoD_v2"),
    of(281, c"cuMemcpyDtoDAsync_v2"),
    of(305, c"cuMemcpy"),
    of(306, c"cuMemcpyAsync"),
    of(307, c"cuLaunchKernel"),
    of(319, c"cuMemcpyPeerAsync"),
    of(326, c"cuStreamDestroy_v2"),
    of(477, c"cuLaunchCooperativeKernel"),
    of(497, c"cuStreamEndCapture"),
    of(514, c"cuGraphLaunch"),
    of(516, c"cuGraphExecDestroy"),
    of(539, c"cuStreamBeginCapture_v2"),
    of(652, c"cuLaunchKernelEx"),
    of(696, c"cuGraphExecUpdate_v2"),
];

const fn of(id: u32, name: &'static CStr) -> Function {
    Function { id, name }
}

impl Function {
    /// Returns `true` if the function loads or unloads code.
    pub(crate) fn is_load(&self) -> bool {
        (19..100).contains(&self.id)
    }

    /// Returns `true` if the function enqueues work.
    pub(crate) fn is_launch(&self) -> bool {
        !self.is_load() && ![1, 326, 497, 516, 539, 696].contains(&self.id)
    }
}

/// Returns the function with this name.
pub(crate) fn find(name: &[u8]) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name.to_bytes() == name)
}
