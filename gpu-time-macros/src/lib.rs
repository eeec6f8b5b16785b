//! The macros of `gpu-time`. Use them through that crate, which documents them.
#![forbid(unsafe_code)]

#[cfg(any(feature = "enabled", test))]
mod args;
#[cfg(any(feature = "enabled", test))]
mod awaits;
#[cfg(any(feature = "enabled", test))]
mod bindings;
#[cfg(any(feature = "enabled", test))]
mod block;
#[cfg(any(feature = "enabled", test))]
mod container;
#[cfg(any(feature = "enabled", test))]
mod errors;
#[cfg(any(feature = "enabled", test))]
mod expand;
#[cfg(any(feature = "enabled", test))]
mod func;
#[cfg(any(feature = "enabled", test))]
mod keys;
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
#[cfg(any(feature = "enabled", test))]
mod positions;
#[cfg(any(feature = "enabled", test))]
mod rewrite;
mod rules;
#[cfg(any(feature = "enabled", test))]
mod source;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

/// Times a function or method, or all functions in an `impl`, `trait` or `mod`.
///
/// Works on any function that has a body and is neither `const` nor naked. Without the feature
/// `enabled` the attribute checks the item and its keys and returns the item unchanged.
///
/// # All functions of an item
///
/// On an `impl`, a `trait` or a `mod` the attribute is that of every function in it that can be timed,
/// also in further ones inside a `mod`. A function's own attribute adds keys and wins key by key, and so
/// does that of an inner item. `skip` leaves a function or an inner item out.
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
/// A key applies to the functions that can have it: `cold` and others that need a stream to those with a
/// stream, `graph` and `scope = "launches"` to those with visible launches, `sleep` and `clock =
/// "sync"` to those that are not async, and a `stream` that names `self` to methods. A key that contradicts
/// a function's own does not apply. The report shows the keys of each function. `name` is an error, as is
/// an expression that a function cannot evaluate.
///
/// Left out are functions that are `const`, naked, without a body, or that return before their work is
/// done, such as those that return an iterator; functions with an attribute `test` or `bench`, and
/// modules under `cfg(test)`, unless they have an attribute of their own; and what a macro generates or
/// a function contains. The compiler rejects the attribute on a `mod` in another file: annotate the
/// items there.
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
/// | `cold` | evict the L2 once per timed call, immediately before its first bracket, and leave it clean; the report says how the eviction was verified, and `partial` where it could not be | as found |
/// | `cold = "dirty"` | evict the L2 by writing, which is the state that a producer kernel leaves | |
/// | `sleep` | hold the stream until each bracket has been enqueued, or a deadline passes | off |
/// | `sleep = "50us"` | hold the stream for a fixed time of at most 1 s, in `ns`, `us`, `ms` or `s` | |
/// | `kernels` | open calls, so that their [kernels](#kernels) are recorded: the first call after warm-up and a random sixteenth of the others | off, or every call with `clock = "kernels"` |
/// | `kernels = 0.01` | open this share of the timed calls; a constant `f64`, restricted like `sample` | |
/// | `graph` | launches in a stream capture become timed nodes of the graph, see [below](#graphs) | such a call is lost as `capture` |
/// | `scope = "launches"` | a bracket around each [visible launch](#what-is-bracketed) | if at least one is visible and none hidden |
/// | `scope = "body"` | a bracket around the whole body | otherwise, and with every other clock than `"events"` |
/// | `launch = "gemm"`, `launch = ["gemm", "conv"]` | further methods, functions or macros to treat as launches, by name without path | `launch`, `launch_cooperative`, `launch_kernel`, `cuLaunchKernel`, `cuLaunchKernelEx`, and those of NVIDIA's cuda-core: `cuda_launch!`, `launch_kernel_on_stream` and its variants with `ex` and `cooperative` |
/// | `clock = "events"` | time with CUDA events | if there is a stream |
/// | `clock = "sync"` | time with the host clock between two [barriers](#barriers) on the stream | |
/// | `clock = "host"` | time with the host clock; needs no stream | |
/// | `clock = "kernels"` | time the [kernels](#kernels) of the body with CUPTI; needs no stream | if there is none |
/// | `key = EXPR` | a value that splits the function into [series](#keys-of-series), such as a shape or a type | none |
/// | `bytes = EXPR`, `flops = EXPR` | the [work](#work) of this call, for GB/s and TFLOP/s | none |
/// | `crate = PATH` | the path of `gpu-time`, for crates that re-export it | `::gpu_time` |
/// | `skip` | leave this function out of the `impl`, `trait` or `mod` around it; conflicts with every other key | |
///
/// `sample` conflicts with `every`. `clock = "host"` conflicts with `stream`, `cold`, `sleep`,
/// `kernels`, `graph`, `launch` and `scope = "launches"`; `clock = "kernels"` with the same ones but
/// `kernels`. `clock = "sync"` conflicts with `sleep`, `graph`, `launch` and `scope = "launches"`.
/// These clocks time the whole body. `launch` conflicts with `scope = "body"`, and `graph` needs
/// launches scope. `sleep` and `clock = "sync"` are errors on async code, where they would hold the
/// stream across an await and block the executor.
///
/// # The stream
///
/// `stream` takes a `CudaStream` of any cudarc since 0.15: owned, borrowed, in an `Arc`, `Rc` or
/// `Box`, or behind a guard. It also takes a type that implements `GpuStream`, and an `Option` or
/// `Result` of one of these. With `None` or `Err` the call runs on the CPU and the host clock times
/// it.
///
/// A raw handle needs `unsafe`: `stream = unsafe { gpu_time::raw_stream(s.as_inner()) }`. The stream
/// must not be destroyed before the call ends, which nothing can check. Clippy sees no `SAFETY`
/// comment in an attribute; a function that returns the `RawStream` has room for one.
/// `gpu_time::NULL_STREAM`, `LEGACY_STREAM` and `PER_THREAD_STREAM` need no `unsafe`. A type with the
/// methods of a `CudaStream` vouches for its handle as cudarc's type does.
///
/// The expression is evaluated before the body, at most once per call. It does not move out of a
/// place, and a guard is dropped before the body begins. It is evaluated for timed calls and, since
/// warm-up is counted per device, for warm-up calls; never for calls that are filtered out. For
/// calls that are switched off or not sampled it is evaluated only with [`graph`](#graphs), whose
/// nodes must not come and go. `?` on an `Option` or a `Result` ends the evaluation, not the
/// function. `.await` is an error. A panic in the expression propagates, and the call counts as
/// skipped.
///
/// Without `stream`, the stream is the one parameter of type `CudaStream` or `Arc<CudaStream>`
/// (through references and `Option`; parameters removed by a `cfg` do not count). If there is none,
/// it is the `X` of the body's visible `X.launch_builder(…)` calls, where `X` is a
/// path that starts at a parameter or `self`, or a name that a `let` binds to such a path or to its
/// clone. A function without such a stream gets `clock = "kernels"`, unless one of its keys needs a
/// stream: then a compile error says what to write, as it does for two parameters that could be the
/// stream.
///
/// `gpu_time::set_default_stream` names a stream for such functions at run time, if they have no `clock`
/// either: while there is one, events time their bodies on it. Such a call is opened only inside another
/// one, or if a share of calls is to be opened or the function has the key `kernels`.
///
/// The attribute keeps no stream alive. A stream in an `Arc` or `Rc` that the body may drop is
/// watched through a weak pointer, and a bracket whose stream is gone is counted as lost. So is one
/// of an async function that has moved to another thread with its stream in an `Rc`. A stream
/// that is owned or mutably borrowed without an `Arc` or `Rc` cannot be watched and must outlive
/// its brackets.
///
/// Launches on another stream are not measured, and the time is then neither a lower nor an upper
/// bound of theirs. In launches scope the report adds a remark if the stream is a parameter or a
/// field and every visible `X.launch_builder(…)` names another one or a stream that the body
/// creates, as by `let stream = stream.fork()?`. A raw handle costs a look-up of its context on
/// every call.
///
/// # Kernels
///
/// The kernels, copies and memsets that a call enqueues are recorded by CUPTI while the call is
/// *opened*, in any library and on any stream. The outermost timed call of a thread is opened, together
/// with all annotated functions inside it. Each record counts for the innermost of these at the moment
/// of the launch, and is inclusive time of the others. An opened call has no brackets. What another thread
/// enqueues for the call is not attributed to it. A function without a stream counts as skipped inside a
/// call that events time, unless that is async.
///
/// With `clock = "kernels"` opened calls are the only source of times, so every timed call is opened
/// unless `kernels` gives a share. Name a stream where you can: it adds exact times of single launches, and
/// of every call, at a lower cost, and makes `sleep`, `cold` and `graph` possible.
///
/// `GPU_TIME_KERNELS` sets `kernels` for all functions. It needs the feature `kernels` of `gpu-time`.
/// Without that, or without a usable CUPTI, `clock = "kernels"` times with the host clock, the rows
/// say so, and the report says once what is missing.
///
/// An async function is attributed what is enqueued while it runs and while a future is polled that it
/// awaits visibly. Within a macro such as `select!` only the functions inside are.
///
/// # Warm-up
///
/// Warm-up calls are counted over all threads. A thread claims 1/256 of the remaining calls at a time, at
/// least 1 and at most 256. It returns unused ones when it ends, and keeps them while it makes no calls.
///
/// # Sampling
///
/// With `sample` each call is timed with that probability, independently of the others. With `every
/// = N` each thread times its Nth, 2Nth, … call, and a new thread continues the count of one that
/// ended; a loop in step with the count is misjudged. `GPU_TIME_SAMPLE` overrides both. With
/// `GPU_TIME_BUDGET` they are the upper limit of the function's rate. Warm-up takes the first calls
/// that would otherwise be timed, so it counts sampled calls only. A call that is not sampled is
/// only counted: as `skipped`, and as `unsampled` too.
///
/// Totals and shares are estimates for all calls. Each sample is weighted by the inverse of the
/// rate at that moment, and the sum is scaled to the number of calls, which is known. The standard
/// error is shown where the sample can tell it; with `every`, and with few samples, it is unknown. The median and the
/// other percentiles are over the samples without weights: where the rate changes, as with a
/// budget, they lean towards times of a high rate. Lost calls are in no estimate, and neither are
/// warm-up calls: the total is that of the calls after them.
///
/// A call that is captured into a graph by a function with `graph` is always timed.
///
/// # Keys of series
///
/// `key` takes any type with `Display`. Calls with different texts have separate series, at most 64
/// of them; further texts share `<other>`. A text of more than 96 bytes is cut and ends in `…` and
/// eight digits, which keep texts with the same beginning apart. The expression is evaluated like
/// those of the [work](#work), for timed calls only. If `?` ends it, the call has no key. The table
/// shows the eight keys with the largest totals and the number of others; the other renderings show
/// all.
///
/// # Work
///
/// `bytes` and `flops` take any integer or float, owned or borrowed, or an `Option` or `Result` of
/// one: `bytes = 12 * x.len()`. With `None` or `Err` the work of the call is unknown, as it is for
/// negative and non-finite numbers; the report warns of those and gives their number. The
/// expressions are evaluated before the body, each at most once, for timed calls only. `?` ends the
/// evaluation, not the function, and `.await` is an error. A panic propagates, and the call counts
/// as skipped. The expressions do not move out of a place, and none may borrow mutably what another
/// one, `key` or `stream` uses.
///
/// The work is shown with the function's row, sum or span, and not with its launches if there are
/// several. The rate is a call's work divided by the net median if every sample has the same work.
/// Otherwise it is the work of all samples divided by their net time, without samples of unknown
/// work. Lost calls count in neither. If no sample was fed, the rate is a lower bound, marked `≥`.
/// Bytes are compared with the peak bandwidth of the device's memory, which caches can exceed. A
/// gigabyte is 10⁹ bytes.
///
/// # Barriers
///
/// With `clock = "sync"` the runtime waits until the stream is idle, reads the host clock, runs the
/// body, waits again, and reads the clock again. The time includes the latency of the body's
/// launches and of the second barrier, and is not GPU time. This is the only clock that waits for
/// the GPU. `cold` flushes before the first barrier. A call that begins or ends during a capture of
/// the stream is lost as `capture`, because a barrier would invalidate the capture. A call whose
/// barrier fails is lost as `driver` or `context`, and the program's next driver call still sees
/// the error. Inside a bracket whose stream is held by `sleep`, a barrier waits for the deadline.
///
/// # What is bracketed
///
/// A launch is **visible** in the function's own control flow: not in a closure, an async block, a
/// nested item or a macro's arguments. If a launch name occurs in one of those, the default scope
/// is `body`.
///
/// In **launches** scope every launch has a row of its own, and the function's row is their sum per
/// call. The bracket opens before the receiver and the arguments of the launch are evaluated, and
/// includes work that they enqueue on the stream: with `.arg(&stream.clone_htod(x)?)` that is a
/// copy. Bind such a value with `let` before the launch. A launch that returns `Err`
/// (`cuLaunchKernel`: a code other than success) or unwinds is lost, and so is that call's sum. The
/// sum is lost too if a call unwinds or is cancelled, unless it cannot have had another launch to
/// make.
///
/// A macro may expand to a place, so it is a visible launch only as a statement of its own
/// (`launch!(…);`, `launch!(…).unwrap();`, `let x = launch!(…);`) and where its value is moved, as in
/// `launch!(…)?` or `f(launch!(…))`: not where it is a receiver, or is borrowed, matched, compared or
/// assigned to. At the end of a block it needs `()` or `[]`. As a statement without a name for its
/// value it cannot be seen to fail. A reference to a call whose arguments are all constants, as in
/// `&launch(3)`, is not a visible launch either: it may be a constructor.
///
/// A bracket inside another one on the same stream omits `cold` and `sleep`, and the outer one is
/// marked `nested`, on whichever threads they are. If two overlap, as when threads share a stream,
/// both are marked.
///
/// In **body** scope the row is the span from the first operation that the body enqueues to the
/// last, including frees of its locals (before edition 2024, not of temporaries in its tail
/// expression).
///
/// An `async fn` is timed from its first poll to its completion. A function that ends in `async
/// {…}`, `Box::pin(async {…})` or `async {…}.boxed()`, as methods under `async_trait` do, is timed
/// inside that block, without the code before it. Any other function that returns a future, a
/// stream or an iterator is an error in body scope, because it returns before its work is done. A
/// future that is dropped at an await is lost as `cancelled`. This covers every `.await` in the
/// function's own control flow, and macros whose arguments contain one or whose name is `select`,
/// `select_biased`, `join` or `try_join`. Leaving such a macro by `return` or `?` counts as
/// cancelled too. A cancellation counts as completion at an await that another macro generates, or
/// one in a position where a macro is not a visible launch.
///
/// If the macro cannot parse a body, it times the whole function, and the report has the remark `unparsed-body`.
///
/// # Graphs
///
/// With `graph`, a launch during a capture of its stream is put between two event records that are
/// nodes of the graph, and nothing else: `cold`, `sleep` and `warmup` apply to calls in a stream.
/// Each launch has a row of its own, in graphs; there is no sum. The captured call counts as timed,
/// and the row's `timed` counts the replays that were read and the launches that were lost.
///
/// **Replays are sampled.** Each replay overwrites the events of the one before, and the driver
/// reports no replays. So the runtime reads the events for every report and snapshot, and from time
/// to time before a timed call in a stream. It reads the last replay, if that has ended; the others
/// are not counted. To see every replay, wait for it and call `snapshot()`. Two readings must
/// agree, so that a replay between them cannot mix two times. Two executable graphs instantiated
/// from one graph share its events: if they run at once, their replays cannot be told apart, and a
/// time may be from the start in one to the stop in the other.
///
/// **The shape is decided once.** The first capture of a function decides whether its captures have
/// nodes, and later ones follow, so that a new capture can update the executable graph
/// (`cuGraphExecUpdate`). It decides against nodes while timing is off (`set_enabled(false)`) or if
/// the driver lacks the functions (before CUDA 11.3); such calls are lost as `capture`. Once there
/// are nodes, neither `set_enabled` nor sampling, warm-up or a later filter removes them, and their
/// replays are sampled like all others. So until a capture has decided against nodes, the stream's
/// expression is evaluated for calls that are switched off too. A function that `GPU_TIME` or
/// `GPU_TIME_FILTER` leaves out has no nodes.
///
/// The events belong to the graph and to everything instantiated from it, and are reused when these
/// are gone. There are at most 8,192 pairs at once; launches beyond are lost as `events`.
///
/// Do not use `graph` on a function that is captured into the body of a conditional node, or into a
/// graph to be launched from the device: neither may contain event records, and the program's own
/// capture or instantiation would fail. During a capture the driver does not reveal that a graph is
/// one of these.
///
/// A node's time has the same bias removed as a bracket's in a stream. It is fed, because nothing
/// between two nodes waits for the host. The first launch of a graph counts as starved: on an idle
/// H200 it reads 0.3 to 2 µs more than the same launch further down.
///
/// # What does not change
///
/// Types, drops, panics, `Send`, `Sync`, unwind safety, borrow checks, warnings and their places
/// stay the same, in editions 2018 to 2024. The exceptions:
///
/// - While the call runs there is a weak pointer to a stream that the function owns by an `Arc` or
///   `Rc`, so `get_mut` and `weak_count` see it.
/// - In launches scope, the type of a visible launch must be known at that point, and the launch
///   must return: one of type `!` does not compile. An awaited future of type `!` causes a warning
///   about unreachable code.
/// - An awaited future is wrapped in one that knows when it is polled. Types
///   of futures nest twice as deep, and each is larger by a pointer.
/// - A macro whose value is moved, and that is a launch or awaits, does not extend the lives of its
///   temporaries, except as the whole value of a `let`.
/// - `#[must_use]` on a function whose call is a visible launch, or is awaited, has no effect; on a
///   type it does.
/// - A parameter that only the attribute uses counts as used. Without the feature `enabled`,
///   anything that only the attribute names is unused, such as a constant for `warmup`.
/// - A future that is timed inside a tail block also captures the variables in the expressions of
///   `stream`, `key`, `bytes` and `flops`.
/// - A trait of your own that is implemented for every type, is in scope and has a method
///   `cu_stream` or `context` takes precedence over the stream's own method, as it does in your
///   code.
#[proc_macro_attribute]
pub fn gpu_timed(args: TokenStream, item: TokenStream) -> TokenStream {
    #[cfg(feature = "enabled")]
    return rewrite::rewrite(args.into(), item.into()).into();
    #[cfg(not(feature = "enabled"))]
    return off::checked(args, item);
}

/// Times a block as if it were an annotated function: `scope!("name", …keys…, { block })`.
///
/// ```text
/// let parsed = scope!("parse", clock = "host", { text.parse::<u32>()? });
/// ```
///
/// The name is a constant `&str`, and the label in the report. All keys of [`gpu_timed`] but `name` and
/// `skip` may follow, and work as on a function that has the block as its body, and the variables
/// around it as parameters: the stream is inferred from a visible `x.launch_builder(…)`, but not from
/// the types of variables.
///
/// The expansion is the block itself. Its value is that of the macro, and `?`, `return`, `break` and
/// `.await` mean in it what they mean outside; a call that they leave counts as completed. A block
/// that awaits visibly is async. Without the feature `enabled` only the block remains.
///
/// For the attribute of a function, the block is an argument of a macro: its launches are not visible
/// there, and an async function is suspended while the block runs if that awaits.
#[proc_macro]
pub fn scope(input: TokenStream) -> TokenStream {
    #[cfg(feature = "enabled")]
    return block::scope(input.into()).into();
    #[cfg(not(feature = "enabled"))]
    return off::scope(input);
}

/// Times what follows, until the guard that it returns is dropped: `guard!("name", …keys…)`.
///
/// ```text
/// let _timed = guard!("step", clock = "host");
/// load();
/// run(); // the call ends with the enclosing block
/// ```
///
/// `drop` ends the call earlier. `let _ = guard!(…)` ends it at once, so give it a name. A guard is
/// not `Send`: in async code that a runtime moves between threads, holding it across an `.await` does
/// not compile. Use [`scope!`](macro@scope) there, and wherever there is a block: a guard sees no
/// launches, so it has body scope, without `graph` and `launch`.
#[proc_macro]
pub fn guard(input: TokenStream) -> TokenStream {
    #[cfg(feature = "enabled")]
    return block::guard(input.into()).into();
    #[cfg(not(feature = "enabled"))]
    return off::guard(input);
}
