use gpu_time::guard;

async fn step() {
    let _timed = guard!("step", clock = "host");
    std::future::ready(()).await;
}

fn spawn(_: impl Future + Send) {}

fn main() {
    spawn(step());
}
