#![doc = concat!(include_str!("links.md"), include_str!("../README.md"))]

#[cfg(all(doc, not(doctest)))]
pub mod guide;

#[cfg(all(feature = "enabled", not(target_os = "linux")))]
compile_error!(
    "gpu-time measures on Linux only: build without its feature `enabled` on other systems, where the \
     attribute does nothing"
);

pub use gpu_time_macros::{gpu_timed, guard, scope};

// Apart from those in `off`, these items do not exist without the feature, and the compiler then names it. For
// that, the feature has an attribute of its own.
#[cfg(feature = "enabled")]
#[cfg(target_os = "linux")]
pub use gpu_time_runtime::{
    BackToBack, Budget, Bytes, CacheState, Clock, ClockError, Clocks, Compared, Configure,
    Coverage, Dependence, Device, Elsewhere, ElsewhereReason, Eviction, Flops, FlushProof,
    GpuStream, Histogram, Kernel, KernelTimes, LEGACY_STREAM, Launch, Launches, LockedClocks,
    Losses, Lost, Measure, Modes, NULL_STREAM, Node, PER_THREAD_STREAM, PerCall, PhaseKernel,
    Process, Ratio, RawStream, ReadError, Remark, Run, ScopeKind, Series, Settle, Settled, Site,
    Slot, Snapshot, Stats, Timeline, Trend, UnknownError, Unmet, Utilization, WindowsFrom, compare,
    configure, lock_clocks, publish, raw_stream, record_phase, report, set_default_stream,
    set_enabled, set_thread_default_stream, snapshot, until_stable,
};

#[cfg(feature = "tracing")]
#[cfg(target_os = "linux")]
pub use gpu_time_runtime::{Spans, spans};

/// Items named by generated code. This is not a public interface.
#[cfg(all(feature = "enabled", target_os = "linux"))]
#[doc(hidden)]
pub use gpu_time_runtime::private as __private;

#[cfg(not(all(feature = "enabled", target_os = "linux")))]
mod off;
#[cfg(not(all(feature = "enabled", target_os = "linux")))]
pub use off::{
    Configure, GpuStream, LEGACY_STREAM, NULL_STREAM, PER_THREAD_STREAM, RawStream, configure,
    publish, raw_stream, record_phase, report, set_default_stream, set_enabled,
    set_thread_default_stream,
};
