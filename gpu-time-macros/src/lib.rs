//! The macros of `gpu-time`. Use them through that crate, which documents them.
#![forbid(unsafe_code)]

#[cfg(any(feature = "enabled", test))]
mod enabled;
mod items;
#[cfg_attr(not(feature = "enabled"), allow(dead_code, reason = "values are not looked at"))]
mod keys;
#[cfg(not(feature = "enabled"))]
mod off;
#[cfg(test)]
mod tests;
mod unbound;

use proc_macro::{Span, TokenStream};

/// Times a function or method, or all functions in an `impl`, `trait` or `mod`.
///
/// Works on any function that has a body and is neither `const` nor naked. Without the feature
/// `enabled`, the attribute only checks the item and its keys, and returns the item unchanged.
///
/// # All functions of an item
///
/// On an `impl`, `trait` or `mod`, the attribute applies to every function inside that can be
/// timed, including those in nested items of a `mod`. A function or nested item may have its own
/// attribute: its keys are added to the inherited ones, and replace inherited keys of the same
/// name. `skip` leaves a function or nested item untimed.
///
/// ```text
/// #[gpu_timed(clock = "host", warmup = 10)]
/// impl Net {
///     fn forward(&self) {}
///
///     #[gpu_timed(warmup = 0)]
///     fn backward(&self) {}
///
///     #[gpu_timed(skip)]
///     fn layers(&self) -> usize { 3 }
/// }
/// ```
///
/// Each key applies to the functions that can have it: `cold` and other keys that need a stream to
/// functions with a stream, `graph` and `scope = "launches"` to functions with visible launches,
/// `sleep` and `clock = "sync"` to functions that are not async, and a `stream` that names `self`
/// to methods. An inherited key that contradicts a function's own key does not apply. The report
/// shows the keys of each function. `name` is an error here, and so is an expression that a
/// function cannot evaluate.
///
/// The following are not timed: functions that are `const`, naked or without a body; functions that
/// return before their work is done, such as those that return an iterator; functions with an
/// attribute `test` or `bench`, and modules under `cfg(test)`, unless they have a `gpu_timed`
/// attribute of their own; functions that a macro generates; and functions nested in a function.
/// The compiler rejects the attribute on a `mod` in another file: annotate the items there.
///
/// # Keys
///
/// Keys come in any order, each at most once, separated by commas.
///
/// | key | meaning | default |
/// |---|---|---|
/// | `stream = EXPR` | the stream to time on, see [below](#the-stream) | inferred, else none |
/// | `name = "…"` | label in the report; any constant `&str` | the function's path |
/// | `warmup = N` | on each device, and with each value of `key`, skip the first N calls that would otherwise be timed; any constant `u32` that names neither `Self` nor a generic parameter | 0 |
/// | `sample = 0.01` | time a random share of the calls, see [below](#sampling); a constant `f64` above 0 and up to 1, restricted like `warmup` | every call |
/// | `every = 100` | time every hundredth call; a constant `u32` from 1 | every call |
/// | `cold` | evict the L2 once per timed call, immediately before its first bracket, and leave it clean; the report says how the eviction was verified, and marks calls as `partial` if it could not be | as found |
/// | `cold = "dirty"` | evict the L2 by writing, which leaves it dirty, as a producer kernel does | |
/// | `sleep` | hold the stream until each bracket has been enqueued, or a deadline passes | off |
/// | `sleep = "50us"` | hold the stream for a fixed time of at most 1 s, in `ns`, `us`, `ms` or `s` | |
/// | `graph` | launches in a stream capture become timed nodes of the graph, see [below](#graphs) | without it, such a call is lost as `capture` |
/// | `scope = "launches"` | a bracket around each [visible launch](#what-is-bracketed) | if at least one launch is visible and none is hidden |
/// | `scope = "body"` | a bracket around the whole body | otherwise, and with every clock other than `"events"` |
/// | `launch = "gemm"`, `launch = ["gemm", "conv"]` | further methods, functions or macros to treat as launches, by name without path | `launch`, `launch_cooperative`, `launch_kernel`, `cuLaunchKernel`, `cuLaunchKernelEx`, and those of NVIDIA's cuda-core: `cuda_launch!`, `launch_kernel_on_stream` and its variants with `ex`, `pdl` and `cooperative` |
/// | `clock = "events"` | time with CUDA events | if there is a stream |
/// | `clock = "sync"` | time with the host clock between two [barriers](#barriers) on the stream | |
/// | `clock = "host"` | time with the host clock; needs no stream | |
/// | `clock = "kernels"` | time the [kernels](#kernels) of the body with CUPTI; needs no stream | if there is no stream |
/// | `key = EXPR` | a value that splits the function into [series](#keys-of-series), such as a shape or a type | none |
/// | `bytes = EXPR`, `flops = EXPR` | the [work](#work) of this call, for GB/s and TFLOP/s | none |
/// | `helpers = false` | work of [helper threads](#helper-threads) during the function, and during those that it calls, belongs to no function | it does |
/// | `crate = PATH` | the path of `gpu-time`, for crates that re-export it | the name in `Cargo.toml` |
/// | `skip` | leave this function of an annotated `impl`, `trait` or `mod` untimed; conflicts with every other key | |
///
/// `sample` conflicts with `every`, and `helpers` with `clock = "host"`. `clock = "host"` and `clock = "kernels"`
/// conflict with `stream`, `cold`, `sleep`, `graph`, `launch` and `scope = "launches"`. `clock = "sync"`
/// conflicts with `sleep`, `graph`, `launch` and `scope = "launches"`. These clocks time the whole body. `launch` conflicts with
/// `scope = "body"`, and `graph` needs launches scope. On async code, `sleep` and `clock = "sync"`
/// are errors: `sleep` would hold the stream across an await, and `clock = "sync"` would block the
/// executor.
///
/// # The stream
///
/// `stream` takes a `CudaStream` of any cudarc since 0.15: owned, borrowed, in an `Arc`, `Rc` or
/// `Box`, or behind a guard. It also takes a type that implements `GpuStream`, and an `Option` or
/// `Result` of one of these. With `None` or `Err`, the call is assumed to run on the CPU, and the
/// host clock times it.
///
/// A raw handle needs `unsafe`: `stream = unsafe { gpu_time::raw_stream(s.as_inner()) }`. The
/// stream must not be destroyed before the call ends, which the library cannot check. Clippy does
/// not find a `SAFETY` comment in an attribute; put it into a function that returns the
/// `RawStream`. `gpu_time::NULL_STREAM`, `LEGACY_STREAM` and `PER_THREAD_STREAM` need no `unsafe`.
/// `CudaStream` is recognised by its name and that of its crate, `cudarc` or NVIDIA's `cuda_core`, behind at most
/// four pointers. Another type with the same methods is not trusted to return a valid handle: its calls are
/// skipped, and the report says so. Implement `GpuStream` for it, which is unsafe.
///
/// The expression is evaluated before the body, at most once per call. It does not move out of a
/// place, and a guard in it is dropped before the body begins. It is evaluated for timed calls and,
/// because warm-up is counted per device, for warm-up calls, but never for calls that are filtered
/// out. For calls that are switched off or not sampled, it is evaluated only with
/// [`graph`](#graphs), because repeated captures must have the same nodes. `?` on an `Option` or a
/// `Result` ends the evaluation, not the function. `.await` is an error. A panic in the expression
/// propagates, and the call counts as skipped.
///
/// Without `stream`, the stream is the only parameter of type `CudaStream` or `Arc<CudaStream>`
/// (through references and `Option`; parameters removed by a `cfg` do not count). If there is none,
/// it is the `X` of the body's visible `X.launch_builder(…)` calls, where `X` is a parameter, a field of
/// one or of `self`, or a name that a `let` binds to one of these or to its clone. A
/// function without such a stream gets `clock = "kernels"`. If one of its keys needs a stream, or
/// if two parameters could be the stream, there is a compile error instead, which says what to
/// write.
///
/// `gpu_time::set_default_stream` sets a stream at run time for functions that have neither a
/// stream nor the key `clock`. While it is set, events on this stream time their bodies.
///
/// The attribute does not keep a stream alive. A stream in an `Arc` or `Rc` that the body may drop
/// is watched through a weak pointer, and a bracket whose stream is gone is counted as lost. So is
/// a bracket of an async function that has moved to another thread with its stream in an `Rc`. A
/// stream that is owned or mutably borrowed without an `Arc` or `Rc` cannot be watched and must
/// outlive its brackets.
///
/// Launches on another stream are not measured, and the measured time is then neither a lower nor
/// an upper bound of their time. In launches scope, the report adds a remark if the stream is a
/// parameter or a field and every visible `X.launch_builder(…)` names another parameter or field,
/// or a stream that the body creates, such as by `let stream = stream.fork()?`. For a raw handle,
/// every call has to look up its context.
///
/// # Kernels
///
/// In a *phase*, CUPTI records the kernels, copies and memsets that the process enqueues, from any library and on any
/// stream. A call that begins in a phase is *recorded*, with all annotated functions inside it, and has no brackets.
/// Each record is attributed to the innermost annotated function at the time of the launch, and counts as inclusive
/// time of the functions around it. Work that another thread enqueues for the call is not part of it: see [helper
/// threads](#helper-threads).
///
/// With `clock = "kernels"`, recorded calls are the only source of times, and a function's first call after warm-up is
/// recorded even outside of phases. Name a stream if you can: it adds exact times of single launches and of every call,
/// at a lower cost, and makes `sleep`, `cold` and `graph` possible.
///
/// `GPU_TIME_RECORD` says when there are phases. By default, the functions that have been called decide: the whole run
/// is a phase if none has a stream, there are phases of 20 ms in each 100 ms if only some have one, and none if all do.
/// Recording needs the feature `kernels` of `gpu-time`. Without this feature, without a usable CUPTI, or with a budget
/// below 50 %, `clock = "kernels"` falls back to the host clock. The rows then show that clock, and the report says once
/// what is missing.
///
/// An async function is attributed the work that is enqueued while it runs, and while a future that
/// it visibly awaits is polled. Within a macro such as `select!`, work is attributed only to the
/// annotated functions inside.
///
/// # Helper threads
///
/// Libraries hand work to threads of their own, as libtorch does for `backward`. What a thread without any open call
/// of an annotated function enqueues in a phase, while exactly one other thread is inside of such a function, is
/// attributed to the path `<helper threads>` below the innermost function there. It has a share of its own, and is part
/// of the total of that function in the call tree, but never of the function's own time or its row. While several threads
/// are inside of functions, such work is not annotated.
///
/// If the thread serves others as well, or works on after the call that gave it the work has ended, its work may not be
/// that of the function that runs at the moment. `helpers = false` says so.
///
/// # Warm-up
///
/// Warm-up calls are counted over all threads. A thread claims 1/256 of the remaining calls at a time, at
/// least 1 and at most 256. It returns unused ones when it ends, and keeps them while it makes no calls.
///
/// # Sampling
///
/// With `sample`, each call is timed with that probability, independently of the others. With
/// `every = N`, each thread times its Nth, 2Nth, … call, and a new thread continues the count of
/// one that ended. If the load repeats in step with the count, the times are not representative.
/// `GPU_TIME_SAMPLE` overrides both keys. With `GPU_TIME_BUDGET`, they are the upper limit of the
/// function's rate. Warm-up takes the first calls that would otherwise be timed, so it counts
/// sampled calls only. A call that is not sampled is only counted, both as `skipped` and as
/// `unsampled`.
///
/// Totals and shares are estimates for all calls. Each sample is weighted by the inverse of the
/// rate at that moment, and the sum is scaled to the number of calls, which is known. The standard
/// error is shown if the samples are sufficient to estimate it; with `every`, and with few samples,
/// it is unknown. The median and the other percentiles are over the samples without weights. If the
/// rate changes, as with a budget, they are biased towards times when the rate was high. Estimates
/// include neither lost calls nor warm-up calls: a total is for the calls after warm-up.
///
/// A call that is captured into a graph by a function with `graph` is always timed.
///
/// # Keys of series
///
/// `key` takes any type with `Display`. Calls with different texts have separate series, at most 64
/// of them; further texts share `<other>`. A text of more than 96 bytes is truncated and ends in
/// `…` and eight hexadecimal digits, which distinguish texts with the same beginning. The
/// expression is evaluated like those of the [work](#work), for timed calls only. If `?` ends it,
/// the call has no key. The table shows the eight keys with the largest totals and the number of
/// others. The other report formats show all keys.
///
/// # Work
///
/// `bytes` and `flops` take any integer or float, owned or borrowed, or an `Option` or `Result` of
/// one: `bytes = 12 * x.len()`. With `None` or `Err`, the work of the call is unknown. Negative and
/// non-finite numbers also count as unknown, and the report warns of them with their number. The
/// expressions are evaluated before the body, each at most once, for timed calls only. `?` ends the
/// evaluation, not the function, and `.await` is an error. A panic propagates, and the call counts
/// as skipped. The expressions do not move out of a place, and none may borrow mutably what another
/// one, `key` or `stream` uses.
///
/// The work is shown with the function's row, sum or span, and not with its launches if there are
/// several. The rate is a call's work divided by the net median if every sample has the same work.
/// Otherwise it is the work of all samples divided by their net time, without samples of unknown
/// work. Neither sum includes lost calls. If no sample was fed, the rate is a lower bound, marked
/// `≥`. Bytes are compared with the peak bandwidth of the device's memory, which caches can exceed.
/// A gigabyte is 10⁹ bytes.
///
/// # Barriers
///
/// With `clock = "sync"` the runtime waits until the stream is idle, reads the host clock, runs the
/// body, waits again, and reads the clock again. This time is not GPU time: it includes the latency
/// of the body's launches and of the second barrier. This is the only clock that waits for the GPU.
/// `cold` flushes before the first barrier. A call that begins or ends during a capture of the
/// stream is lost as `capture`, because a barrier would invalidate the capture. A call whose
/// barrier fails is lost as `driver` or `context`, and the program's next driver call still sees
/// the error. Inside a bracket whose stream is held by `sleep`, a barrier waits for the deadline.
///
/// # What is bracketed
///
/// A launch is **visible** in the function's own control flow: not in a closure, an async block, a
/// nested item or a macro's arguments. If a launch name occurs in one of those, the default scope
/// is `body`.
///
/// In **launches** scope, every launch has its own row, and the function's row is their sum per
/// call. The bracket opens before the receiver and the arguments of the launch are evaluated, and
/// includes work that they enqueue on the stream: with `.arg(&stream.clone_htod(x)?)`, that is a
/// copy. To exclude it, bind such a value with `let` before the launch. A launch that returns `Err`
/// (`cuLaunchKernel`: a code other than success) or unwinds is lost, and so is that call's sum. The
/// sum is also lost if a call unwinds or is cancelled, unless the call could not have made another
/// launch.
///
/// A macro may expand to a place. It is therefore a visible launch only as a separate statement
/// (`launch!(…);`, `launch!(…).unwrap();`, `let x = launch!(…);`, `_ = launch!(…);`) or where its
/// value is moved, as in `launch!(…)?` or `f(launch!(…))`. It is not one where it is a receiver or
/// an operand, or is borrowed, matched, cast, repeated, or assigned to a pattern. At the end of a
/// block, its delimiters must be `()` or `[]`. If it is a statement that binds its value to no
/// name, failures of the launch are not detected. A launch behind a `&` and with only constants in
/// its arguments, as in `&launch(3)`, is not visible either: it may be a constructor.
///
/// A bracket inside another one on the same stream omits `cold` and `sleep`, and the outer one is
/// marked `nested`. This also applies to brackets of different threads. If two brackets overlap, as
/// when threads share a stream, both are marked.
///
/// In **body** scope, the row is the span from the first operation that the body enqueues to the
/// last, including frees of its locals (before edition 2024, not of temporaries in its tail
/// expression).
///
/// An `async fn` is timed from its first poll to its completion. A function that ends in
/// `async {…}`, `Box::pin(async {…})` or `async {…}.boxed()`, as methods under `async_trait` do, is
/// timed inside that block, without the code before it. Any other function that returns a future, a
/// stream or an iterator is an error in body scope, because it returns before its work is done. A
/// future that is dropped at an await is lost as `cancelled`. This covers every `.await` in the
/// function's own control flow, and macros whose arguments contain one or whose name is `select`,
/// `select_biased`, `join` or `try_join`. Leaving such a macro by `return` or `?` also counts as
/// cancelled. A cancellation is not noticed, and counts as completion, at an await that another
/// macro generates, or in a macro at a position where it would not be a visible launch.
///
/// If the macro cannot parse a body, it times the whole function, and the report has the remark `unparsed-body`.
///
/// # Graphs
///
/// With `graph`, a launch during a capture of its stream is put between two event records, which
/// become nodes of the graph. Nothing else is added: `cold`, `sleep` and `warmup` apply only to
/// calls in a stream. Each launch has a separate row for its times in graphs, and there is no sum.
/// The captured call counts as timed, and the row's `timed` counts the replays that were read and
/// the launches that were lost.
///
/// **Replays are sampled.** Each replay overwrites the events of the one before, and the driver
/// does not report replays. The runtime therefore reads the events for every report and snapshot,
/// and from time to time before a timed call in a stream. It reads the last replay, if that has
/// ended; the others are not counted. To see every replay, wait for each one and call `snapshot()`.
/// A time counts only if two readings agree, so that a replay between them cannot mix two times.
/// Two executable graphs instantiated from one graph share its events: if they run at once, their
/// replays cannot be told apart, and a time may be from the start in one to the stop in the other.
///
/// **The shape is decided once.** The first capture of a function decides whether its captures have
/// nodes, and later ones follow, so that a new capture can update the executable graph
/// (`cuGraphExecUpdate`). It decides against nodes while timing is off (`set_enabled(false)`) or if
/// the driver lacks the functions (before CUDA 11.3); such calls are lost as `capture`. Once there
/// are nodes, neither `set_enabled` nor sampling, warm-up or a later filter removes them, and their
/// replays are sampled like all others. Until a capture has decided against nodes, the stream's
/// expression is therefore also evaluated for calls that are switched off. A function that
/// `GPU_TIME` or `GPU_TIME_FILTER` leaves out has no nodes.
///
/// The events belong to the graph and to everything instantiated from it, and are reused when these
/// are gone. There are at most 8,192 pairs at once; further launches are lost as `events`.
///
/// Do not use `graph` on a function that is captured into the body of a conditional node, or into a
/// graph to be launched from the device: neither may contain event records, and the program's own
/// capture or instantiation would fail. During a capture the driver does not reveal that a graph is
/// one of these.
///
/// The same bias is subtracted from a node's time as from a bracket in a stream. A node's time is
/// fed, because nothing between two nodes waits for the host. The first launch of a graph counts as
/// starved: on an idle H200, it measures 0.3 to 2 µs more than the same launch later in the graph.
///
/// # What does not change
///
/// Types, drops, panics, `Send`, `Sync`, unwind safety, borrow checks, warnings and their locations
/// stay the same, in editions 2018 to 2024. The exceptions:
///
/// - While the call runs, there is a weak pointer to a stream that the function owns in an `Arc` or
///   `Rc`, which affects `get_mut` and `weak_count`.
/// - In launches scope, the type of a visible launch must be known at that point, and the launch
///   must return: one of type `!` does not compile. An awaited future of type `!` causes a warning
///   about unreachable code.
/// - An awaited future is wrapped in another one, which observes when it is polled. Types of
///   futures nest twice as deep, and each future is larger by a pointer.
/// - A macro whose value is moved, and that is a launch or awaits, does not extend the lifetimes of
///   its temporaries, except as the whole value of a `let`.
/// - A tuple struct with the name of a launch does not extend the lifetimes of temporaries in its
///   arguments, and is promoted to `'static` only behind a `&`.
/// - `#[must_use]` on a function whose call is a visible launch, or is awaited, has no effect; on a
///   type it does.
/// - The lint `tail_expr_drop_order`, which editions before 2024 have, is off in the function: it would warn of the
///   end of the call.
/// - A parameter that only the attribute uses counts as used. Without the feature `enabled`,
///   anything that only the attribute names is unused, such as a constant for `warmup`.
/// - A future that is timed inside a tail block also captures the variables in the expressions of
///   `stream`, `key`, `bytes` and `flops`.
#[proc_macro_attribute]
pub fn gpu_timed(args: TokenStream, item: TokenStream) -> TokenStream {
    #[cfg(feature = "enabled")]
    return enabled::rewrite::rewrite(args.into(), item.into()).into();
    #[cfg(not(feature = "enabled"))]
    return off::attribute(args, item);
}

/// Times a block as if it were an annotated function: `scope!("name", …keys…, { block })`.
///
/// ```text
/// let parsed = scope!("parse", clock = "host", { text.parse::<u32>()? });
/// ```
///
/// The name is a constant `&str`, and the label in the report. All keys of [`gpu_timed`] except
/// `name` and `skip` may follow. They work as on a function whose body is the block and whose
/// parameters are the variables around it. The stream is inferred from a visible
/// `x.launch_builder(…)`, but not from the types of variables.
///
/// The macro expands to the block itself, and has its value. `?`, `return`, `break` and `.await`
/// mean the same inside as outside. A call that they leave counts as completed. A block that
/// visibly awaits is async. Without the feature `enabled`, only the block remains.
///
/// For an attribute on the function around it, the block is a macro argument: its launches are not
/// visible there. If the block awaits, an async function around it counts as suspended while the
/// block runs.
#[proc_macro]
pub fn scope(input: TokenStream) -> TokenStream {
    #[cfg(feature = "enabled")]
    return enabled::block::scope(input.into()).into();
    #[cfg(not(feature = "enabled"))]
    return off::scope(input);
}

/// Times the code that follows, until the returned guard is dropped: `guard!("name", …keys…)`.
///
/// ```text
/// let _timed = guard!("step", clock = "host");
/// load();
/// run(); // the call ends with the enclosing block
/// ```
///
/// `drop` ends the call earlier. `let _ = guard!(…)` would end it at once, and does not compile. A guard is
/// not `Send`: in async code that a runtime moves between threads, holding it across an `.await`
/// does not compile. Use [`scope!`](macro@scope) there, and wherever a block is possible. A guard
/// sees no launches, so it always has body scope, and cannot have `graph` or `launch`.
#[proc_macro]
pub fn guard(input: TokenStream) -> TokenStream {
    let is_unbound = unbound::is_unbound(Span::call_site());
    #[cfg(feature = "enabled")]
    return enabled::block::guard(input.into(), is_unbound).into();
    #[cfg(not(feature = "enabled"))]
    return off::guard(input, is_unbound);
}
