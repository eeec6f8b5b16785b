//! Measures the time that CUPTI reports for an empty kernel, with the runtime's own launches.

use std::time::Instant;

use crate::cuda::Context;
use crate::cupti::{self, DrainKind};
use crate::record::collector;
use crate::record::opened::{self, base, base::SAMPLES};

/// The number of kernels that are run first to raise the GPU's clocks.
const RAMP: usize = 100;

/// Measures empty kernels in a context, for [`Context::kernel_base`]. Takes a few milliseconds. Returns `false` if
/// CUPTI is unavailable, the GPU is too slow, the context is gone, or another thread is still collecting records at the
/// deadline. Must be called while no bracket and no opened call is open.
pub(crate) fn measure(context: &'static Context, deadline: Instant) -> bool {
    let Some(mut records) = collector::records_by(deadline) else { return false };
    cupti::observe_launches(opened::OBSERVER);
    // Switches CUPTI on before the ramp, because this takes so long the first time that the GPU may lower its
    // clocks. This fails while another thread loads code.
    if cupti::switch_on().is_none() || !context.run_empty_kernels(RAMP) {
        return false;
    }
    let base = {
        let Some(_switched_on) = cupti::switch_on() else { return false };
        base::noting(context, || context.run_empty_kernels(SAMPLES))
    };
    let has_run = base.is_some();
    base.into_iter().for_each(|base| records.add_base(base));
    records.collect(DrainKind::Flushed);
    drop(records);
    collector::keep_up();
    has_run
}
