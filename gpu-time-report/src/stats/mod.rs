//! Statistics of times. Pure arithmetic, independent of the source of the times.

mod batches;
mod bucket_counts;
mod buckets;
mod course;
mod dependence;
mod distribution;
mod histogram;
mod log_ratio;
mod looks;
mod median_interval;
mod median_ranks;
mod moments;
mod paired_ratios;
mod statistics;
pub mod student_t;
mod summary;
mod timeline;
mod unpaired_ratio;

pub use batches::Batches;
pub use buckets::step_ns;
pub use course::Course;
pub use dependence::{Dependence, Modes, Trend};
pub use distribution::Distribution;
pub use histogram::Histogram;
pub use log_ratio::{ALPHA, LogRatio};
pub use median_interval::FEWEST_WITH_INTERVAL;
pub use moments::Moments;
pub use paired_ratios::{FEWEST_PAIRS, Look, PairedRatios};
pub use statistics::Stats;
pub use summary::Summary;
pub use timeline::{Slot, Timeline};
pub use unpaired_ratio::{SideMedians, UnpairedRatio};
