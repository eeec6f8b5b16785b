//! Functions without a stream, or whose stream cannot be inferred, are timed by their kernels.
#![forbid(unsafe_code)]
#![deny(warnings)]

use cudarc::driver::sys::CUstream;
use gpu_time::gpu_timed;

struct Stream;

struct Launch;

impl Stream {
    fn launch_builder(&self, _function: &str) -> Launch {
        Launch
    }
}

impl Launch {
    fn launch(&self) {}
}

struct Net {
    copy: Stream,
    compute: [Stream; 2],
}

impl Net {
    fn new_stream(&self) -> Stream {
        Stream
    }

    fn stream(&self, lane: usize) -> Option<&Stream> {
        self.compute.get(lane)
    }

    fn launch_builder(&self, function: &str) -> Launch {
        self.copy.launch_builder(function)
    }

    #[gpu_timed]
    fn by_own_method(&self) {
        self.launch_builder("k").launch();
    }

    #[gpu_timed]
    fn made(&self) {
        let stream = self.new_stream();
        stream.launch_builder("k").launch();
    }

    #[gpu_timed]
    fn of_a_method(&self, lane: usize) -> Option<()> {
        self.stream(lane)?.launch_builder("k").launch();
        Some(())
    }

    #[gpu_timed]
    fn of_a_loop(&self) {
        for stream in &self.compute {
            stream.launch_builder("k").launch();
        }
    }

    #[gpu_timed(warmup = 1)]
    fn two(&self) {
        self.copy.launch_builder("k").launch();
        self.compute[0].launch_builder("k").launch();
    }

    #[gpu_timed(scope = "body", key = lane, bytes = 4 * lane)]
    async fn waits(&self, lane: usize) -> Option<()> {
        self.of_a_method(lane)?;
        std::future::ready(()).await;
        Some(())
    }
}

#[gpu_timed]
fn nothing() {}

#[gpu_timed]
fn raw(stream: CUstream) -> bool {
    stream.is_null()
}

#[gpu_timed(clock = "kernels")]
fn one_of_two(_copy: &Stream, compute: &Stream) {
    compute.launch_builder("k").launch();
}

#[test]
fn runs() {
    let net = Net { copy: Stream, compute: [Stream, Stream] };
    net.made();
    net.by_own_method();
    net.of_a_loop();
    net.two();
    nothing();
    assert!(raw(std::ptr::null_mut()));
    one_of_two(&net.copy, &net.compute[0]);
    let mut waits = std::pin::pin!(net.waits(1));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert_eq!(waits.as_mut().poll(&mut context), std::task::Poll::Ready(Some(())));

    let snapshot = gpu_time::snapshot();
    for name in [
        "Net::by_own_method",
        "Net::made",
        "Net::of_a_method",
        "Net::of_a_loop",
        "Net::waits",
        "nothing",
        "raw",
    ] {
        let name = format!("without_stream::{name}");
        let site = snapshot.sites.iter().find(|site| site.name.ends_with(&name));
        assert_eq!(site.map(|site| (site.calls, site.timed)), Some((1, 1)), "{name}");
    }
}
