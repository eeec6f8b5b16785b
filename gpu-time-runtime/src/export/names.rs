//! The names and labels of the metrics.

use metrics::{Label, Unit, describe_counter, describe_gauge, describe_histogram};

use crate::site::callsite::CallSite;
use crate::stats::series::SeriesInfo;
use gpu_time_report::Names;

pub(super) const SECONDS: &str = "gpu_time_seconds";
pub(super) const CALLS: &str = "gpu_time_calls_total";
pub(super) const WARMUP: &str = "gpu_time_warmup_total";
pub(super) const SKIPPED: &str = "gpu_time_skipped_total";
pub(super) const TIMED: &str = "gpu_time_timed_total";
pub(super) const FED: &str = "gpu_time_fed_total";
pub(super) const STARVED: &str = "gpu_time_starved_total";
pub(super) const AT_FLOOR: &str = "gpu_time_at_floor_total";
pub(super) const OPENED: &str = "gpu_time_opened_total";
pub(super) const LOST: &str = "gpu_time_lost_total";
pub(super) const SAMPLE_RATE: &str = "gpu_time_sample_rate";
pub(super) const BUDGET_SHARE: &str = "gpu_time_budget_share";
pub(super) const BUDGET_COST_SHARE: &str = "gpu_time_budget_cost_share";
pub(super) const ADDED_SHARE: &str = "gpu_time_added_share";
pub(super) const ADDED_ERROR: &str = "gpu_time_added_error_share";

pub(super) const BUSY_SHARE: &str = "gpu_time_device_busy_share";
pub(super) const ATTRIBUTED_SHARE: &str = "gpu_time_device_attributed_share";
pub(super) const ANY_WORK: &str = "gpu_time_device_any_work_share";
pub(super) const SM_SHARE: &str = "gpu_time_device_sm_share";
pub(super) const TENSOR_SHARE: &str = "gpu_time_device_tensor_share";
pub(super) const DRAM_SHARE: &str = "gpu_time_device_dram_share";
pub(super) const PCIE: &str = "gpu_time_device_pcie_bytes_per_second";
pub(super) const NVLINK: &str = "gpu_time_device_nvlink_bytes_per_second";
pub(super) const SM_CLOCK: &str = "gpu_time_device_sm_clock_hertz";
pub(super) const MEMORY_CLOCK: &str = "gpu_time_device_memory_clock_hertz";

/// Describes the metrics to the recorder.
pub(super) fn describe() {
    describe_histogram!(SECONDS, Unit::Seconds, "Times of calls and launches");
    for (name, description) in [
        (CALLS, "Calls of a function: warmup, skipped and timed"),
        (WARMUP, "Warm-up calls, which are not timed"),
        (
            SKIPPED,
            "Calls not timed: switched off, filtered out, not sampled, or impossible to time",
        ),
        (TIMED, "Timed calls"),
        (FED, "Samples during which the GPU did not wait for the CPU"),
        (STARVED, "Samples during which the GPU may have waited for the CPU: upper bounds"),
        (AT_FLOOR, "Samples without GPU work"),
        (OPENED, "Calls whose kernels CUPTI recorded"),
        (LOST, "Calls and launches that gave no sample, by reason"),
    ] {
        describe_counter!(name, Unit::Count, description);
    }
    describe_gauge!(SAMPLE_RATE, "Share of a function's calls that is currently timed");
    describe_gauge!(BUDGET_SHARE, "Share of the run time that timing may cost");
    describe_gauge!(BUDGET_COST_SHARE, "Share of the run time that timing cost recently");
    describe_gauge!(ADDED_SHARE, "Share by which timing made calls longer, as measured");
    describe_gauge!(ADDED_ERROR, "Standard error of gpu_time_added_share");
    describe_gauge!(
        BUSY_SHARE,
        "Share of the phases during which the device executed work of this process"
    );
    describe_gauge!(
        ATTRIBUTED_SHARE,
        "Share of the phases during which the device executed work of annotated functions"
    );
    for (name, description) in [
        (ANY_WORK, "Share of the last second in which the device did any work, of any process"),
        (SM_SHARE, "Mean share of the multiprocessors that were busy in the last second"),
        (TENSOR_SHARE, "Share of their peak at which the tensor cores worked in the last second"),
        (DRAM_SHARE, "Share of the memory's peak bandwidth used in the last second"),
        (PCIE, "Bytes per second over PCIe, in both directions"),
        (NVLINK, "Bytes per second over NVLink, in both directions"),
    ] {
        describe_gauge!(name, description);
    }
    describe_gauge!(SM_CLOCK, "Current SM clock of a device");
    describe_gauge!(MEMORY_CLOCK, "Current memory clock of a device");
}

/// Returns the label of a function. It is unique among all functions.
pub(super) fn function(site: &CallSite, all: &[&CallSite]) -> Label {
    let names: Names = all.iter().map(|site| site.name()).collect();
    Label::new("function", names.label(site.name(), site.spec.file, site.spec.line))
}

/// Returns the labels of a series. Together they are unique.
pub(super) fn labels(function: &Label, series: &SeriesInfo) -> Vec<Label> {
    let mut labels = vec![
        function.clone(),
        Label::new("device", series.device.clone()),
        Label::from_static_parts("measure", series.measure.name()),
        Label::from_static_parts("cache", series.cache.name()),
        Label::from_static_parts("clock", series.clock.name()),
        Label::from_static_parts("graph", truth(series.graph)),
    ];
    if let Some(launch) = &series.launch {
        labels.push(Label::new("launch", launch.index.to_string()));
    }
    if let Some(key) = &series.key {
        labels.push(Label::new("key", key.clone()));
    }
    labels
}

/// Returns the additional labels of a histogram: whether its samples are fed, and whether its times
/// are net or raw.
pub(super) fn of_times(fed: bool, is_net: bool) -> [Label; 2] {
    [
        Label::from_static_parts("fed", truth(fed)),
        Label::from_static_parts("time", if is_net { "net" } else { "raw" }),
    ]
}

fn truth(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}
