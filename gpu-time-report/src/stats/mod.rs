//! Statistics of times: pure arithmetic, independent of the source of the times.

mod bucket_counts;
mod buckets;
mod course;
mod distribution;
mod histogram;
mod median_ranks;
mod moments;
mod paired_ratios;
mod statistics;
pub mod student_t;
mod summary;
mod timeline;

pub use buckets::step_ns;
pub use course::Course;
pub use distribution::Distribution;
pub use histogram::Histogram;
pub use paired_ratios::PairedRatios;
pub use statistics::Stats;
pub use summary::Summary;
pub use timeline::{Slot, Timeline};
