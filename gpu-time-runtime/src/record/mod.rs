//! Recording: brackets from event pair to sample, opened calls, windows and the call tree.

pub(crate) mod bracket;
pub(crate) mod call_sums;
pub(crate) mod call_tree;
pub(crate) mod drain;
pub(crate) mod feeding;
pub(crate) mod graph;
pub(crate) mod kernel_base;
pub(crate) mod opened;
pub(crate) mod pending;
pub(crate) mod pool;
pub(crate) mod readout;
pub(crate) mod recorder;
pub(crate) mod running;
pub(crate) mod series_counters;
pub(crate) mod stream_state;
pub(crate) mod threads;
pub(crate) mod timeline;
#[cfg_attr(not(feature = "kernels"), path = "window/off.rs")]
pub(crate) mod window;
