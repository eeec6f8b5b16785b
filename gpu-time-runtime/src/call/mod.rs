//! A call of an annotated function, from its entry to the recording of its stop event.

pub(crate) mod barriers;
pub mod brackets;
pub(crate) mod decide;
pub mod default_stream;
pub mod enter;
pub mod failure;
pub(crate) mod first;
pub mod guard;
pub(crate) mod host;
pub(crate) mod host_start;
pub mod kernels;
pub mod lookup;
pub(crate) mod opened;
pub mod scope;
pub mod source;
#[cfg(feature = "tracing")]
pub mod spans;
pub mod stream;
pub(crate) mod stream_call;
pub(crate) mod ticket;
pub(crate) mod timed_by;
mod warmup;
