//! Awaits in every position, functions that return futures, and futures in motion.

pub mod async_blocks_and_closures_within {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn nested(n: u8) -> u8 {
        let inner = async {
            yield_now().await;
            n
        };
        let closure = async |m: u8| {
            yield_now().await;
            n + m
        };
        let boxed: Pin<Box<dyn Future<Output = u8> + '_>> = Box::pin(async { closure(1).await });
        inner.await + boxed.await
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn built_here_run_here(n: u8) -> u8 {
        block_on(async move {
            yield_now().await;
            n
        })
    }

    pub fn run() {
        log!("{}", block_on(nested(1)));
        log!("{}", built_here_run_here(2));
    }
}

pub mod awaits_in_every_position {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn number(n: u32) -> u32 {
        yield_now().await;
        n
    }

    struct Pair(u32, u32);

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn positions() -> u32 {
        let mut total = number(1).await;
        total += number(2).await;
        for i in 0..number(2).await {
            total += number(i).await;
        }
        while number(total).await < 10 {
            total += 3
        }
        if number(1).await == 1 && number(2).await == 2 {
            number(9).await;
        }
        let a = total;
        let Pair(a, b) = Pair(number(1).await, if a > 9 { 0 } else { number(2).await });
        let array = [number(a).await, number(b).await];
        total += array[number(1).await as usize];
        match number(3).await {
            n if n == 3 => total += n,
            _ => return number(0).await,
        }
        let reference = &number(4).await;
        total + *reference + std::cmp::max(number(5).await, number(6).await)
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn in_macros() -> String {
        assert_eq!(number(1).await, 1);
        format!("{} {:?}", number(2).await, vec![number(3).await])
    }

    pub fn run() {
        log!("{}", block_on(positions()));
        log!("{}", block_on(in_macros()));
    }
}

pub mod returns_a_future_by_tail_block {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn ready(n: u8) -> impl Future<Output = u8> {
        log!("built {}", n);
        async move {
            log!("polled {}", n);
            yield_now().await;
            n
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn send<'a>(text: &'a str, _noisy: Noisy) -> impl Future<Output = usize> + Send + 'a {
        async move { text.len() }
    }

    pub fn run() {
        let future = ready(1);
        log!("between");
        log!("{}", block_on(future));
        let future = send("abc", Noisy("dropped when built"));
        log_auto_traits!(future);
        log!("{}", block_on(future));
    }
}

pub mod returns_a_boxed_future {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn countdown(n: u8) -> Pin<Box<dyn Future<Output = u8> + Send>> {
        Box::pin(async move {
            if n == 0 {
                return 0;
            }
            yield_now().await;
            countdown(n - 1).await + 1
        })
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn held(noisy: Noisy) -> Pin<Box<dyn Future<Output = usize>>> {
        let second = Noisy("second");
        std::boxed::Box::pin(async move {
            yield_now().await;
            noisy.len() + second.len()
        })
    }

    pub fn run() {
        let future = countdown(3);
        log_auto_traits!(future);
        log!("{}", block_on(future));
        log!("{}", block_on(held(Noisy("first"))));
        cancel(held(Noisy("first")));
        drop(held(Noisy("first")));
    }
}

/// The expansion of async-trait 0.1.
pub mod async_trait_output {
    use crate::support::*;

    trait Fetch {
        fn fetch<'life0, 'life1, 'async_trait>(
            &'life0 self,
            key: &'life1 str,
        ) -> Pin<Box<dyn Future<Output = Result<usize, String>> + Send + 'async_trait>>
        where
            'life0: 'async_trait,
            'life1: 'async_trait,
            Self: 'async_trait;
    }

    impl Fetch for u8 {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        #[allow(clippy::async_yields_async, clippy::type_complexity, unused_mut)]
        fn fetch<'life0, 'life1, 'async_trait>(
            &'life0 self,
            key: &'life1 str,
        ) -> Pin<Box<dyn Future<Output = Result<usize, String>> + Send + 'async_trait>>
        where
            'life0: 'async_trait,
            'life1: 'async_trait,
            Self: 'async_trait,
        {
            Box::pin(async move {
                if let Some(__ret) = None::<Result<usize, String>> {
                    #[allow(unreachable_code)]
                    return __ret;
                }
                let __self = self;
                let key = key;
                let __ret: Result<usize, String> = {
                    yield_now().await;
                    if key.is_empty() {
                        return Err("empty".into());
                    }
                    Ok(key.len() + usize::from(*__self))
                };
                #[allow(unreachable_code)]
                __ret
            })
        }
    }

    pub fn run() {
        log!("{:?} {:?}", block_on(1u8.fetch("ab")), block_on(1u8.fetch("")));
    }
}

pub mod manual_future {
    use crate::support::*;

    struct Countdown(u8);

    impl Future for Countdown {
        type Output = &'static str;

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
            match self.0.checked_sub(1) {
                None => Poll::Ready("done"),
                Some(n) => {
                    self.0 = n;
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
            }
        }
    }

    pub fn run() {
        log!("{}", block_on(Countdown(3)));
    }
}

pub mod moved_between_threads {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn travel(n: u8) -> u8 {
        yield_now().await;
        n + 1
    }

    pub fn run() {
        let mut future = Box::pin(travel(1));
        let mut context = Context::from_waker(Waker::noop());
        log!("{}", future.as_mut().poll(&mut context).is_pending());
        log!("{:?}", std::thread::spawn(move || block_on(future)).join());
    }
}

pub mod two_at_once {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn steps(name: &'static str, count: u8) -> Noisy {
        for i in 0..count {
            log!("{} {}", name, i);
            yield_now().await;
        }
        Noisy(name)
    }

    pub fn run() {
        block_on(async {
            let mut a = Box::pin(steps("a", 2));
            let mut b = Box::pin(steps("b", 5));
            std::future::poll_fn(|cx| {
                let first = a.as_mut().poll(cx);
                let second = b.as_mut().poll(cx);
                if first.is_ready() { first } else { second }
            })
            .await
        });
    }
}

pub mod async_launches {
    use crate::support::*;

    struct Queue(CudaStream);

    impl Queue {
        async fn submit(&self, grid: u32) -> Result<(), Refused> {
            yield_now().await;
            self.0.launch_builder("submitted").enqueue(grid)
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = queue.0, launch = "submit"))]
    async fn awaited(queue: &Queue) -> Result<u8, Refused> {
        queue.submit(1).await?;
        let second = queue.submit(2);
        second.await?;
        if let Err(error) = queue.submit(13).await {
            log!("{}", error);
        }
        queue.submit(13).await.map(|()| 1)
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    async fn between(stream: &CudaStream) -> Result<(), Refused> {
        stream.launch_builder("before").launch(1)?;
        yield_now().await;
        stream.launch_builder("after").launch(2)
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream))]
    async fn in_a_block(stream: &CudaStream) -> Result<(), Refused> {
        async { stream.launch_builder("in a block").launch(3) }.await
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream))]
    fn tail_block(stream: Arc<CudaStream>) -> impl Future<Output = Result<(), Refused>> + Send {
        async move {
            yield_now().await;
            stream.launch_builder("tail").launch(4)
        }
    }

    pub fn run() {
        let stream = CudaStream::new(1);
        log!("{:?} {:?}", block_on(between(&stream)), block_on(in_a_block(&stream)));
        log!("{:?}", block_on(awaited(&Queue(stream))));
        log!("{:?}", block_on(tail_block(CudaStream::shared(2))));
        cancel(tail_block(CudaStream::shared(2)));
    }
}
