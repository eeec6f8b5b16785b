//! candle: bare attributes, whose rows are the kernels of candle and cuBLAS.
//!
//! ```text
//! cargo run --release --features cuda    # with nvcc; without the feature on the CPU, by the host clock
//! ```
//!
//! Timed by CUPTI: the kernels of each function with their names, and how long the GPU was idle between
//! them. To time by events, which `sleep` and `cold` need, name the stream:
//! `#[gpu_timed(stream = x.device().as_cuda_device()?.cuda_stream())]`. Only builds with the feature
//! `cuda` have it.
//!
//! `examples/candle` is a larger program, with a script that builds without an installed toolkit.

use candle_core::{DType, Device, Result, Tensor};
use gpu_time::gpu_timed;

const WIDTH: usize = 512;
const LAYERS: usize = 4;
const STEPS: usize = 50;

/// Layers whose weights are all `1 / WIDTH`, so that they keep a constant row as it is.
struct Model {
    weights: Vec<Tensor>,
}

impl Model {
    fn new(device: &Device) -> Result<Self> {
        let weight = (Tensor::ones((WIDTH, WIDTH), DType::F32, device)? / WIDTH as f64)?;
        Ok(Self { weights: vec![weight; LAYERS] })
    }

    #[gpu_timed(warmup = 2)]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.weights.iter().try_fold(x.clone(), |x, weight| layer(&x, weight))
    }
}

#[gpu_timed(warmup = 2)]
fn layer(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    x.matmul(weight)?.relu()
}

fn main() -> Result<()> {
    let device = Device::cuda_if_available(0)?;
    let model = Model::new(&device)?;
    let x = (Tensor::ones((32, WIDTH), DType::F32, &device)? * 2.0)?;
    let mut y = x.clone();
    for _ in 0..STEPS {
        y = model.forward(&x)?;
    }
    let largest = (y - x)?.abs()?.max_all()?.to_scalar::<f32>()?;
    assert!(largest < 1e-4, "an element is off by {largest}");
    println!("{STEPS} passes through {LAYERS} layers: every element is 2");
    Ok(())
}
