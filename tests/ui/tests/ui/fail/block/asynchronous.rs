use gpu_time::{RawStream, scope};

async fn step(stream: RawStream) {
    scope!("held", stream = stream, sleep, { std::future::ready(()).await });
    scope!("waits", stream = stream, clock = "sync", {
        std::future::ready(()).await
    });
}

fn main() {}
