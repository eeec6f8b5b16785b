//! `cuStreamGetAttribute` for the access policy window.

use std::ffi::{c_int, c_void};

use cudarc::driver::sys::{CUresult, CUstream};

/// `cuStreamGetAttribute`.
pub(super) type GetAttribute = unsafe extern "C" fn(CUstream, c_int, *mut Attribute) -> CUresult;

/// `CUstreamAttrValue` of a window, which is a union of 64 bytes, with room for a larger one.
#[repr(C)]
pub(super) struct Attribute {
    pub base: *mut c_void,
    pub bytes: usize,
    pub hit_ratio: f32,
    pub hit: c_int,
    pub miss: c_int,
    pub rest: [u64; 16],
}
