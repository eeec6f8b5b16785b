//! Programs that a test makes up: see [`gpu_time_scenarios::script`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use cudarc::driver::{CudaStream, sys};
use gpu_time::gpu_timed;
use gpu_time_scenarios::script::{Call, Course, Mode, SITES, STREAMS, Script, Step};
use sys::CUstreamCaptureMode;

use crate::Scenario;
use crate::gpu::{Gpu, Spin};
use crate::tally::{self, ran};
use crate::time::advance;

pub const SCENARIOS: &[Scenario] = &[("random/script", run)];

/// What the calls of a thread need.
struct Tools<'a> {
    gpu: &'a Gpu,
    streams: &'a [Arc<CudaStream>],
    /// The kernels of each site, by launch.
    spins: &'a [Vec<Spin>],
    /// The thread's own stream, for captures.
    captured: Arc<CudaStream>,
}

/// Writes a site with these options, whose body is the same for all: two launches, with a call
/// inside and an end as the script says in between.
macro_rules! site {
    ($name:ident, $($options:tt)*) => {
        #[gpu_timed($($options)*)]
        fn $name(stream: &Arc<CudaStream>, spins: &[Spin], call: &Call, inner: impl FnOnce()) -> bool {
            ran!();
            if spins[0].launch(stream, 1_000 * (1 + call.site as u64)).is_err() {
                return false;
            }
            inner();
            match call.course {
                Course::Whole => {}
                Course::Early => return true,
                Course::Fails => return spins[1].launch_badly(stream).is_ok(),
                Course::Panics => panic!("as the script wants it"),
            }
            spins[1].launch(stream, 3_000).is_ok()
        }
    };
}

site!(plain, launch = "launch_badly");
site!(prepared, launch = "launch_badly", warmup = 3, cold, sleep);
site!(dirty, launch = "launch_badly", cold = "dirty", sleep = "20us");
site!(body, scope = "body");
site!(prepared_body, scope = "body", warmup = 2, cold, sleep);
site!(dirty_body, scope = "body", cold = "dirty", sleep = "20us");

const NAMES: [&str; SITES] = ["plain", "prepared", "dirty", "body", "prepared_body", "dirty_body"];

/// In a body it is the first launch that says whose bracket it is.
fn places(site: usize) -> [String; 2] {
    let name = NAMES[site];
    if site < 3 {
        // Between the two stands the one that fails.
        [0, 2].map(|launch| format!("random::{name}#{launch}"))
    } else {
        [format!("random::{name}"), format!("random::{name}#later")]
    }
}

impl Tools<'_> {
    fn call(&self, call: &Call, stream: &Arc<CudaStream>) {
        let spins = &self.spins[call.site];
        let inner = || {
            if let Some(inner) = &call.inner {
                self.call(inner, stream);
            }
        };
        // A panic of the script ends the call that it was meant for, and no other.
        let answer = catch_unwind(AssertUnwindSafe(|| match call.site {
            0 => plain(stream, spins, call, inner),
            1 => prepared(stream, spins, call, inner),
            2 => dirty(stream, spins, call, inner),
            3 => body(stream, spins, call, inner),
            4 => prepared_body(stream, spins, call, inner),
            _ => dirty_body(stream, spins, call, inner),
        }));
        match answer {
            Ok(true) => tally::count("good"),
            Ok(false) => tally::count("failed"),
            Err(_) => tally::count("panicked"),
        }
    }

    fn step(&self, step: &Step) {
        match step {
            Step::Call(call) => self.call(call, &self.streams[call.stream]),
            // Other threads may be capturing.
            Step::Synchronize(stream) => {
                relaxed(|| self.streams[*stream].synchronize().expect("the stream goes on"));
            }
            Step::Capture(mode, calls) => self.capture(*mode, calls),
            Step::Snapshot => assert_eq!(gpu_time::snapshot().inconsistencies(), [""; 0]),
            Step::Switch(on) => gpu_time::set_enabled(*on),
            Step::Advance(us) => advance(us * 1_000),
        }
    }

    fn capture(&self, mode: Mode, calls: &[Call]) {
        let mode = match mode {
            Mode::Global => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL,
            Mode::ThreadLocal => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            Mode::Relaxed => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED,
        };
        let stream = &self.captured;
        stream.begin_capture(mode).expect("the stream is not captured");
        for call in calls {
            self.call(call, stream);
        }
        let graph = stream.end_capture(sys::CUgraphInstantiate_flags(0));
        if let Some(graph) = graph.expect("the capture is intact") {
            graph.launch().expect("the graph is whole");
        }
        relaxed(|| stream.synchronize().expect("the graph is done"));
    }
}

/// Runs `f` so that it can ruin no capture.
fn relaxed(f: impl FnOnce()) {
    let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: exchanges the mode of this thread.
    let exchanged = unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) };
    f();
    if exchanged == sys::CUresult::CUDA_SUCCESS {
        // SAFETY: as above; gives back what was found.
        while unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) } != exchanged {}
    }
}

fn run(arguments: &[String]) {
    let script: Script = serde_json::from_str(&arguments[0]).expect("a script");
    // What panics by the script is no news.
    std::panic::set_hook(Box::new(|info| {
        if info.payload().downcast_ref() != Some(&"as the script wants it") {
            eprintln!("{info}");
        }
    }));
    let gpu = Gpu::new();
    let streams: Vec<_> = std::iter::once(gpu.context.default_stream())
        .chain((1..STREAMS).map(|_| gpu.new_stream()))
        .collect();
    let spins: Vec<Vec<Spin>> =
        (0..SITES).map(|site| places(site).iter().map(|place| gpu.spin(place)).collect()).collect();
    let tools =
        || Tools { gpu: &gpu, streams: &streams, spins: &spins, captured: gpu.new_stream() };
    let (first, rest) = script.threads.split_first().expect("a thread");
    let own: Vec<_> = rest.iter().map(|steps| (tools(), steps)).collect();
    let main = tools();
    thread::scope(|scope| {
        for (tools, steps) in &own {
            scope.spawn(move || steps.iter().for_each(|step| tools.step(step)));
        }
        first.iter().for_each(|step| main.step(step));
    });
    relaxed(|| main.gpu.synchronize());
    tally::print();
}
