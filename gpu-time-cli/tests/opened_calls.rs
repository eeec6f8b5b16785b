//! Builders of recorded calls for the tests.

use gpu_time_report::{KernelTimes, value};

use crate::fixtures::series;

/// Builds the figures of recorded calls that all launch these kernels, with the total time of each.
pub fn opened(calls: u64, kernels: &[(&str, u64, f64)]) -> KernelTimes {
    let stats = series("cuda:0", &[5000.0; 3], &[], 0.0).raw_ns;
    let kernel = |&(name, per_call, total_ns): &(&str, u64, f64)| {
        value!(Kernel {
            name: name.to_owned(),
            grid: [8, 1, 1],
            block: [64, 1, 1],
            registers: 16,
            shared_bytes: 0,
            per_call: per_call as f64,
            count: per_call * calls,
            time_ns: stats,
            total_ns,
            share: total_ns / kernels.iter().map(|(_, _, total_ns)| total_ns).sum::<f64>(),
        })
    };
    value!(KernelTimes {
        opened: calls,
        busy_ns: stats,
        self_busy_ns: stats,
        span_ns: stats,
        gaps_ns: stats,
        kernels_per_call: Some(kernels.iter().map(|(_, per_call, _)| *per_call as f64).sum()),
        streams: Some(1),
        kernels: kernels.iter().map(kernel).collect(),
        elsewhere: Vec::new(),
        zero_times: 1,
    })
}
