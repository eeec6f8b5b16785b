use gpu_time::gpu_timed;

struct Context;
struct Stream;
struct Launch;

impl Context {
    fn new_stream(&self) -> Stream {
        Stream
    }
}

impl Stream {
    fn launch_builder(&self, _function: &str) -> Launch {
        Launch
    }
}

impl Launch {
    fn launch(&self) {}
}

#[gpu_timed(cold)]
fn bound(context: &Context) {
    let stream = context.new_stream();
    stream.launch_builder("k").launch();
}

#[gpu_timed(cold)]
fn hides_a_parameter(stream: &Context) {
    let stream = stream.new_stream();
    stream.launch_builder("k").launch();
}

#[gpu_timed(cold)]
fn temporary(context: &Context) {
    context.new_stream().launch_builder("k").launch();
}

#[gpu_timed(cold)]
fn handed_on(context: &Context) {
    let stream = context.new_stream();
    temporary_with(&stream);
}

fn temporary_with(_stream: &Stream) {}

fn main() {}
