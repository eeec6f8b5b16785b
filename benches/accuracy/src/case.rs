//! What is compared with the truth, each in an annotated function of its own.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;

use crate::Failure;
use crate::bound::Bound;
use crate::gpu::Gpu;
use crate::work::{Kind, Work};

/// Calls of each case that nobody counts.
pub const WARMUP: u32 = 20;

/// How the calls of a case follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// The stream is synchronised after each.
    Single,
    /// Nothing is waited for until the last.
    Queued,
}

/// One row of the table.
pub struct Case {
    /// The function's name.
    pub name: &'static str,
    /// The work.
    pub kind: Kind,
    /// How its calls follow each other.
    pub pace: Pace,
    /// The cache state that its series must have.
    pub cache: &'static str,
    /// How far the median may be from CUPTI's; without one the row is only shown.
    pub bound: Option<Bound>,
    /// The annotated function.
    timed: fn(&Arc<CudaStream>, &mut Work) -> Result<(), Failure>,
}

impl Case {
    /// Makes its calls through the annotated function, and so many more to warm up.
    ///
    /// # Errors
    /// The driver's.
    pub fn time(&self, gpu: &Gpu, work: &mut Work, calls: u32) -> Result<(), Failure> {
        self.make(gpu, calls, || (self.timed)(&gpu.stream, work))
    }

    /// Makes the same calls in the same pace through something else.
    ///
    /// # Errors
    /// The call's.
    pub fn make(
        &self,
        gpu: &Gpu,
        calls: u32,
        mut call: impl FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for _ in 0..self.calls(calls) {
            call()?;
            if self.pace == Pace::Single {
                gpu.stream.synchronize()?;
            }
        }
        Ok(gpu.stream.synchronize()?)
    }

    /// How many calls that is, those that warm up included.
    pub fn calls(&self, calls: u32) -> u32 {
        WARMUP
            + match self.pace {
                Pace::Single => calls,
                // Long enough for the queue to fill and stay full.
                Pace::Queued => 5 * calls,
            }
    }

    /// Whether the L2 is emptied before each call.
    pub fn is_cold(&self) -> bool {
        self.cache == "cold"
    }
}

/// One annotated function, whose launch is the one that a user would have in it.
macro_rules! timed {
    ($name:ident ($($keys:tt)*)) => {
        #[gpu_timed(warmup = WARMUP, $($keys)*)]
        fn $name(stream: &Arc<CudaStream>, work: &mut Work) -> Result<(), Failure> {
            work.launch(stream)
        }
    };
}

macro_rules! cases {
    ($($pace:ident $cache:literal $keys:tt {
        $($name:ident: $kind:expr, $bound:expr;)*
    })*) => {
        $($(timed!($name $keys);)*)*

        /// In the order of the table.
        pub const CASES: &[Case] = &[$($(Case {
            name: stringify!($name),
            kind: $kind,
            pace: Pace::$pace,
            cache: $cache,
            bound: $bound,
            timed: $name,
        },)*)*];
    };
}

const MIB: usize = 1 << 20;
const SPIN: Option<Bound> = Some(Bound::ns(150.0));
const COPY: Option<Bound> = Some(Bound::ns(300.0));
const OTHER: Option<Bound> = Some(Bound { ns: 250.0, share: 0.01 });
const QUEUED: Option<Bound> = Some(Bound::ns(400.0));

cases! {
    Single "as-found" (sleep) {
        empty: Kind::Empty, SPIN;
        spin_1us: Kind::Spin(1_000), SPIN;
        spin_2us: Kind::Spin(2_000), SPIN;
        spin_5us: Kind::Spin(5_000), SPIN;
        spin_10us: Kind::Spin(10_000), SPIN;
        spin_50us: Kind::Spin(50_000), SPIN;
        spin_200us: Kind::Spin(200_000), SPIN;
        copy_3840kib: Kind::Copy(3840 << 10), COPY;
        copy_7680kib: Kind::Copy(7680 << 10), COPY;
        copy_15mib: Kind::Copy(15 * MIB), COPY;
        copy_30mib: Kind::Copy(30 * MIB), COPY;
        add_one: Kind::AddOne, OTHER;
        product_64: Kind::Product(64), OTHER;
        product_2048: Kind::Product(2048), OTHER;
        memset_64mib: Kind::Memset(64 * MIB), OTHER;
        device_copy_64mib: Kind::DeviceCopy(64 * MIB), OTHER;
    }
    Single "cold" (cold, sleep) {
        cold_copy_3840kib: Kind::Copy(3840 << 10), COPY;
        cold_copy_7680kib: Kind::Copy(7680 << 10), COPY;
        cold_copy_15mib: Kind::Copy(15 * MIB), COPY;
        cold_copy_30mib: Kind::Copy(30 * MIB), COPY;
    }
    Queued "as-found" () {
        queued_spin_5us: Kind::Spin(5_000), QUEUED;
        queued_spin_10us: Kind::Spin(10_000), QUEUED;
        queued_spin_50us: Kind::Spin(50_000), QUEUED;
        queued_spin_200us: Kind::Spin(200_000), QUEUED;
        queued_copy_30mib: Kind::Copy(30 * MIB), QUEUED;
    }
    // Nobody promises these: they show what much that is queued behind a pair adds to it.
    Queued "as-found" (sleep) {
        held_queued_spin_10us: Kind::Spin(10_000), None;
        held_queued_spin_200us: Kind::Spin(200_000), None;
    }
}
