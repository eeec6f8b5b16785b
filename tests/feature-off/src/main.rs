//! Uses all of gpu-time that exists without the feature `enabled`. Compiles with and without it.
//!
//! With the feature, the report is written twice.

// Items used only by the attribute are unused without the feature.
#![allow(dead_code, unused_variables)]

use std::ffi::c_void;
use std::fmt::Debug;
use std::pin::pin;
use std::ptr;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use gpu_time::{
    Configure, GpuStream, LEGACY_STREAM, NULL_STREAM, PER_THREAD_STREAM, RawStream, configure,
    gpu_timed, guard, publish, raw_stream, record_phase, report, scope, set_default_stream,
    set_enabled, set_thread_default_stream,
};

/// The methods of a cudarc stream that generated code calls.
struct CudaStream {
    context: Arc<CudaContext>,
}

struct CudaContext;

impl CudaStream {
    fn cu_stream(&self) -> *mut () {
        ptr::null_mut()
    }

    fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }
}

impl CudaContext {
    fn cu_ctx(&self) -> *mut () {
        ptr::null_mut()
    }
}

const WARMUP: u32 = 2;

#[gpu_timed(clock = "host", warmup = WARMUP, name = "on the CPU", bytes = n, flops = Some(&n)?)]
fn host(n: u64) -> u64 {
    (0..n).sum()
}

#[gpu_timed]
fn without_stream(work: &Work) {
    work.run();
}

#[gpu_timed(clock = "kernels", helpers = true)]
fn kernels(n: u64) {}

#[gpu_timed(clock = "sync", bytes = None::<u64>)]
fn inferred(stream: Option<&Arc<CudaStream>>) {}

#[gpu_timed(stream = work.stream.clone(), cold, sleep, scope = "body", crate = ::gpu_time)]
fn given(work: &Work) {
    work.run();
}

#[gpu_timed(stream = work.stream.as_ref(), cold = "dirty", sleep = "50us", launch = ["run", "go"])]
fn launching(work: &Work) {
    work.run();
    work.go();
}

#[gpu_timed(stream = stream.ok_or("none"), scope = "launches", launch = "run")]
async fn awaited(stream: Option<&Arc<CudaStream>>, work: &Work) {
    work.run();
}

/// CPU work, which never has a stream.
struct Work {
    stream: Option<Arc<CudaStream>>,
}

#[gpu_timed(clock = "host", warmup = 1)]
impl Work {
    #[gpu_timed(skip)]
    fn run(&self) {}

    fn go(&self) {}
}

#[gpu_timed(clock = "host", crate = ::gpu_time)]
mod inner {
    pub fn function() {}
}

/// Times blocks. The compiler must not lint the braces that remain after expansion.
fn blocks(n: u64) -> Option<u64> {
    let timed = guard!("the rest", clock = "host", key = n);
    let found: u64 = scope!("a block", clock = "host", { n.checked_sub(1)? });
    inner::function();
    drop(timed);
    Some(found)
}

/// Makes a function and a block whose keys and values come from a macro, with operators beside them.
macro_rules! generated {
    ($n:expr, $key:meta, $body:block) => {
        #[gpu_timed($key, clock = "host", key = $n, bytes = $n * 4)]
        fn generated() -> u32 {
            let bytes = $n * 4;
            bytes
        }

        fn generated_blocks() -> u32 {
            scope!("a sum", clock = "host", key = $n, { $n * 4 })
                + scope!("a fragment", clock = "host", $body)
        }
    };
}

generated!(1 + 2, warmup = 1, { 5 });

/// Has values with commas inside of types.
#[gpu_timed(clock = "host", key = parse as fn(&'static str) -> Result<u8, u8> as usize, flops = 2)]
fn types(parsed: &'static Result<u8, u8>) {
    let cast = scope!(
        "casts",
        clock = "host",
        key = parsed as &'static Result<u8, u8> as *const Result<u8, u8> as usize,
        flops = 2,
        { 1 }
    );
}

fn parse(text: &'static str) -> Result<u8, u8> {
    Ok(1)
}

/// An item that is skipped twice over.
#[gpu_timed(skip)]
#[gpu_timed(skip)]
impl Queue {}

/// Sets every option once, to its default.
fn configured() -> Configure {
    let options = configure().report("").filter("").sample(None).budget(None).warmup(None);
    same(&options);
    options
        .cold("")
        .sleep("")
        .record("")
        .notes("")
        .view("")
        .label("")
        .program_version("")
        .bias("")
        .trace_last(None)
}

/// A user-defined stream type.
struct Queue(RawStream);

// SAFETY: the NULL stream is never destroyed.
unsafe impl GpuStream for Queue {
    fn stream_handle(&self) -> *mut c_void {
        self.0.stream_handle()
    }
}

/// Specifies the NULL stream in every supported way.
fn null_streams() -> impl GpuStream {
    // SAFETY: the NULL stream is never destroyed.
    let raw = unsafe { raw_stream(ptr::null_mut::<()>()) };
    assert_eq!(raw, NULL_STREAM);
    assert_ne!(LEGACY_STREAM, PER_THREAD_STREAM);
    Arc::new(Box::new(Queue(raw)))
}

fn main() {
    configured().apply();
    assert!(null_streams().stream_handle().is_null());
    configure().sample(1.0).warmup(0).apply();
    assert_eq!((generated(), generated_blocks()), (12, 17));
    types(&Ok(1));
    let work = Work { stream: None };
    set_enabled(true);
    set_default_stream(NULL_STREAM);
    set_thread_default_stream(Arc::new(Queue(NULL_STREAM)));
    set_thread_default_stream(None::<RawStream>);
    set_default_stream(None::<RawStream>);
    for n in 0..5 {
        host(n);
        assert_eq!(blocks(n), n.checked_sub(1));
        without_stream(&work);
        kernels(n);
        inferred(None);
        given(&work);
        launching(&work);
        let done = pin!(awaited(None, &work)).poll(&mut Context::from_waker(Waker::noop()));
        assert!(done.is_ready());
    }
    set_enabled(false);
    host(1);
    set_enabled(true);
    report();
    publish();
    record_phase(Duration::from_millis(1));
}

/// Asserts the traits that all types have.
fn same<T: Clone + Debug + PartialEq + Send + Sync + 'static>(value: &T) {
    assert_eq!(&value.clone(), value);
}
