//! cubecl: kernels written in Rust, launched by a thread of cubecl's own.
//!
//! ```text
//! cargo run --release
//! ```
//!
//! Timed by CUPTI: the kernels of `step` and `add`, with names and times. Nothing is timed by events,
//! because cubecl's streams are private.
//!
//! gpu-time attributes a launch to the call on the thread that makes it, and cubecl makes launches
//! later, on its own thread for the device. `client.exclusive` runs a closure on that thread, so the
//! closure's launches are made at once and belong to the annotated function. It waits for the
//! closure, but not for the GPU.
//!
//! Needs NVRTC at run time, like all cubecl programs.

use std::error::Error;

use cubecl::cuda::{CudaDevice, CudaRuntime};
use cubecl::prelude::*;
use cubecl::server::Handle;
use gpu_time::gpu_timed;

const LEN: usize = 1 << 20;
const STEPS: usize = 100;

type Client = ComputeClient<CudaRuntime>;

#[cube(launch)]
fn saxpy(a: f32, x: &Array<f32>, y: &mut Array<f32>) {
    if ABSOLUTE_POS < y.len() {
        y[ABSOLUTE_POS] += a * x[ABSOLUTE_POS];
    }
}

#[gpu_timed(warmup = 2)]
fn step(client: &Client, x: &Handle, y: &Handle) {
    add(client, 1.0, x, y);
    add(client, 0.5, x, y);
}

#[gpu_timed(warmup = 4)]
fn add(client: &Client, a: f32, x: &Handle, y: &Handle) {
    let dim = CubeDim::new(client, LEN);
    let count = CubeCount::Static((LEN as u32).div_ceil(dim.num_elems()), 1, 1);
    // SAFETY: both vectors have `LEN` elements.
    let (x, y) = unsafe {
        (ArrayArg::from_raw_parts(x.clone(), LEN), ArrayArg::from_raw_parts(y.clone(), LEN))
    };
    saxpy::launch::<CudaRuntime>(client, count, dim, a, x, y);
}

fn main() -> Result<(), Box<dyn Error>> {
    let client = CudaRuntime::client(&CudaDevice::default());
    let x = client.create_from_slice(f32::as_bytes(&vec![2.0; LEN]));
    let y = client.create_from_slice(f32::as_bytes(&vec![0.0; LEN]));
    for _ in 0..STEPS {
        client.exclusive(|| step(&client, &x, &y))?;
    }
    let y = client.read_one(y).map_err(|error| format!("{error:?}"))?;
    let y = f32::from_bytes(&y);
    let expected = 3.0 * STEPS as f32;
    assert!(y.iter().all(|&y| y == expected), "computed {:?}…, not {expected}", &y[..4]);
    println!("{STEPS} steps: every element is {expected}");
    Ok(())
}
