//! Live export: the values passed to the program's metrics recorder.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use crate::gpu::{Gpu, LaunchResult, Spin};
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("export/threads", threads),
    ("export/series", series),
    ("export/opened", opened),
    ("export/twins", twins),
    ("export/devices", devices),
    ("export/late", late),
    ("export/automatic", automatic),
    ("export/no_recorder", no_recorder),
];

#[gpu_timed(sleep)]
fn timed(stream: &Arc<CudaStream>, spin: &Spin, ns: u64) -> LaunchResult {
    ran!();
    spin.launch(stream, ns)
}

#[gpu_timed]
fn unheld(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 20_000)
}

#[gpu_timed(cold, warmup = 2, launch = "launch_badly")]
fn two(stream: &Arc<CudaStream>, first: &Spin, second: &Spin, second_is_bad: bool) -> LaunchResult {
    ran!();
    first.launch(stream, 20_000)?;
    if second_is_bad { second.launch_badly(stream) } else { second.launch(stream, 40_000) }
}

#[gpu_timed(clock = "kernels")]
fn by_kernels(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 20_000)
}

#[gpu_timed(sleep)]
fn on_stream(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 20_000)
}

/// The name contains characters that need escaping in the export formats.
#[gpu_timed(clock = "host", name = "export <b>\"x\"\\</b>, {y=\"1\"}")]
fn on_host() {
    ran!("export <b>\"x\"\\</b>, {y=\"1\"}");
}

#[gpu_timed(clock = "host", name = "export twin")]
fn twin() {
    ran!("export twin");
}

mod other {
    use super::*;

    #[gpu_timed(clock = "host", name = "export twin")]
    pub fn twin() {
        ran!("export twin");
    }
}

fn recorder() -> PrometheusHandle {
    PrometheusBuilder::new().install_recorder().expect("no other recorder is installed")
}

/// Returns the value in each line that has this metric name.
fn values(text: &str, name: &str) -> impl Iterator<Item = u64> {
    let lines = text.lines().filter_map(move |line| line.strip_prefix(name)?.strip_prefix('{'));
    lines.filter_map(|line| line.rsplit_once(' ')?.1.parse().ok())
}

/// Records the recorder's current response to a scrape, and prints the tally.
fn note_metrics(recorder: &PrometheusHandle) {
    tally::fact("metrics", recorder.render());
    tally::print();
}

/// Records on sixteen threads while one thread scrapes and one publishes.
fn threads(_: &[String]) {
    let recorder = recorder();
    let gpu = Gpu::new();
    let spin = gpu.spin("export::timed");
    let is_over = AtomicBool::new(false);
    // Scrapes and publishes take turns, because the recorder's own buckets lose a value that is
    // pushed into a block while a scrape takes the block away (metrics-util 0.20).
    let turn = Mutex::new(());
    let scrape = || {
        let (mut most, mut scrapes) = (0, 0u64);
        while !is_over.load(Relaxed) {
            let text = {
                let _turn = turn.lock().unwrap();
                recorder.render()
            };
            thread::yield_now();
            let calls = values(&text, "gpu_time_calls_total").sum();
            assert!(calls >= most, "{calls} after {most}");
            most = calls;
            scrapes += 1;
        }
        tally::fact("scrapes", scrapes);
    };
    thread::scope(|scope| {
        let recording: Vec<_> = (0..16)
            .map(|nth| {
                let stream = gpu.new_stream();
                let spin = &spin;
                scope.spawn(move || {
                    for _ in 0..100 {
                        timed(&stream, spin, 10_000 + 1_000 * nth).unwrap();
                    }
                    stream.synchronize().unwrap();
                })
            })
            .collect();
        scope.spawn(scrape);
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                let guard = turn.lock().unwrap();
                gpu_time::publish();
                drop(guard);
                thread::yield_now();
            }
        });
        recording.into_iter().for_each(|thread| thread.join().unwrap());
        is_over.store(true, Relaxed);
    });
    gpu.synchronize();
    gpu_time::publish();
    note_metrics(&recorder);
}

/// Records every kind of series: warm-up, several launches, cold and after cold, losses, host.
fn series(_: &[String]) {
    let recorder = recorder();
    let gpu = Gpu::new();
    let (first, second) = (gpu.spin("export::two#0"), gpu.spin("export::two#2"));
    for call in 0..12 {
        _ = two(&gpu.stream, &first, &second, call % 4 == 3);
        on_host();
    }
    gpu.synchronize();
    gpu_time::publish();
    // Publishing again must not add the same values twice.
    gpu_time::publish();
    note_metrics(&recorder);
}

/// Opens the calls of a function without events, and about half of those of a function with events.
fn opened(_: &[String]) {
    let recorder = recorder();
    let gpu = Gpu::new();
    let spins = ["export::by_kernels", "export::on_stream"].map(|name| gpu.spin(name));
    for _ in 0..40 {
        on_stream(&gpu.stream, &spins[1]).unwrap();
        by_kernels(&gpu.stream, &spins[0]).unwrap();
        gpu.synchronize();
    }
    let is_last = |line: &str| line.contains("by_kernels") && line.ends_with(" 40");
    while !recorder
        .render()
        .lines()
        .any(|line| line.starts_with("gpu_time_opened_total") && is_last(line))
    {
        gpu_time::publish();
        thread::sleep(Duration::from_millis(10));
    }
    note_metrics(&recorder);
}

/// Calls two functions with the same name.
fn twins(_: &[String]) {
    let recorder = recorder();
    (0..3).for_each(|_| twin());
    gpu_time::publish();
    (0..5).for_each(|_| other::twin());
    gpu_time::publish();
    note_metrics(&recorder);
}

/// Calls a function during phases, until the busy share of one with calls is published.
fn devices(_: &[String]) {
    // The runtime waits up to ten seconds for a phase's records, and this leaves room.
    const PATIENCE: Duration = Duration::from_secs(20);
    let recorder = recorder();
    let gpu = Gpu::new();
    let spin = gpu.spin("export::unheld");
    // Phases begin only once there is a context.
    unheld(&gpu.stream, &spin).unwrap();
    let began = Instant::now();
    let is_busy = |text: &str| {
        let lines = text.lines().filter(|line| line.starts_with("gpu_time_device_busy_share{"));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse().ok()).any(|share: f64| share > 0.0)
    };
    while !is_busy(&recorder.render()) && began.elapsed() < PATIENCE {
        // The program may stand still for a whole phase.
        gpu_time::record_phase(Duration::from_millis(30));
        unheld(&gpu.stream, &spin).unwrap();
        gpu.synchronize();
        gpu_time::publish();
        // More frequent calls would make more records than the runtime reads.
        thread::sleep(Duration::from_millis(1));
    }
    note_metrics(&recorder);
}

/// Installs the recorder after the first `publish`.
fn late(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("export::timed");
    for _ in 0..10 {
        timed(&gpu.stream, &spin, 20_000).unwrap();
    }
    gpu.synchronize();
    gpu_time::publish();
    let recorder = recorder();
    for _ in 0..5 {
        timed(&gpu.stream, &spin, 20_000).unwrap();
    }
    gpu.synchronize();
    gpu_time::publish();
    note_metrics(&recorder);
}

/// Never calls `publish`, and makes too few calls for a thread to drain its samples.
fn automatic(_: &[String]) {
    let recorder = recorder();
    let gpu = Gpu::new();
    let spin = gpu.spin("export::timed");
    for _ in 0..5 {
        timed(&gpu.stream, &spin, 20_000).unwrap();
    }
    gpu.synchronize();
    // Five samples for the function and five for its launch.
    while values(&recorder.render(), "gpu_time_seconds_count").sum::<u64>() < 10 {
        thread::sleep(Duration::from_millis(10));
    }
    note_metrics(&recorder);
}

fn no_recorder(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("export::timed");
    gpu_time::publish();
    for _ in 0..5 {
        timed(&gpu.stream, &spin, 20_000).unwrap();
        gpu_time::publish();
    }
    gpu.synchronize();
    tally::print();
}
