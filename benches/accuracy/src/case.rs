//! The cases compared with CUPTI, each in its own annotated function.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;

use crate::bound::Bound;
use crate::failure::Failure;
use crate::gpu::Gpu;
use crate::work::{Kind, Work};

/// The number of warm-up calls for each case, which are not evaluated.
pub const WARMUP: u32 = 20;

/// The points at which a case synchronizes its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// The stream is synchronized after each call.
    Single,
    /// The stream is synchronized only after the last call.
    Queued,
}

/// One row of the table.
pub struct Case {
    /// The function's name.
    pub name: &'static str,
    pub kind: Kind,
    pub pace: Pace,
    /// The cache state expected for its series.
    pub cache: &'static str,
    /// The accepted difference from CUPTI's median. A row without a bound is shown but not judged.
    pub bound: Option<Bound>,
    /// The annotated function.
    timed: fn(&Arc<CudaStream>, &mut Work) -> Result<(), Failure>,
}

impl Case {
    /// Makes `calls` calls to the annotated function (see [`Case::total_calls`]), after the warm-up
    /// calls.
    ///
    /// # Errors
    /// A driver call fails.
    pub fn time(&self, gpu: &Gpu, work: &mut Work, calls: u32) -> Result<(), Failure> {
        self.repeat(gpu, calls, || (self.timed)(&gpu.stream, work))
    }

    /// Makes as many calls to `call` as [`Case::time`] makes, at the same pace.
    ///
    /// # Errors
    /// `call` or a driver call fails.
    pub fn repeat(
        &self,
        gpu: &Gpu,
        calls: u32,
        mut call: impl FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for _ in 0..self.total_calls(calls) {
            call()?;
            if self.pace == Pace::Single {
                gpu.stream.synchronize()?;
            }
        }
        Ok(gpu.stream.synchronize()?)
    }

    /// Returns the number of calls including the warm-up: `calls` after it, or five times `calls` if queued.
    pub fn total_calls(&self, calls: u32) -> u32 {
        WARMUP
            + match self.pace {
                Pace::Single => calls,
                // Enough calls for the queue to fill and stay full.
                Pace::Queued => 5 * calls,
            }
    }

    /// Returns `true` if the L2 is flushed before each call.
    pub fn is_cold(&self) -> bool {
        self.cache == "cold"
    }
}

/// Defines an annotated function that launches the work as a user would.
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

        /// All cases, in the order of the table.
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
    // Without bounds: these cases show how much a long queue behind a pair adds to its time.
    Queued "as-found" (sleep) {
        held_queued_spin_10us: Kind::Spin(10_000), None;
        held_queued_spin_200us: Kind::Spin(200_000), None;
    }
}
