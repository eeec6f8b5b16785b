//! Functions that name no stream, timed by their kernels, and what their awaits hold.

pub mod bare_functions {
    use crate::support::*;

    struct Tensor<T>(Vec<T>);

    impl<T: Copy + std::ops::Mul<Output = T>> Tensor<T> {
        #[cfg_attr(feature = "timed", gpu_timed)]
        fn scaled(&self, by: T) -> Self {
            Tensor(self.0.iter().map(|x| *x * by).collect())
        }

        #[cfg_attr(feature = "timed", gpu_timed(key = self.0.len()))]
        fn first_mut(&mut self) -> Option<&mut T> {
            self.0.first_mut()
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn two_streams(net: &[Arc<CudaStream>; 2]) -> Result<(), Refused> {
        let _noisy = Noisy("local");
        net[0].launch_builder("a").launch(1)?;
        net[1].launch_builder("b").launch(2)
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "kernels"))]
    fn panics(text: &str) -> usize {
        let _noisy = Noisy("before the panic");
        text.parse().unwrap()
    }

    pub fn run() {
        let mut tensor = Tensor(vec![1, 2]).scaled(3);
        *tensor.first_mut().unwrap() += 1;
        log!("{:?}", tensor.0);
        log!("{:?}", two_streams(&[CudaStream::shared(1), CudaStream::shared(2)]));
        attempt(|| panics("x"));
        attempt(|| panics("7"));
    }
}

pub mod awaits_of_what_becomes_a_future {
    use crate::support::*;
    use std::future::IntoFuture;

    struct Request(Noisy);

    struct Response(Noisy, Yield);

    impl IntoFuture for Request {
        type Output = usize;
        type IntoFuture = Response;

        fn into_future(self) -> Response {
            log!("sent {}", self.0.0);
            Response(self.0, yield_now())
        }
    }

    impl Future for Response {
        type Output = usize;

        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<usize> {
            log!("polled {}", self.0.0);
            let length = self.0.len();
            Pin::new(&mut self.1).poll(context).map(|()| length)
        }
    }

    fn noisy(name: &'static str, _: &Noisy) -> Request {
        Request(Noisy(name))
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    async fn requests() -> usize {
        let _local = Noisy("local");
        let n = noisy("let", &Noisy("argument of let")).await;
        noisy("statement", &Noisy("argument of statement")).await;
        if noisy("condition", &Noisy("argument of condition")).await > 100 {
            return 0;
        }
        n + noisy("tail", &Noisy("argument of tail")).await
    }

    pub fn run() {
        log_auto_traits!(requests());
        log!("{}", block_on(requests()));
        cancel(requests());
    }
}

pub mod awaits_of_borrowed_and_boxed_futures {
    use crate::support::*;

    type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

    #[cfg_attr(feature = "timed", gpu_timed)]
    async fn by_reference() -> u8 {
        let mut first = yield_now();
        (&mut first).await;
        let mut second = Box::pin(async {
            yield_now().await;
            2
        });
        second.as_mut().await
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    async fn higher_ranked<F>(visit: F, names: &[String]) -> usize
    where
        F: for<'a> Fn(&'a str) -> Boxed<'a, usize>,
    {
        let mut total = 0;
        for name in names {
            total += visit(name).await;
        }
        total
    }

    fn length(name: &str) -> Boxed<'_, usize> {
        Box::pin(async move {
            yield_now().await;
            name.len()
        })
    }

    fn spawn<F>(future: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let mut future = Box::pin(future);
        log!("{}", future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        std::thread::spawn(move || block_on(future)).join().unwrap()
    }

    pub fn run() {
        log_auto_traits!(by_reference());
        log!("{}", block_on(by_reference()));
        let total = spawn(async {
            let names = vec!["a".to_owned(), "bc".to_owned()];
            higher_ranked(length, &names).await
        });
        log!("{}", total);
    }
}

pub mod awaits_that_panic {
    use crate::support::*;

    struct Fails(Noisy);

    impl Future for Fails {
        type Output = u8;

        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u8> {
            self.0.get().filter(|length| *length > 100).expect("a longer name");
            Poll::Pending
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    async fn fails() -> u8 {
        let _local = Noisy("local");
        Fails(Noisy("future")).await
    }

    pub fn run() {
        attempt(|| block_on(fails()));
    }
}
