//! Live export: what a recorder of the program's is told.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use cudarc::driver::{CudaStream, DriverError};
use gpu_time::gpu_timed;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use crate::Scenario;
use crate::gpu::{Gpu, Spin};
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("export/threads", threads),
    ("export/series", series),
    ("export/twins", twins),
    ("export/late", late),
    ("export/by_itself", by_itself),
    ("export/to_nobody", to_nobody),
];

type Done = Result<(), DriverError>;

#[gpu_timed(sleep)]
fn timed(stream: &Arc<CudaStream>, spin: &Spin, ns: u64) -> Done {
    ran!();
    spin.launch(stream, ns)
}

#[gpu_timed(cold, warmup = 2, launch = "launch_badly")]
fn two(stream: &Arc<CudaStream>, first: &Spin, second: &Spin, second_is_bad: bool) -> Done {
    ran!();
    first.launch(stream, 20_000)?;
    if second_is_bad { second.launch_badly(stream) } else { second.launch(stream, 40_000) }
}

/// Its name is one that every format has to escape.
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
    PrometheusBuilder::new().install_recorder().expect("there is no other")
}

/// The value of each line of this name.
fn values(text: &str, name: &str) -> impl Iterator<Item = u64> {
    let lines = text.lines().filter_map(move |line| line.strip_prefix(name)?.strip_prefix('{'));
    lines.filter_map(|line| line.rsplit_once(' ')?.1.parse().ok())
}

/// The last thing that the recorder would answer a scrape with.
fn tell(recorder: &PrometheusHandle) {
    tally::fact("metrics", recorder.render());
    tally::print();
}

/// Sixteen threads record while one scrapes and one publishes.
fn threads(_: &[String]) {
    let recorder = recorder();
    let gpu = Gpu::new();
    let spin = gpu.spin("export::timed");
    let is_over = AtomicBool::new(false);
    // The recorder's own buckets lose a value that is pushed into a block while a scrape takes the block away
    // (metrics-util 0.20), so that these two take turns.
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
                let its_turn = turn.lock().unwrap();
                gpu_time::publish();
                drop(its_turn);
                thread::yield_now();
            }
        });
        recording.into_iter().for_each(|thread| thread.join().unwrap());
        is_over.store(true, Relaxed);
    });
    gpu.synchronize();
    gpu_time::publish();
    tell(&recorder);
}

/// Of every kind: warm-up, several launches, cold and after it, losses, the host.
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
    // What is not new is not told again.
    gpu_time::publish();
    tell(&recorder);
}

/// Two functions of one name.
fn twins(_: &[String]) {
    let recorder = recorder();
    (0..3).for_each(|_| twin());
    gpu_time::publish();
    (0..5).for_each(|_| other::twin());
    gpu_time::publish();
    tell(&recorder);
}

/// The recorder comes when something was published already.
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
    tell(&recorder);
}

/// Nobody asks for anything, and fewer calls are made than a thread looks after by itself.
fn by_itself(_: &[String]) {
    let recorder = recorder();
    let gpu = Gpu::new();
    let spin = gpu.spin("export::timed");
    for _ in 0..5 {
        timed(&gpu.stream, &spin, 20_000).unwrap();
    }
    gpu.synchronize();
    // The function and its launch.
    while values(&recorder.render(), "gpu_time_seconds_count").sum::<u64>() < 10 {
        thread::sleep(Duration::from_millis(10));
    }
    tell(&recorder);
}

fn to_nobody(_: &[String]) {
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
