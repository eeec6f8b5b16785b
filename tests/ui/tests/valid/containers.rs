//! The attribute on an `impl`, a `trait` and a `mod`.
#![deny(warnings, clippy::all)]
#![forbid(unsafe_code)]

use gpu_time::gpu_timed as measured;
use gpu_time::gpu_timed;

#[gpu_timed(warmup = 1)]
mod layers {
    use std::fmt::Debug;

    use super::{gpu_timed, measured};

    pub struct Stream;

    impl Stream {
        pub fn cu_stream(&self) -> *mut () {
            std::ptr::null_mut()
        }

        pub fn context(&self) -> &&Context {
            &&Context
        }
    }

    pub struct Context;

    #[gpu_timed(skip)]
    impl Context {
        pub fn cu_ctx(&self) -> *mut () {
            std::ptr::null_mut()
        }
    }

    pub struct Net<const N: usize, T> {
        pub stream: Option<Stream>,
        pub weight: T,
    }

    #[gpu_timed(stream = self.stream.as_ref())]
    impl<const N: usize, T: Copy + Debug> Net<N, T> {
        pub const LEN: usize = { N };

        pub fn new(weight: T) -> Net<N, T> {
            Net { stream: None, weight }
        }

        pub fn forward(&self) -> [T; N] {
            [self.weight; N]
        }

        #[measured(warmup = 0)]
        pub fn backward(&mut self) -> Option<&mut T> {
            Some(&mut self.weight)
        }

        #[cfg_attr(all(), gpu_timed(skip))]
        pub fn left_out(&self) {}

        pub const fn len(&self) -> usize {
            N
        }

        pub fn weights(&self) -> impl Iterator<Item = T> + '_ {
            std::iter::once(self.weight)
        }

        #[allow(clippy::unused_async)]
        pub async fn waits(&self) -> T {
            std::future::ready(()).await;
            self.weight
        }

        #[must_use]
        #[inline]
        pub extern "C" fn callback(x: u8) -> u8 {
            x + 1
        }
    }

    #[gpu_timed(clock = "host")]
    pub trait Layer {
        fn forward(&self) -> u8;

        fn twice(&self) -> u8 {
            self.forward() + self.forward()
        }
    }

    impl Layer for u8 {
        fn forward(&self) -> u8 {
            *self
        }
    }

    pub mod inner {
        pub fn function() {}
    }

    macro_rules! generated {
        ($name:ident) => {
            pub fn $name() {}
        };
    }
    generated!(by_a_macro);

    #[cfg(test)]
    mod tests {
        #[test]
        fn test() {}
    }

    #[allow(dead_code)]
    #[test]
    fn test() {}
}

use layers::{Layer, Net};

struct Generated;

/// Passes fragments, which arrive in invisible groups.
macro_rules! implement {
    ($(#[$attr:meta])* $vis:vis $name:ident $warmup:expr, $ty:ty, $body:block, $item:item) => {
        #[gpu_timed(clock = "host", warmup = $warmup)]
        impl $ty {
            $(#[$attr])*
            $vis fn $name(&self) -> u8 $body
        }

        #[gpu_timed(clock = "host")]
        mod generated {
            $item
        }
    };
}
implement!(#[inline] pub one 1 + 0, Generated, { 1 }, pub fn two() -> u8 { 2 });

#[test]
fn runs() {
    let mut net = Net::<2, u8>::new(3);
    assert_eq!(net.forward(), [3, 3]);
    assert_eq!(net.backward(), Some(&mut 3));
    net.left_out();
    assert_eq!(net.len() + Net::<2, u8>::LEN, 4);
    assert_eq!(net.weights().count(), 1);
    let mut waits = std::pin::pin!(net.waits());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert_eq!(waits.as_mut().poll(&mut context), std::task::Poll::Ready(3));
    assert_eq!(Net::<2, u8>::callback(1), 2);
    assert_eq!(1_u8.twice(), 2);
    layers::inner::function();
    layers::by_a_macro();
    assert_eq!(Generated.one() + generated::two(), 3);

    let snapshot = gpu_time::snapshot();
    let of_macro = |site: &&gpu_time::Site| site.name.contains("enerated");
    let ours = || snapshot.sites.iter().filter(|site| site.name.contains("containers::"));
    let names: Vec<_> = ours().filter(of_macro).map(|site| &site.name).collect();
    assert!(names[0].ends_with("Generated::one") && names[1].ends_with("generated::two"));
    assert_eq!(names.len(), 2, "{names:?}");

    let mut sites: Vec<_> = ours().filter(|site| !of_macro(site)).collect();
    sites.sort_by_key(|site| site.line);
    let short = |name: &str| name.rsplit_once("layers::").unwrap().1.to_owned();
    let of = |site: &gpu_time::Site| (short(&site.name), site.warmup, site.options.clone());
    let rows: Vec<_> = sites.iter().map(|site| of(site)).collect();
    let row = |name: &str, warmup, options: &str| (name.to_owned(), warmup, options.to_owned());
    let stream = "warmup = 1, stream = self.stream.as_ref()";
    assert_eq!(
        rows,
        [
            row("Stream::cu_stream", 0, "warmup = 1"),
            row("Stream::context", 0, "warmup = 1"),
            row("Net<N, _>::new", 1, "warmup = 1"),
            row("Net<N, _>::forward", 1, stream),
            row("Net<N, _>::backward", 0, "stream = self.stream.as_ref(), warmup = 0"),
            row("Net<N, _>::waits", 1, stream),
            row("Net<N, _>::callback", 1, "warmup = 1"),
            row("Layer::twice", 1, "warmup = 1, clock = \"host\""),
            row("Layer>::forward", 1, "warmup = 1"),
            row("inner::function", 1, "warmup = 1"),
        ]
    );
}
