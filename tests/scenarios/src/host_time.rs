//! Functions that keep the host busy before, between and after their launches.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;

use crate::gpu::{Gpu, LaunchResult, Spin};
use crate::scenario::Scenario;
use crate::tally::{self, ran};
use crate::time::{now_ns, pass};

pub const SCENARIOS: &[Scenario] = &[("host_time", host_time)];

const CALLS: usize = 816;
const KERNEL_NS: u64 = 2_000;
/// The duration of each busy period of the host.
const BUSY_NS: u64 = 20_000;

#[gpu_timed]
fn several(stream: &Arc<CudaStream>, [first, second]: [&Spin; 2]) -> LaunchResult {
    ran!();
    pass(BUSY_NS);
    first.launch(stream, KERNEL_NS)?;
    pass(BUSY_NS);
    second.launch(stream, KERNEL_NS)?;
    pass(BUSY_NS);
    Ok(())
}

#[gpu_timed]
fn single(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    pass(BUSY_NS);
    spin.launch(stream, KERNEL_NS)?;
    pass(2 * BUSY_NS);
    Ok(())
}

#[gpu_timed(scope = "body")]
fn body(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    pass(2 * BUSY_NS);
    spin.launch(stream, KERNEL_NS)?;
    pass(BUSY_NS);
    Ok(())
}

#[gpu_timed]
async fn asynchronous(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    pass(BUSY_NS);
    spin.launch(stream, KERNEL_NS)
}

/// Calls each function, and adds up the times that the program itself measures around the calls.
fn host_time(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let spin = |name: &str| gpu.spin(&format!("host_time::{name}"));
    let two = ["several#0", "several#1"].map(spin);
    let [alone, in_body, awaited] = ["single", "body", "asynchronous"].map(spin);
    let calls: [(&str, &dyn Fn() -> LaunchResult); 3] = [
        ("several", &|| several(stream, [&two[0], &two[1]])),
        ("single", &|| single(stream, &alone)),
        ("body", &|| body(stream, &in_body)),
    ];
    for (name, call) in calls {
        let mut spent_ns = 0;
        for _ in 0..CALLS {
            let began_ns = now_ns();
            call().unwrap();
            spent_ns += now_ns() - began_ns;
            gpu.synchronize();
        }
        tally::fact(name, spent_ns);
    }
    for _ in 0..CALLS {
        let future = pin!(asynchronous(stream, &awaited));
        assert!(future.poll(&mut Context::from_waker(Waker::noop())).is_ready());
    }
    tally::print();
}
