//! A call of an annotated function, from its entry to the recording of its stop event.
//!
//! A launch timed by events goes through these files, in order. Each step names its main file first, and in
//! parentheses those that it asks on the way.
//!
//! 1. [`enter`]: the macro has generated a call of one of the two entries. What times the function is in its
//!    [spec](crate::types::attribute::Spec).
//! 2. [`decide`] reads the switch, the filter, the sampling gap and the warm-up calls left in the
//!    thread's [counters](crate::site::counters). An untimed call ends here; a [`ticket`] counts every
//!    other one exactly once.
//! 3. [`source`]: generated code has answered which stream the call is on.
//!    [`StreamQuery::found`](decide::StreamQuery::found) is the one call that generated code makes while it
//!    evaluates the stream. It decides whether the stream's handle can be believed, uses up a leased warm-up call
//!    and keeps the context, because the value of the expression may be a temporary and the last owner of both.
//!    Then the call is a [`CountedCall`](counted_call::CountedCall), a
//!    [`StreamCall`](crate::record::threads::StreamCall) and a [`CallOnStream`](call_on_stream::CallOnStream). The
//!    function holds its [`scope`].
//! 4. [`launch`]: generated code starts and stops each launch. (The [`call_state`] has what the launches of a
//!    call share, [`host_start`] whether the call's host time is measured.)
//! 5. [`stream_call`] checks that the stream can take events now, and chooses the preparation.
//! 6. The thread's [`recorder`](crate::record::recorder) takes a [`bracket`](crate::record::bracket)
//!    from its [pool](crate::record::pool), and counts it as begun in its
//!    [series](crate::record::series_counters). (The [stream's state](crate::record::stream_state) tells which
//!    brackets are open around it.)
//! 7. The bracket enqueues the flush, the hold and the start event through [`cuda`](crate::cuda).
//!    After the program's launch it enqueues the stop event.
//! 8. [`pending`](crate::record::pending): the bracket waits until a later call or a report drains
//!    those that the GPU has passed, and reads their times.
//! 9. [`feeding`](crate::record::feeding) decides whether the GPU was fed. Together with that, the time
//!    becomes a sample.
//! 10. The recorder adds the samples to the statistics in [`series`](crate::stats::series), after it has added up
//!     the launches of a call in its [sums](crate::record::call_sums), and to the
//!     [call tree](crate::record::call_tree).
//!
//! The other [ways of timing a call](timed_call) leave this path in the third step: calls that are [`opened`], on
//! the [host clock](host), or between [`barriers`].

pub(crate) mod barriers;
pub(crate) mod call_on_stream;
pub(crate) mod call_state;
pub(crate) mod counted_call;
pub(crate) mod decide;
pub mod default_stream;
pub mod enter;
pub mod failure;
pub(crate) mod first;
pub mod guard;
pub(crate) mod host;
pub(crate) mod host_start;
pub mod launch;
pub mod lookup;
pub(crate) mod opened;
pub mod scope;
pub mod source;
#[cfg(feature = "tracing")]
pub mod spans;
pub mod stream;
pub(crate) mod stream_call;
pub(crate) mod ticket;
pub(crate) mod timed_call;
mod warmup;
