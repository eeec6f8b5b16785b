use gpu_time::{guard, scope};

fn run() -> u8 {
    3
}

fn main() {
    scope!({ run() });
    scope!(clock = "host", { run() });
    scope!("no block", run());
    scope!("two names", name = "other", { run() });
    scope!("skipped", skip, { run() });
    let x: u8 = scope!("unknown", wramup = 3, { run() });

    let _timed = guard!();
    let _timed = guard!(key = x);
    let _timed = guard!("launches", graph, launch = "gemm");
}
