use gpu_time::gpu_timed;

fn main() {
    let run = #[gpu_timed] || 3;
    run();
}
