//! Decodes with a small Llama on candle and prints what the GPU did in each of its functions.
//!
//! ```text
//! candle-llama [--passes N] [--only FUNCTION] [--plain]
//! ```

mod arguments;
#[allow(dead_code, reason = "`candle-budget` uses it too")]
mod model;

use std::time::{Duration, Instant};

use arguments::Arguments;
use candle_core::{DType, Device, Result};
use candle_nn::{VarBuilder, VarMap};
use model::Llama;

fn main() -> Result<()> {
    let Arguments { passes, only, plain } = Arguments::from_command_line();
    gpu_time::set_enabled(!plain);

    let device = Device::cuda_if_available(0)?;
    if device.is_cpu() {
        println!("no GPU here: running on the CPU");
    } else {
        device.set_seed(1)?;
    }
    let weights = VarBuilder::from_varmap(&VarMap::new(), DType::F32, &device);
    let mut model = Llama::new(weights)?;
    let input = model.input()?;
    device.synchronize()?;

    let mut token = 1;
    let mut times = Vec::with_capacity(passes);
    for position in 0..passes {
        let start = Instant::now();
        match &only {
            None => token = model::most_likely(&model.decode(token, position)?)?,
            Some(function) => {
                model.only(function, &input, position)?;
                device.synchronize()?;
            }
        }
        times.push(start.elapsed());
    }
    times.sort();
    let median = times.get(passes / 2).map_or(0.0, Duration::as_secs_f64) * 1e6;
    let what = only.as_deref().unwrap_or("decode");
    println!("{what}: {passes} passes, median {median:.0} µs of wall time, last token {token}");
    // The report is printed when the process exits.
    Ok(())
}
