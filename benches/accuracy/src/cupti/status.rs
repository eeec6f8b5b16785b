//! The results of CUPTI's functions.

/// A `CUptiResult`.
pub(super) type Status = u32;
/// `CUPTI_SUCCESS`.
pub(super) const SUCCESS: Status = 0;
/// `CUPTI_ERROR_MAX_LIMIT_REACHED`, which `cuptiActivityGetNextRecord` returns at the end of a
/// buffer.
pub(super) const MAX_LIMIT_REACHED: Status = 12;
