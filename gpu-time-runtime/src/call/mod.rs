//! A call of an annotated function, from its entry to the recording of its stop event.
//!
//! The files that a launch timed by events goes through, in order:
//!
//! 1. [`enter`]: the macro has generated a call of the entry function for the clock and the scope.
//! 2. [`decide`] reads the switch, the filter, the sampling gap and the warm-up calls left in the
//!    thread's [counters](crate::site::counters). An untimed call ends here.
//! 3. [`source`]: generated code has answered which stream the call is on. [`decide`] finds the
//!    context, and the call is a [`StreamCall`](crate::record::threads::StreamCall) from here on.
//! 4. [`brackets`]: generated code starts and stops each launch.
//! 5. [`stream_call`] checks that the stream can take events now, and chooses the preparation.
//! 6. The thread's [`recorder`](crate::record::recorder) takes a [`bracket`](crate::record::bracket)
//!    from its pool, and counts it as begun in its
//!    [series](crate::record::series_counters).
//! 7. The bracket enqueues the flush, the hold and the start event through [`cuda`](crate::cuda).
//!    After the program's launch it enqueues the stop event.
//! 8. [`pending`](crate::record::pending): the bracket waits until a later call or a report drains
//!    those that the GPU has passed, and reads their times.
//! 9. [`feeding`](crate::record::feeding) decides whether the GPU was fed. Together with that, the time
//!    becomes a sample.
//! 10. The recorder adds the samples to the statistics in [`series`](crate::stats::series).
//!
//! A call that is [`opened`] leaves this path after the third step, one on the
//! [host clock](host) after the second.

pub(crate) mod barriers;
pub mod brackets;
pub(crate) mod call_state;
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
