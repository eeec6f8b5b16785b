//! The source for the comparison of plain and annotated assembly. `rustc` compiles it directly, without and
//! with `--cfg annotated`. Each attribute is on lines of its own, so that source locations stay the same.

// Items used only by the attribute are unused without the feature.
#![allow(dead_code, unused_variables)]

use std::fmt::Display;
use std::future::Future;
use std::hint::black_box;
use std::panic::Location;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

#[cfg(annotated)]
use gpu_time::{gpu_timed, scope};

#[cfg(not(annotated))]
macro_rules! scope {
    ($name:literal, $block:block) => {
        $block
    };
}

/// The methods of a cudarc stream that generated code calls, and a launch.
struct CudaStream {
    handle: *mut (),
    context: Arc<CudaContext>,
}

struct CudaContext(*mut ());

struct Builder<'s>(&'s CudaStream);

impl CudaStream {
    fn cu_stream(&self) -> *mut () {
        self.handle
    }

    fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    fn launch_builder(&self, _kernel: &str) -> Builder<'_> {
        Builder(self)
    }
}

impl CudaContext {
    fn cu_ctx(&self) -> *mut () {
        self.0
    }
}

impl Builder<'_> {
    fn launch(&self, grid: u32) -> Result<u32, String> {
        if black_box(self.0.handle).is_null() { Ok(grid) } else { Err(format!("grid {grid}")) }
    }
}

/// Shows the order of drops.
struct Noisy<T: Display>(T);

impl<T: Display> Drop for Noisy<T> {
    fn drop(&mut self) {
        println!("{}", self.0);
    }
}

static CALLS: AtomicU64 = AtomicU64::new(0);

#[cfg_attr(annotated, gpu_timed(warmup = 10, cold, sleep))]
fn launches(stream: &Arc<CudaStream>, grid: u32) -> Result<u32, String> {
    let first = Noisy("first");
    let done = stream.launch_builder("a").launch(grid)?;
    let _second = Noisy(done);
    stream.launch_builder("b").launch(done + 1)
}

#[cfg_attr(annotated, gpu_timed(scope = "body", cold = "dirty", name = "the owner"))]
fn owns(stream: Arc<CudaStream>, mut grids: Vec<u32>) -> usize {
    grids.sort_unstable();
    drop(stream);
    grids.into_iter().map(|grid| grid as usize).filter(|grid| grid % 3 != 0).sum()
}

#[cfg_attr(annotated, gpu_timed(stream = stream, scope = "body"))]
fn optional(stream: Option<&CudaStream>, values: &[f32], at: usize) -> f32 {
    CALLS.fetch_add(1, Ordering::Relaxed);
    // The message of the bounds check names this line.
    values[at] * values.iter().sum::<f32>()
}

#[cfg_attr(annotated, gpu_timed(clock = "kernels", helpers = false))]
fn generic<T: Display + Clone, const N: usize>(value: &T, times: impl Fn(usize) -> usize) -> String
where
    T: PartialOrd,
{
    let texts: [String; N] = std::array::from_fn(|i| value.to_string().repeat(times(i)));
    texts.concat()
}

#[track_caller]
#[cfg_attr(annotated, gpu_timed(clock = "host"))]
fn located(value: Option<u32>) -> (u32, &'static Location<'static>) {
    (value.expect("a value"), Location::caller())
}

#[cfg_attr(annotated, gpu_timed)]
fn fails(code: u32) -> ! {
    panic!("code {code} at {}:{}:{}", file!(), line!(), column!())
}

#[cfg_attr(annotated, gpu_timed(stream = stream, scope = "body"))]
async fn waits(stream: Arc<CudaStream>, mut turns: u32) -> u32 {
    let noisy = Noisy(turns);
    while turns > 0 {
        Yield(false).await;
        turns -= 1;
    }
    stream.launch_builder("c").launch(turns).unwrap()
}

#[cfg_attr(annotated, gpu_timed(stream = stream, scope = "body"))]
fn boxed<'s>(stream: &'s Arc<CudaStream>) -> Pin<Box<dyn Future<Output = u32> + 's>> {
    let noisy = Noisy("boxed");
    Box::pin(async move {
        let _noisy = noisy;
        Yield(false).await;
        stream.launch_builder("d").launch(4).unwrap()
    })
}

struct Yield(bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let ready = std::mem::replace(&mut self.0, true);
        if ready { Poll::Ready(()) } else { Poll::Pending }
    }
}

trait Model {
    fn stream(&self) -> &Arc<CudaStream>;

    #[cfg_attr(annotated, gpu_timed(stream = self.stream(), scope = "body"))]
    fn by_default(&self, (low, high): (u32, u32)) -> u32 {
        (low..high).map(|i| i ^ self.stream().cu_stream() as usize as u32).sum()
    }
}

struct Layer {
    stream: Arc<CudaStream>,
    weights: Vec<u32>,
}

impl Model for Layer {
    fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }
}

impl Layer {
    #[cfg_attr(annotated, gpu_timed)]
    fn forward(&mut self, input: u32) -> Result<u32, String> {
        self.weights.push(input);
        let launched = self.stream.launch_builder("e").launch(self.weights.len() as u32);
        assert!(launched.is_ok(), "layer of {}", self.weights.len());
        launched
    }
}

macro_rules! generated {
    ($($name:ident => $factor:literal),*) => {$(
        #[cfg_attr(annotated, gpu_timed(clock = "host", warmup = 1))]
        fn $name(x: u64) -> u64 {
            x.checked_mul($factor).unwrap()
        }
    )*};
}

generated! { twice => 2, thrice => 3 }

#[cfg_attr(annotated, gpu_timed(stream = unsafe { gpu_time::raw_stream(stream as *mut ()) }, scope = "body"))]
extern "C" fn called_from_c(stream: usize, n: u32) -> u32 {
    n.rotate_left(black_box(7)) / n
}

/// Commas that are part of a value do not separate keys.
#[cfg_attr(
    annotated,
    gpu_timed(
        clock = "host",
        key = first::<u8, u64>(n as u8, n) as u32 >> 1,
        bytes = <u64 as Either<u8, u64>>::either(n) << 1,
        flops = u64::from(n < 3 || [n, n].map(|n| n << 1) < [1, 2]),
        r#every = 3,
    )
)]
fn values(n: u64) -> u64 {
    n.count_ones().into()
}

/// An `impl` alone in its module. Any attribute macro on an `impl` changes its index among the module's
/// `impl`s, and symbol names contain this index.
mod whole {
    pub struct Net(pub Vec<u32>);

    #[cfg_attr(annotated, gpu_time::gpu_timed(clock = "host", warmup = 3))]
    impl Net {
        pub fn forward(&mut self, input: u32) -> Option<u32> {
            self.0.push(input);
            self.backward().checked_mul(self.0.len() as u32)
        }

        #[cfg_attr(annotated, gpu_time::gpu_timed(skip))]
        fn backward(&mut self) -> u32 {
            self.0.iter().rev().sum()
        }
    }
}

fn blocks(n: u32) -> Result<u32, String> {
    let noisy = Noisy(n);
    let quotient = scope!("a block", { black_box(12_u32).checked_div(n).ok_or("zero")? });
    scope!("another", {
        println!("{quotient}");
    });
    Ok(quotient)
}

fn first<A, B>(first: A, _: B) -> A {
    first
}

trait Either<A, B> {
    fn either(self) -> B;
}

impl Either<u8, u64> for u64 {
    fn either(self) -> u64 {
        self
    }
}

/// Makes the assembly differ, to show that the comparison notices it.
#[cfg(changed)]
fn extra(n: u32) -> u32 {
    n.wrapping_mul(black_box(0x9e37_79b9))
}

fn main() {
    let context = Arc::new(CudaContext(black_box(std::ptr::null_mut())));
    let stream = Arc::new(CudaStream { handle: black_box(std::ptr::null_mut()), context });
    let stream = black_box(&stream);
    println!("{:?}", launches(stream, black_box(1)));
    println!("{:?}", owns(stream.clone(), black_box(vec![3, 1, 2])));
    println!("{:?}", optional(Some(stream), black_box(&[1.0, 2.0]), black_box(1)));
    println!("{:?}", generic::<u8, 3>(black_box(&7), |i| i + 1));
    println!("{:?}", generic::<&str, 2>(black_box(&"x"), |_| 2));
    println!("{:?}", located(black_box(Some(1))));
    println!("{:?}", twice(black_box(2)) + thrice(black_box(3)));
    println!("{:?}", called_from_c(0, black_box(5)));
    println!("{:?}", values(black_box(6)));
    println!("{:?}", blocks(black_box(4)));
    println!("{:?}", whole::Net(black_box(vec![1])).forward(black_box(2)));
    let mut layer = Layer { stream: stream.clone(), weights: Vec::new() };
    println!("{:?}", layer.forward(black_box(3)));
    println!("{:?}", layer.by_default(black_box((1, 5))));
    println!("{:?}", run(pin!(waits(stream.clone(), black_box(2)))));
    println!("{:?}", run(pin!(boxed(stream))));
    #[cfg(changed)]
    println!("{:?}", extra(black_box(1)));
    fails(black_box(3))
}

fn run<F: Future>(mut future: Pin<&mut F>) -> F::Output {
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output;
        }
    }
}
