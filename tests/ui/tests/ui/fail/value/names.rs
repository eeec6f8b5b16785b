//! Names without quotes.

use gpu_time::{gpu_timed, guard, scope};

#[gpu_timed(clock = "host", name = forward)]
fn function() {}

const STEP: &str = "step";

fn main() {
    scope!(step, clock = "host", { function() });
    let _timed = guard!(step, clock = "host");
    scope!(STEP, clock = "host", { function() });
}
