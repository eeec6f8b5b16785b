use gpu_time::gpu_timed;

struct Stream;

impl Stream {
    fn launch_builder(&self, _function: &str) {}
}

struct Context([Stream; 1]);

impl Context {
    fn stream(&self) -> &Stream {
        &self.0[0]
    }

    fn stream_of(&self, device: &str, lane: usize) -> Option<&Stream> {
        (device == "gpu").then(|| &self.0[lane])
    }
}

struct Net {
    inner: Context,
}

static STREAM: Stream = Stream;

impl Net {
    fn stream(&self) -> &Stream {
        self.inner.stream()
    }

    #[gpu_timed(cold)]
    fn method(&self) {
        self.stream().launch_builder("k");
    }

    #[gpu_timed(cold)]
    fn method_of_a_field(&self) {
        self.inner.stream().launch_builder("k");
    }

    #[gpu_timed(cold)]
    fn bound(&self, lane: usize) -> Option<()> {
        let context = &self.inner;
        let stream = context.stream_of("gpu", lane as usize)?;
        stream.launch_builder("k");
        Some(())
    }
}

#[gpu_timed(cold)]
fn method_of_a_parameter(context: &Context) {
    context.stream().launch_builder("k");
}

#[gpu_timed(cold)]
fn element(context: &Context) {
    context.0[0].launch_builder("k");
}

#[gpu_timed(cold)]
fn global() {
    STREAM.launch_builder("k");
}

#[gpu_timed(cold)]
fn element_of_a_loop(context: &Context) {
    for lane in 0..1 {
        context.0[lane].launch_builder("k");
    }
}

#[gpu_timed(cold)]
fn matched(context: &Context) {
    if let Some(stream) = context.stream_of("gpu", 0) {
        stream.launch_builder("k");
    }
}

fn main() {}
