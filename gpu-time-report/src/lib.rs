//! Reports from [gpu-time](https://docs.rs/gpu-time). A [`Snapshot`] contains the measurements. It
//! can be written as a table, JSON, CSV or HTML, and read back from JSON. This crate does not
//! measure anything and needs no GPU.
//!
//! ```
//! let json = br#"{
//!     "schema": "gpu-time/1",
//!     "process": {
//!         "name": "app", "pid": 1, "started": "2026-11-20T10:30:00Z", "wall_ns": 5000,
//!         "version": "0.1.0", "warnings": []
//!     },
//!     "devices": [],
//!     "sites": []
//! }"#;
//! let snapshot = gpu_time_report::Snapshot::from_json(json)?;
//! assert_eq!(snapshot.process.name, "app");
//! print!("{snapshot}");
//! # Ok::<(), gpu_time_report::ReadError>(())
//! ```

mod analysis;
mod budget;
mod checked;
mod column;
mod coverage;
mod csv;
mod device;
mod figure;
#[cfg(test)]
mod fixtures;
mod flush_proof;
mod gpu_time;
mod groups;
#[cfg(feature = "html")]
mod html;
mod json;
#[doc(hidden)]
pub mod judge;
mod kernel_names;
mod kinds;
mod largest;
mod launch_bound;
mod lead;
mod losses;
mod marks;
#[doc(hidden)]
pub mod merge;
mod names;
mod notes;
mod opened;
mod own_times;
#[doc(hidden)]
pub mod pattern;
mod process;
mod rate;
mod row;
mod run_kernels;
mod scale;
mod schema;
mod series;
mod shorten;
mod site;
mod snapshot;
#[doc(hidden)]
pub mod starved;
mod stats;
mod style;
#[doc(hidden)]
pub mod surcharge;
mod table;
mod terminal;
#[doc(hidden)]
pub mod text_table;
mod tree;
#[doc(hidden)]
pub mod units;
mod utilization;
mod value;
mod work;
mod wrap;

#[cfg(test)]
mod tests;

#[cfg(debug_assertions)]
#[doc(hidden)]
pub use analysis::ANALYSES;
#[doc(hidden)]
pub use analysis::Analysis;
pub use budget::Budget;
pub use coverage::{Coverage, PhaseKernel};
pub use device::{Clocks, Device, WindowsFrom};
pub use flush_proof::{Eviction, FlushProof};
pub use json::ReadError;
#[doc(hidden)]
pub use kinds::Detail;
pub use kinds::{CacheState, Clock, Measure, Remark, ScopeKind, UnknownError};
pub use losses::{Losses, Lost};
pub use process::Process;
pub use rate::{Bytes, Flops};
pub use series::{Elsewhere, ElsewhereReason, Kernel, KernelTimes, Launch, Launches, Run, Series};
pub use site::Site;
pub use snapshot::Snapshot;
pub use stats::{Dependence, Histogram, Modes, Slot, Stats, Timeline, Trend};
pub use terminal::Terminal;
#[doc(hidden)]
pub use tree::Owner;
pub use tree::{Node, PerCall, Source};
pub use utilization::Utilization;

// Used by the runtime and the tool to build reports.
#[cfg(feature = "html")]
#[doc(hidden)]
pub use html::page;
#[doc(hidden)]
pub use kernel_names::shortened as shortened_kernels;
#[doc(hidden)]
pub use names::Names;
#[doc(hidden)]
pub use stats::{
    ALPHA, Batches, Course, Distribution, FEWEST_PAIRS, FEWEST_WITH_INTERVAL, LogRatio, Look,
    Moments, PairedRatios, SideMedians, Summary, UnpairedRatio, step_ns, student_t,
};
#[doc(hidden)]
pub use terminal::View;
#[doc(hidden)]
pub use units::printable;
#[doc(hidden)]
pub use work::Work;
