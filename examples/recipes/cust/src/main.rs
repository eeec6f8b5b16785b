//! cust: a raw stream for events, and CUPTI for what runs on another one.
//!
//! ```text
//! cargo run --release
//! ```
//!
//! Timed by events: each launch of `add`. Timed by CUPTI: the copies of `upload`, which cust makes on
//! the NULL stream. Without CUPTI, the host clock times `upload`.

use std::error::Error;

use cust::error::CudaResult;
use cust::launch;
use cust::memory::{CopyDestination, DeviceBuffer};
use cust::module::Module;
use cust::stream::{Stream, StreamFlags};
use gpu_time::gpu_timed;

const LEN: usize = 1 << 20;
const STEPS: usize = 100;
const PTX: &str = include_str!("../../../../kernels/ptx/workloads.ptx");

struct Vectors {
    stream: Stream,
    module: Module,
    x: DeviceBuffer<f32>,
    y: DeviceBuffer<f32>,
}

impl Vectors {
    #[gpu_timed(warmup = 2)]
    fn upload(&mut self, input: &[f32]) -> CudaResult<()> {
        self.x.copy_from(input)
    }

    #[gpu_timed(warmup = 2, stream = unsafe { gpu_time::raw_stream(self.stream.as_inner()) })]
    fn add(&mut self, a: f32) -> CudaResult<()> {
        let Self { stream, module, x, y } = self;
        let saxpy = module.get_function("saxpy")?;
        let (len, blocks) = (LEN as u32, (LEN as u32).div_ceil(256));
        let (x, y) = (x.as_device_ptr(), y.as_device_ptr());
        // SAFETY: the arguments match the kernel, and both vectors have `len` elements.
        unsafe { launch!(saxpy<<<blocks, 256, 0, stream>>>(len, a, x, y)) }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let _context = cust::quick_init()?;
    let mut vectors = Vectors {
        stream: Stream::new(StreamFlags::DEFAULT, None)?,
        module: Module::from_ptx(PTX, &[])?,
        x: DeviceBuffer::zeroed(LEN)?,
        y: DeviceBuffer::zeroed(LEN)?,
    };
    let input = vec![2.0; LEN];
    for _ in 0..STEPS {
        vectors.upload(&input)?;
        vectors.add(1.0)?;
        vectors.add(0.5)?;
    }
    vectors.stream.synchronize()?;
    let y = vectors.y.as_host_vec()?;
    let expected = 3.0 * STEPS as f32;
    assert!(y.iter().all(|&y| y == expected), "computed {:?}…, not {expected}", &y[..4]);
    println!("{STEPS} steps: every element is {expected}");
    Ok(())
}
