//! Plain values passed between layers.

pub(crate) mod activity;
pub mod attribute;
pub(crate) mod device;
pub(crate) mod gpu_stream;
pub(crate) mod handles;
pub mod key;
pub(crate) mod label;
#[cfg_attr(not(feature = "kernels"), allow(dead_code, reason = "only recording needs all of it"))]
pub(crate) mod record_mode;
pub(crate) mod sample;
pub mod sampling;
pub(crate) mod settings;
pub(crate) mod site_time;
pub(crate) mod stream_id;
pub mod workload;
