//! An inference server with a load of its own, which measures what timing adds to its requests.
//!
//! ```text
//! cargo run --release --features gpu-time -- [RATE [SECONDS]]
//! ```
//!
//! Serves RATE requests a second, by default 500, or as many as it can for 0, and prints the latencies as a line of
//! JSON. `GET /metrics` answers with what gpu-time publishes. `gpu/server.sh` compares builds and settings.

#![allow(unsafe_code)] // launches, and the signal that ends the program

mod gpu;
mod load;

use std::error::Error;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use cudarc::driver::DriverError;
use gpu_time::gpu_timed;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::sync::{Mutex, mpsc};
use tokio::task;

use load::Load;

const WORKERS: usize = 4;
const CLIENTS: usize = 8;

struct App {
    /// Workers that are free.
    free: Mutex<mpsc::Receiver<gpu::Worker>>,
    back: mpsc::Sender<gpu::Worker>,
    metrics: PrometheusHandle,
}

type Answer = Result<String, (StatusCode, String)>;

impl App {
    async fn take(&self) -> gpu::Worker {
        self.free.lock().await.recv().await.expect("the application holds a sender")
    }

    async fn give(&self, worker: gpu::Worker) {
        self.back.send(worker).await.expect("the application holds the receiver");
    }
}

fn answer(result: Result<f32, DriverError>) -> Answer {
    let failed = |error: DriverError| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
    result.map(|value| value.to_string()).map_err(failed)
}

/// Does all GPU work on a thread that may block.
#[gpu_timed]
async fn blocking(State(app): State<Arc<App>>, Path(seed): Path<usize>) -> Answer {
    let mut worker = app.take().await;
    let infer = task::spawn_blocking(move || {
        let result = worker.infer(seed);
        (worker, result)
    });
    let (worker, result) = infer.await.expect("no request panics");
    app.give(worker).await;
    answer(result)
}

/// Enqueues in the handler itself, and waits without blocking.
#[gpu_timed]
async fn direct(State(app): State<Arc<App>>, Path(seed): Path<usize>) -> Answer {
    let mut worker = app.take().await;
    let result = run(&mut worker, seed).await;
    app.give(worker).await;
    answer(result)
}

#[gpu_timed]
async fn run(worker: &mut gpu::Worker, seed: usize) -> Result<f32, DriverError> {
    worker.enqueue(seed)?;
    let event = worker.stream.record_event(None)?;
    while !event.is_complete() {
        task::yield_now().await;
    }
    worker.read()
}

async fn metrics(State(app): State<Arc<App>>) -> String {
    app.metrics.run_upkeep();
    app.metrics.render()
}

#[tokio::main(worker_threads = 4)]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let rate = args.next().map_or(Ok(500.0), |rate| rate.parse())?;
    let seconds = args.next().map_or(Ok(5.0), |seconds| seconds.parse())?;
    let load = Load { clients: CLIENTS, rate, time: Duration::from_secs_f64(seconds) };
    let metrics_handle = PrometheusBuilder::new().install_recorder()?;
    // SAFETY: only looks for the driver library, without which cudarc would panic.
    if !unsafe { cudarc::driver::sys::is_culib_present() } {
        return Err("no GPU here: no CUDA driver".into());
    }
    let workers = gpu::workers(WORKERS).map_err(|error| format!("no GPU here: {error}"))?;
    let (back, free) = mpsc::channel(WORKERS);
    for worker in workers {
        back.send(worker).await?;
    }
    let app = App { free: Mutex::new(free), back, metrics: metrics_handle };
    let router = Router::new()
        .route("/blocking/{seed}", get(blocking))
        .route("/direct/{seed}", get(direct))
        .route("/metrics", get(metrics))
        .with_state(Arc::new(app));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        // The first requests load and calibrate what later ones use.
        let warm = Load { time: Duration::from_secs(1), ..load };
        let latencies = load::run(address, warm).and_then(|_| load::run(address, load));
        let Ok(latencies) = latencies.inspect_err(|error| eprintln!("load: {error}")) else {
            std::process::exit(3);
        };
        print(&latencies, seconds);
        // As an orchestrator would end it.
        // SAFETY: sends this process a signal.
        unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
    });
    axum::serve(listener, router).await?;
    Ok(())
}

/// Prints the latencies as a line of JSON.
fn print(latencies: &[Vec<f64>; 2], seconds: f64) {
    let quantile = |of: &Vec<f64>, q: f64| {
        of.get(((of.len().max(1) - 1) as f64 * q).round() as usize).copied().unwrap_or(f64::NAN)
    };
    let handlers = load::HANDLERS.iter().zip(latencies).map(|(name, of)| {
        format!(
            "\"{name}\": {{\"p50\": {:.1}, \"p99\": {:.1}}}",
            quantile(of, 0.5),
            quantile(of, 0.99)
        )
    });
    let handlers: Vec<String> = handlers.collect();
    let per_s = latencies.iter().map(Vec::len).sum::<usize>() as f64 / seconds;
    println!("{{{}, \"per_s\": {per_s:.1}}}", handlers.join(", "));
}
