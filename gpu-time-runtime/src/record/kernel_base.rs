//! CUPTI's time of an empty kernel, measured with kernels of the runtime's own.

use crate::cuda::Context;
use crate::cupti;
use crate::record::opened::{self, base, base::SAMPLES, collector};

/// The kernels that raise the GPU's clocks first.
const RAMP: usize = 100;

/// Records empty kernels in a context, once, for [`Context::kernel_base`]. Takes some milliseconds.
/// Does nothing if CUPTI is unavailable, or if another thread is taking its records. Must be called
/// while no bracket and no opened call is open.
pub(crate) fn measure(context: &'static Context) {
    let Some(mut collector) = collector::pause() else { return };
    cupti::observe_launches(opened::OBSERVER);
    // The first time takes so long that the GPU may lower its clocks. None while another thread loads code.
    if cupti::switch_on().is_none() || !context.try_kernel_base() {
        return;
    }
    if !context.run_empty_kernels(RAMP) {
        return;
    }
    let base = {
        let Some(_switched_on) = cupti::switch_on() else { return };
        base::noting(context, || context.run_empty_kernels(SAMPLES))
    };
    base.into_iter().for_each(|base| collector.add_base(base));
    collector.collect(false);
    drop(collector);
    collector::keep_up();
}
