//! The attribute macro of `gpu-time`. Use it through that crate, which documents it.
#![forbid(unsafe_code)]

#[cfg(any(feature = "enabled", test))]
mod args;
#[cfg(any(feature = "enabled", test))]
mod bindings;
#[cfg(any(feature = "enabled", test))]
mod errors;
#[cfg(any(feature = "enabled", test))]
mod expand;
#[cfg(any(feature = "enabled", test))]
mod func;
#[cfg(any(feature = "enabled", test))]
mod launches;
#[cfg(any(feature = "enabled", test))]
mod marks;
#[cfg(not(feature = "enabled"))]
mod off;
#[cfg(any(feature = "enabled", test))]
mod paths;
#[cfg(any(feature = "enabled", test))]
mod plan;
mod rules;
#[cfg(any(feature = "enabled", test))]
mod source;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

/// Times the function or method that it stands on.
///
/// Any function that has a body, is not `const` and not naked can be timed. Without the feature `enabled`
/// the attribute returns the item as it is and does not even read its arguments.
///
/// # Keys
///
/// In any order, each at most once, separated by commas.
///
/// | key | meaning | default |
/// |---|---|---|
/// | `stream = EXPR` | the stream to time on, see [below](#the-stream) | inferred |
/// | `name = "…"` | label in the report; any constant `&str` | the function's path |
/// | `warmup = N` | on each device, the first N calls that would otherwise be timed are not; any constant `u32` that names neither `Self` nor a generic parameter | 0 |
/// | `sample = 0.01` | time a random share of the calls, see [below](#sampling); any constant `f64` above 0 and up to 1, as for `warmup` | every call |
/// | `every = 100` | time every hundredth call; any constant `u32` from 1 | every call |
/// | `cold` | evict the L2 once per timed call, immediately before its first bracket, and leave it clean; the report says how that was shown, and `partial` where the L2 was not shown to be empty | as found |
/// | `cold = "dirty"` | the same by writing, which is the state that a producer kernel leaves | |
/// | `sleep` | hold the stream until each bracket has been enqueued, or a deadline passes | off |
/// | `sleep = "50us"` | hold it for a fixed time, in `ns`, `us`, `ms` or `s`, of at most a second | |
/// | `graph` | launches in a stream capture become timed nodes of the graph, see [below](#graphs) | such a call is lost as `capture` |
/// | `scope = "launches"` | a bracket around each [visible launch](#what-is-bracketed) | if any is visible and none hidden |
/// | `scope = "body"` | a bracket around the whole body | otherwise, and with `clock = "host"` or `"sync"` |
/// | `launch = "gemm"`, `launch = ["gemm", "conv"]` | further methods, functions or macros to treat as launches, by name without path | `launch`, `launch_cooperative`, `launch_kernel`, `cuLaunchKernel`, `cuLaunchKernelEx`, and those of NVIDIA's cuda-core: `cuda_launch!`, `launch_kernel_on_stream` and its variants with `ex` and `cooperative` |
/// | `clock = "events"` | CUDA events tell the time | yes |
/// | `clock = "sync"` | [barriers](#barriers) on the stream and wall time do | |
/// | `clock = "host"` | wall time on the CPU does; needs no stream | |
/// | `key = EXPR` | a value that splits the function into [series](#keys-of-series), such as a shape or a type | none |
/// | `bytes = EXPR`, `flops = EXPR` | the [work](#work) that this call does, for GB/s and TFLOP/s | none |
/// | `crate = PATH` | where `gpu-time` lives, for crates that re-export it | `::gpu_time` |
///
/// `sample` conflicts with `every`; `clock = "host"` conflicts with `stream`, `cold`, `sleep`, `graph`, `launch`
/// and `scope = "launches"`; `clock = "sync"` with `sleep`, `graph`, `launch` and `scope = "launches"`, since
/// both time the whole body; `launch` conflicts with `scope = "body"`; `graph` needs
/// launches scope. `sleep` and `clock = "sync"` cannot be used on async code, where they would hold the
/// stream across an await and block the executor.
///
/// # The stream
///
/// `stream` takes a `CudaStream` of any cudarc since 0.15: owned, borrowed, in an `Arc`, `Rc` or `Box`,
/// behind a guard; a raw `CUstream`, which is trusted to outlive the call; or an `Option` or `Result` of
/// one of these. On `None` and `Err` the call runs on the CPU and the host clock times it.
///
/// The expression is evaluated before the body, at most once per call; a place is not moved out of, and a
/// guard is given back before the body begins. It is evaluated for calls that are timed and, since warm-up
/// is counted per device, for warm-up calls; never for calls that are filtered out, and for calls that are
/// switched off or not sampled only with [`graph`](#graphs), whose nodes must not come and go. `?`
/// on an `Option` or a `Result` ends the evaluation, not the function; `.await` is refused. A panic in it
/// is the program's own, and the call counts as skipped.
///
/// Without it the stream is the one parameter of type `CudaStream`, `Arc<CudaStream>` or `CUstream`
/// (through references and `Option`; parameters that a `cfg` takes out are passed over). Failing that, it
/// is the `X` of the body's visible `X.launch_builder(…)` calls, where `X` is a path that starts at a
/// parameter or `self`, or the name that a `let` gave to one or to its clone. Anything else is a compile
/// error that says what to write.
///
/// Nothing is kept alive: a stream in an `Arc` or `Rc` that the body may let go of is watched by a weak
/// pointer, and a bracket whose stream has gone is counted as lost. A stream that is owned or mutably
/// borrowed without an `Arc` or `Rc` cannot be watched, and must live as long as what is bracketed.
///
/// A launch on another stream than this one is not seen: what is read then is no bound of its time, above or
/// below. In launches scope, where the stream is a parameter or a field and every visible
/// `X.launch_builder(…)` another or a stream that the body makes, as by `let stream = stream.fork()?`, the
/// report remarks upon it. A raw handle costs a look-up on every call.
///
/// # Warm-up
///
/// Warm-up calls are counted over all threads. While more than 256 are left, a thread takes several at
/// once, and gives back at its end what it has not used; one that goes on without calling keeps them.
///
/// # Sampling
///
/// With `sample` each call is timed with that probability, whatever becomes of the others. With `every = N`
/// each thread's Nth, 2Nth, … call is, and threads that follow each other go on where the one before was;
/// a loop that keeps step with the count is misjudged. `GPU_TIME_SAMPLE` overrides both; with
/// `GPU_TIME_BUDGET` they are the most that the function gets. Warm-up takes the first calls that would otherwise be timed, so of those that are sampled. For a
/// call that is not sampled nothing is done but to count it; it is among the `skipped`, and counted as
/// `unsampled` too.
///
/// Totals and shares are estimates of what all calls took: each sample counts for as many calls as it was
/// drawn from, by the rate at that moment, and their sum is scaled to the number of calls, which is known.
/// Their standard error is shown; with `every` it is what it would be if calls came in random order. The
/// median and the other percentiles are over the samples as they are: where the rate changes, as with a
/// budget, they tell more of the time when it was high. What was lost is in no estimate, and warm-up counts with
/// no time: the total is that of the calls after it.
///
/// A call that is captured into a graph by a function with `graph` is not sampled but timed.
///
/// # Keys of series
///
/// `key` takes anything with `Display`. Calls with different texts have series of their own, at most 64 of
/// them; further ones share `<other>`. A text of more than 96 bytes is cut, and ends in `…` and eight digits
/// by which those stay apart that begin alike. The expression is evaluated as those of the [work](#work)
/// are: for timed calls only; where `?` ends it, the call has no key. The table shows the eight that took the
/// most, and how many more there are; all are in the other renderings.
///
/// # Work
///
/// `bytes` and `flops` take any integer or float, owned or borrowed, or an `Option` or `Result` of one:
/// `bytes = 12 * x.len()`. `None` and `Err` mean that this call's work is not known. So do negative numbers
/// and those that are not finite, which make no sense: the report warns of them and says how many there were. The expressions are evaluated before the body, each at most once, for
/// calls that are timed and no others; `?` ends the evaluation, not the function, and `.await` is refused.
/// A panic is the program's own, and the call counts as skipped. A place is not moved out of, and
/// none may borrow mutably what another, `key` or `stream` uses.
///
/// The work is shown with the function's row, be it sum or span, and not with those of its launches if
/// it has several. Its rate is a call's work by the net median where every sample has the same work;
/// else it is the work of all samples by their net time, those left out whose work is not known. Lost
/// calls count on neither side. Where no sample was fed the rate is a lower bound, marked `≥`. Bytes are
/// compared with the peak of the device's memory, which caches can exceed. A gigabyte is 10⁹ bytes.
///
/// # Barriers
///
/// With `clock = "sync"` the runtime waits until the stream is idle, takes the host's time, runs the
/// body, waits until the stream is idle again, and takes the time once more. So it holds the latency of
/// the body's launches and of the second barrier, and makes no claim to be the GPU's time. It is the one
/// way of timing that waits for the GPU. `cold` flushes before the first barrier. A call that begins or
/// ends while the stream is being captured is lost as `capture`, because a barrier would ruin that; one
/// whose barrier fails is lost as `driver` or `context`, and an error of the program's own work is still
/// there for its next call to find. Inside a bracket whose stream is held by `sleep`, a barrier waits
/// for the deadline.
///
/// # What is bracketed
///
/// A launch is **visible** in the function's own control flow: not in a closure, an async block, a nested
/// item or a macro's arguments. If a launch name occurs in one of those, the default scope is `body`.
///
/// In **launches** scope every launch has a row of its own, and the function's row is their sum per call.
/// The bracket opens before the receiver and the arguments of the launch are evaluated. What they enqueue on
/// the stream is in it: with `.arg(&stream.clone_htod(x)?)` that is a copy. Bind such a value with `let` before.
/// A launch that answers `Err` (`cuLaunchKernel`: a code other than success) or unwinds is lost, and so
/// is that call's sum. The sum is lost too where a call unwinds or is cancelled, unless it cannot have had
/// another launch to make. A launch macro is one at the end of a block only with `()` or `[]`.
///
/// A bracket inside another on the same stream leaves out `cold` and `sleep`, and the outer one is marked
/// `nested`, whichever threads they are of. Two that overlap, as when threads share a stream, both are.
///
/// In **body** scope the row is the span from the first thing that the body enqueues to the last, frees of
/// its locals included (before edition 2024, not of temporaries in its tail expression).
///
/// An `async fn` is timed from its first poll to its completion. A function that ends in `async {…}`,
/// `Box::pin(async {…})` or `async {…}.boxed()` is timed inside that block; what it does before is
/// not in it. Methods under `async_trait` are such functions. Any other function that returns a
/// future, a stream or an iterator is refused in body scope, because it returns before its work is
/// done. A future that is dropped while it waits is lost as `cancelled`; this is known of every
/// `.await` in the function's own control flow and of macros whose arguments contain one or whose
/// name is `select`, `select_biased`, `join` or `try_join`. Leaving such a macro by `return` or `?`
/// counts as cancelled too, and a cancellation in an await that another macro makes up counts as
/// completion.
///
/// A body that the macro's parser does not understand is timed as a whole, and the report's options say so.
///
/// # Graphs
///
/// With `graph`, a launch that is made while its stream is being captured is put between two event
/// records that are nodes of the graph, with nothing else: `cold`, `sleep` and `warmup` are for calls in a
/// stream. Each launch has a row of its own, in graphs; there is no sum. The captured call counts as
/// timed, and the row's `timed` counts replays that were read, and launches that were lost.
///
/// **Replays are sampled.** Each overwrites the events of the one before, and nobody tells of it. So the
/// events are looked at for every report and snapshot, and now and then before a timed call in a stream;
/// what is found is the last replay, if it has ended. The others are not seen and not counted. To see
/// each, wait for it and call `snapshot()`. Two readings must agree, so that a replay which comes between
/// spoils none. Of two executable graphs that were made of one, and run at once, the events are the same:
/// their replays cannot be told apart, and a time may be from the start in one to the stop in the other.
///
/// **The shape is decided once.** The first capture of a function decides whether its captures have
/// nodes, and later ones follow, so that a graph captured anew can update what was instantiated
/// (`cuGraphExecUpdate`). It decides against them while timing is off (`set_enabled(false)`), or where the
/// driver lacks what it takes (CUDA 11.3); such calls are lost as `capture`. Once there are nodes, neither
/// `set_enabled` nor sampling, warm-up or a filter set later takes them away, and their replays are sampled
/// like all. So until a capture has decided against nodes, the stream's expression is evaluated for calls that
/// are switched off too. A function that `GPU_TIME` or `GPU_TIME_FILTER` leaves out has no nodes.
///
/// The events belong to the graph and to whatever was made of it; they serve again when these are gone.
/// There are at most 8,192 pairs at once; launches beyond are lost as `events`.
///
/// Do not use `graph` on a function that is captured into the body of a conditional node, or into a graph
/// to be launched from the device: neither may hold event records, and the program's own capture or
/// instantiation would fail. While a graph is captured the driver does not tell that it is one of these.
///
/// A node's time has the same bias removed as a bracket's in a stream, and is fed: between two nodes
/// nothing waits for the host. The launch that a graph begins with is starved, as far as anybody knows:
/// on an idle H200 it reads 0.3 to 2 µs more than the same launch further down.
///
/// # What stays as it was
///
/// Types, drops, panics, `Send`, `Sync`, unwind safety, borrow checks, warnings and their places, in
/// editions 2018 to 2024. The exceptions:
///
/// - While the call runs there is a weak pointer to a stream that the function owns by an `Arc` or `Rc`, so
///   `get_mut` and `weak_count` see it.
/// - In launches scope, a visible launch must have a type that is known where it stands, and must return:
///   one of type `!` does not compile. A future of type `!` that is awaited is warned of as unreachable.
/// - `#[must_use]` on a function whose call is a visible launch, or is awaited, is not seen; on a type it is.
/// - A parameter that only the attribute uses counts as used; without the feature `enabled` nothing that
///   only the attribute names is used, a constant for `warmup` among them.
/// - A future that is timed inside a tail block also captures what the expressions of `stream`, `key`,
///   `bytes` and `flops` name.
/// - A trait of your own that is implemented for every type, is in scope and has a method `cu_stream` or
///   `context` comes before the stream's own, as it does in your code.
#[proc_macro_attribute]
pub fn gpu_timed(args: TokenStream, item: TokenStream) -> TokenStream {
    #[cfg(feature = "enabled")]
    return rewrite(args.into(), item.into()).into();
    #[cfg(not(feature = "enabled"))]
    return off::checked(args, item);
}

/// Rewrites the item; on any mistake, leaves it as it is and adds every mistake found.
#[cfg(any(feature = "enabled", test))]
fn rewrite(
    args: proc_macro2::TokenStream,
    item: proc_macro2::TokenStream,
) -> proc_macro2::TokenStream {
    let mut errors = errors::Errors::default();
    let args = args::Args::parse(args, &mut errors);
    let func = func::TimedFn::parse(item.clone(), &mut errors);
    match func.and_then(|func| plan::Plan::new(args, func, &mut errors)) {
        Some(plan) => expand::expand(plan),
        None => {
            let errors = errors.into_tokens();
            quote::quote!(#item #errors)
        }
    }
}
