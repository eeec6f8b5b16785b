//! Recording: brackets, opened calls and phases, the call tree, and the timeline of a trace.
//!
//! A timed call leaves its brackets in the [`recorder`] of its thread. A [`drain`] turns those that the GPU has
//! passed into samples of their series. A thread of the runtime collects CUPTI's records and turns them into the
//! figures of [`opened`] calls and of [`phase`]s. Both also add entries to the [`call_tree`] and the [`timeline`].

mod alignment;
mod awaited;
pub(crate) mod bracket;
pub(crate) mod call_sums;
pub(crate) mod call_tree;
pub(crate) mod collector;
pub(crate) mod disturbance;
pub(crate) mod drain;
pub(crate) mod feeding;
pub(crate) mod graph;
mod graph_sizes;
pub(crate) mod kernel_base;
mod launches;
pub(crate) mod open_brackets;
pub(crate) mod open_frames;
pub(crate) mod opened;
pub(crate) mod pending;
#[cfg_attr(not(feature = "kernels"), path = "phase/off.rs")]
pub(crate) mod phase;
pub(crate) mod pool;
#[cfg_attr(not(feature = "kernels"), path = "queue_off.rs")]
mod queue;
pub(crate) mod readout;
pub(crate) mod recorder;
pub(crate) mod records;
pub(crate) mod series_counters;
pub(crate) mod stack;
pub(crate) mod stream_progress;
pub(crate) mod stream_state;
pub(crate) mod threads;
pub(crate) mod timeline;
pub(crate) mod trial;
