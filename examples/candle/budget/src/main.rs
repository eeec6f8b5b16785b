//! Measures how much longer a pass of the Llama takes with timing on, in turns within one process.
//!
//! ```text
//! GPU_TIME_BUDGET=1% candle-budget [ROUNDS]     default: 24
//! ```
//!
//! A round has a long turn with timing and two short turns without, in changing order. The turn with timing has
//! to be long: the budget is a share of all time, so it spends in that turn what it saved in the other two. The
//! second short turn is the control, because two turns of the same program differ too. CUPTI slows a process down
//! for good once it has recorded. All turns include that slowdown, so the result does not show it.

#[allow(dead_code, reason = "`candle-llama` uses it too")]
#[path = "../../src/model.rs"]
mod model;

use std::array::from_fn;
use std::time::Instant;

use candle_core::{DType, Device, Result};
use candle_nn::{VarBuilder, VarMap};
use model::Llama;

/// Number of tokens in a sequence. Passes take longer at later positions.
const TOKENS: usize = 128;
/// Number of sequences in each turn: with timing, without, and without again.
const SEQUENCES: [usize; 3] = [40, 2, 2];
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [2, 0, 1], [1, 2, 0], [0, 2, 1], [1, 0, 2], [2, 1, 0]];
/// Turns with timing before the first round: the budget needs a few seconds to settle.
const SETTLING_TURNS: usize = 3;

fn main() -> Result<()> {
    let rounds = std::env::args().nth(1).map_or(24, |n| n.parse().expect("a number of rounds"));
    let device = Device::cuda_if_available(0)?;
    if device.is_cpu() {
        println!("no GPU here: running on the CPU");
    }
    let weights = VarMap::new();
    let mut model = Llama::new(VarBuilder::from_varmap(&weights, DType::F32, &device))?;
    for _ in 0..SETTLING_TURNS {
        turn(&mut model, 0)?;
    }
    let mut losses: [Vec<f64>; 2] = Default::default();
    for round in 0..rounds {
        let mut us = [0.0; 3];
        for kind in ORDERS[round % ORDERS.len()] {
            us[kind] = turn(&mut model, kind)?;
        }
        let [timed, plain, control] = us;
        losses[0].push((timed / plain - 1.0) * 100.0);
        losses[1].push((control / plain - 1.0) * 100.0);
        println!("round {round}: {timed:.1} µs a pass, {plain:.1} and {control:.1} without timing");
    }
    for (name, mut losses) in ["with timing", "the control"].into_iter().zip(losses) {
        losses.sort_by(f64::total_cmp);
        let [low, median, high] = from_fn(|i| losses.get(losses.len() * (i + 1) / 4).copied());
        if let (Some(low), Some(median), Some(high)) = (low, median, high) {
            println!("{name}: {median:+.2} % (half of the rounds {low:+.2} to {high:+.2})");
        }
    }
    // The report is printed when the process exits.
    Ok(())
}

/// Returns the mean time of a pass in microseconds.
fn turn(model: &mut Llama, kind: usize) -> Result<f64> {
    gpu_time::set_enabled(kind == 0);
    let start = Instant::now();
    for _ in 0..SEQUENCES[kind] {
        model.forget();
        let mut token = 1;
        for position in 0..TOKENS {
            token = model::most_likely(&model.decode(token, position)?)?;
        }
    }
    let passes = SEQUENCES[kind] * TOKENS;
    Ok(start.elapsed().as_secs_f64() * 1e6 / passes as f64)
}
