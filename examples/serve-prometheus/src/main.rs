//! A loop of annotated work that exposes its times to Prometheus.
//!
//! ```text
//! cargo run --release -p serve-prometheus
//! curl http://127.0.0.1:9464/metrics
//! ```
//!
//! The optional argument is the address to listen on. The program runs until it receives a signal,
//! and then prints a report. On a machine without an NVIDIA GPU, the work runs on the CPU, and the rows
//! are labelled `host`.

#![allow(unsafe_code)] // launching a kernel is unsafe in cudarc

#[path = "../../gpu/mod.rs"]
mod gpu;

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use gpu_time::gpu_timed;
use gpu_time_kernels::workloads;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};

/// The largest request: 64 MiB in each vector.
const LARGEST: usize = 16 << 20;

type Done = Result<(), Box<dyn Error>>;

/// Returns histogram buckets in seconds: six per decade from 1 µs to 10 s, for kernels of any
/// length.
fn buckets() -> Vec<f64> {
    let decades = (0..7).map(|decade| 1e-6 * 10f64.powi(decade));
    let steps = |from: f64| [1.0, 1.5, 2.0, 3.0, 5.0, 7.0].map(|step| step * from);
    decades.flat_map(steps).chain([10.0]).collect()
}

/// Vectors, on a GPU or on the CPU.
enum Vectors {
    Gpu { stream: Arc<CudaStream>, saxpy: CudaFunction, x: CudaSlice<f32>, y: CudaSlice<f32> },
    Cpu { x: Vec<f32>, y: Vec<f32> },
}

/// Serves a request with `len` elements.
#[gpu_timed(stream = v.stream(), sleep)]
fn saxpy(v: &mut Vectors, len: usize) -> Done {
    match v {
        _ if len == 0 => {}
        Vectors::Gpu { stream, saxpy, x, y } => {
            let n = len as u32;
            let mut launch = stream.launch_builder(saxpy);
            launch.arg(&n).arg(&2.0f32).arg(x).arg(y);
            // SAFETY: the arguments match the kernel, and both vectors have at least `len` elements.
            unsafe { launch.launch(LaunchConfig::for_num_elems(n)) }?;
        }
        Vectors::Cpu { x, y } => {
            for (y, x) in y.iter_mut().zip(x).take(len) {
                *y += 2.0 * *x;
            }
        }
    }
    Ok(())
}

fn main() -> Done {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:9464".to_owned());
    let Ok(address) = address.parse::<SocketAddr>() else {
        return Err(format!(
            "expected an address to listen on, such as `0.0.0.0:9464`, not `{address}`"
        )
        .into());
    };
    // gpu-time publishes to the installed recorder about once a second.
    PrometheusBuilder::new()
        .with_http_listener(address)
        .set_buckets_for_metric(Matcher::Full("gpu_time_seconds".to_owned()), &buckets())?
        .install()?;
    println!("serving http://{address}/metrics");
    let mut vectors = on_gpu().unwrap_or_else(|why| {
        println!("no GPU here ({why}): running on the CPU, timed by the host clock");
        Vectors::Cpu { x: vec![1.0; LARGEST], y: vec![0.0; LARGEST] }
    });
    // Makes requests of six sizes, about eight of each per second. The last size is 0.
    let sizes = [24, 22, 20, 18, 16].map(|power| 1 << power).into_iter().chain([0]);
    for len in sizes.cycle() {
        saxpy(&mut vectors, len)?;
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn on_gpu() -> Result<Vectors, Box<dyn Error>> {
    let stream = gpu::find()?;
    let module = stream.context().load_module(Ptx::from_src(workloads::PTX))?;
    Ok(Vectors::Gpu {
        saxpy: module.load_function(workloads::SAXPY)?,
        x: stream.clone_htod(&vec![1.0; LARGEST])?,
        y: stream.alloc_zeros(LARGEST)?,
        stream,
    })
}

impl Vectors {
    /// Returns the stream to launch on, or `None` on the CPU.
    fn stream(&self) -> Option<&Arc<CudaStream>> {
        match self {
            Vectors::Gpu { stream, .. } => Some(stream),
            Vectors::Cpu { .. } => None,
        }
    }
}
