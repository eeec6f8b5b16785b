//! Blocks, and the attribute on whole items.

pub mod block_values {
    use crate::support::*;

    fn exits(n: u8) -> Result<u8, String> {
        let doubled = scope!("doubled", clock = "host", { n.checked_mul(2).ok_or("large")? });
        let found = loop {
            let next: u8 = scope!("found", clock = "host", key = n, {
                if doubled > 20 {
                    break doubled;
                }
                if doubled == 6 {
                    return Ok(6);
                }
                doubled + 1
            });
            break next;
        };
        scope!("a tail", clock = "host", { Ok(found) })
    }

    pub fn run() {
        log!("{:?} {:?} {:?} {:?}", exits(3), exits(5), exits(30), exits(200));
    }
}

pub mod block_drops {
    use crate::support::*;

    struct Noisy(u8);

    impl Noisy {
        fn value(&self) -> u8 {
            self.0
        }
    }

    impl Drop for Noisy {
        fn drop(&mut self) {
            log!("drop {}", self.0);
        }
    }

    pub fn run() {
        let cell = RefCell::new(vec![1, 2]);
        let length = scope!("a borrow in the tail", clock = "host", { cell.borrow().len() });
        cell.borrow_mut().push(3);
        let moved = Noisy(1);
        let sum = scope!("drops", clock = "host", {
            let local = Noisy(2);
            let _ = moved;
            local.value() + Noisy(3).value()
        }) + Noisy(4).value();
        log!("{} {} {:?}", length, sum, cell);
    }
}

pub mod block_awaits {
    use crate::support::*;

    async fn waits(text: &str) -> Option<usize> {
        let length = scope!("awaits", clock = "host", {
            let ready = std::future::ready(text.len()).await;
            ready.checked_sub(1)?
        });
        Some(length)
    }

    pub fn run() {
        for text in ["", "abc"].iter() {
            let mut future = Box::pin(waits(text));
            log_auto_traits!(future);
            let waker = std::task::Waker::noop();
            log!("{:?}", future.as_mut().poll(&mut Context::from_waker(waker)));
        }
    }
}

pub mod whole_items {
    use crate::support::*;

    struct Net<T, const N: usize>([T; N]);

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host", warmup = 1))]
    impl<T: Copy + Debug, const N: usize> Net<T, N> {
        const LEN: usize = { N };

        fn forward(&self) -> impl Debug + '_ {
            &self.0
        }

        fn first(&mut self) -> Option<&mut T> {
            self.0.first_mut()
        }

        const fn len(&self) -> usize {
            N
        }

        fn all(&self) -> impl Iterator<Item = &T> {
            self.0.iter()
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    trait Layer {
        fn one(&self) -> u8;

        fn two(&self) -> u8 {
            self.one() * 2
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host", sleep = "1us"))]
    #[cfg(any())]
    mod configured_out {}

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    mod inner {
        use super::Layer;

        impl Layer for u8 {
            fn one(&self) -> u8 {
                *self
            }
        }

        pub(super) fn sum(of: &[u8]) -> u8 {
            of.iter().map(Layer::two).sum()
        }
    }

    pub fn run() {
        let mut net = Net([1_u8, 2]);
        if let Some(first) = net.first() {
            *first += 1;
        }
        log!("{:?} {} {}", net.forward(), net.len() + Net::<u8, 2>::LEN, net.all().count());
        log!("{}", inner::sum(&[1, 2]));
    }
}
