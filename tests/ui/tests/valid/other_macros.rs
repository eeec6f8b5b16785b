//! The attribute combined with other macros: `async_trait` before and after it, functions generated
//! by a `macro_rules!`, and a re-export of the crate.
#![deny(warnings)]

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;

pub mod reexports {
    pub use gpu_time as timing;
}

#[async_trait::async_trait]
trait Layer {
    async fn forward(&mut self, n: u32) -> Result<u32, String>;

    #[gpu_timed(clock = "host")]
    async fn provided(&self) -> u32 {
        std::future::ready(3).await
    }
}

struct Net {
    stream: Option<Arc<CudaStream>>,
}

#[async_trait::async_trait]
impl Layer for Net {
    #[gpu_timed(stream = self.stream)]
    async fn forward(&mut self, n: u32) -> Result<u32, String> {
        self.stream = None;
        let n = std::future::ready(n.checked_sub(1)).await.ok_or("zero")?;
        Ok(n + self.provided().await)
    }
}

macro_rules! functions {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $ret:ty $(, stream = $stream:expr)? => $body:block)*) => {$(
        #[gpu_timed(name = stringify!($name) $(, stream = $stream)?)]
        fn $name($($arg: $ty),*) -> $ret $body
    )*};
}

functions! {
    identity(n: u32, stream: Option<&CudaStream>) -> u32 => { let _ = stream; n }
    early(n: u32, lane: Option<Arc<CudaStream>>) -> Option<u32>, stream = lane => {
        lane?;
        Some(n)
    }
}

macro_rules! with_crate {
    ($name:ident) => {
        #[gpu_timed(clock = "host", crate = $crate::other_macros::reexports::timing)]
        fn $name() -> u32 {
            5
        }
    };
}

with_crate!(through_dollar_crate);

#[gpu_timed(clock = "host", crate = reexports::timing)]
fn through_a_path() -> u32 {
    6
}

#[gpu_timed(stream = stream, launch = "inner", crate = crate::other_macros::reexports::timing)]
fn one_in_another(stream: Option<&CudaStream>) -> u32 {
    #[gpu_timed(crate = self::reexports::timing)]
    fn inner(stream: Option<&CudaStream>) -> u32 {
        #[gpu_timed(clock = "host", crate = crate::other_macros::reexports::timing)]
        fn innermost() -> u32 {
            through_a_path()
        }
        innermost() + u32::from(stream.is_some())
    }
    inner(stream)
}

#[cfg_attr(all(), gpu_timed(clock = "host"))]
#[cfg_attr(any(), gpu_timed(clock = "events"))]
#[inline(never)]
fn configured() -> u32 {
    7
}

fn finished<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("pending"),
    }
}

#[test]
fn runs() {
    let mut net = Net { stream: None };
    assert_eq!(finished(net.forward(2)), Ok(4));
    assert_eq!(finished(net.forward(0)), Err("zero".to_owned()));
    assert_eq!(identity(1, None), 1);
    assert_eq!(early(1, None), None);
    assert_eq!(through_dollar_crate(), 5);
    assert_eq!(through_a_path(), 6);
    assert_eq!(one_in_another(None), 6);
    assert_eq!(configured(), 7);
}
