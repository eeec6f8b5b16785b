//! `CUDA_LAUNCH_BLOCKING`.

use std::sync::OnceLock;

/// Whether every launch waits for its kernel, so that a held stream would never be released.
pub(crate) fn launches_block() -> bool {
    static BLOCK: OnceLock<bool> = OnceLock::new();
    *BLOCK.get_or_init(|| {
        std::env::var_os("CUDA_LAUNCH_BLOCKING").is_some_and(|v| !v.is_empty() && v != "0")
    })
}
