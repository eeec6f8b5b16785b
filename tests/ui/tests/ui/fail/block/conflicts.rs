use gpu_time::{guard, scope};

fn run() -> u8 {
    3
}

fn main() {
    scope!("", { run() });
    scope!("no stream", cold, { run() });
    let x: u8 = scope!("conflict", clock = "host", sleep, { run() });

    let _timed = guard!("launches", stream = None::<u8>, scope = "launches");
    let _timed = guard!("no stream", sleep, key = x);
}
