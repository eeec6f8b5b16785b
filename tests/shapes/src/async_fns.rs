//! `async fn`: every form, and what it holds, drops and returns.

pub mod plain_async {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn add(a: u8, b: u8) -> u8 {
        a + b
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn twice(a: u8) -> u8 {
        yield_now().await;
        let b = add(a, a).await;
        yield_now().await;
        add(b, b).await
    }

    pub fn run() {
        let future = twice(1);
        log_auto_traits!(future);
        log!("{}", block_on(future));
    }
}

pub mod async_borrows {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn longest<'a>(a: &'a str, b: &'a str, calls: &mut u32) -> &'a str {
        *calls += 1;
        yield_now().await;
        *calls += 1;
        if a.len() > b.len() { a } else { b }
    }

    pub fn run() {
        let mut calls = 0;
        log!("{}", block_on(longest("aa", "b", &mut calls)));
        log!("{}", calls);
    }
}

pub mod async_auto_traits {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn holds_rc() -> usize {
        let rc = Rc::new(1);
        yield_now().await;
        Rc::strong_count(&rc)
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn drops_rc() -> usize {
        let count = Rc::strong_count(&Rc::new(1));
        yield_now().await;
        count
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn holds_cell(cell: &Cell<u8>) -> u8 {
        yield_now().await;
        cell.get()
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn generic<T: Debug>(value: T) -> String {
        yield_now().await;
        format!("{:?}", value)
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    async fn launches(stream: Arc<CudaStream>) -> Result<(), Refused> {
        yield_now().await;
        stream.launch_builder("k").launch(1)
    }

    #[cfg_attr(feature = "timed", gpu_timed(scope = "body"))]
    async fn body(stream: &CudaStream) -> Result<(), Refused> {
        yield_now().await;
        stream.launch_builder("k").launch(1)
    }

    thread_local! {
        static SHARED: Rc<CudaStream> = Rc::new(CudaStream::new(3));
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = SHARED.with(Rc::clone)))]
    async fn temporary_rc() -> Result<(), Refused> {
        yield_now().await;
        SHARED.with(|stream| stream.launch_builder("temporary").launch(1))
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = Box::new(SHARED.with(Rc::clone))))]
    async fn boxed_rc() {
        yield_now().await
    }

    pub fn run() {
        log_auto_traits!(temporary_rc());
        log_auto_traits!(boxed_rc());
        log!("{:?} {:?}", block_on(temporary_rc()), block_on(boxed_rc()));
        let mut future = Box::pin(temporary_rc());
        log!("{}", future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        std::thread::spawn(move || block_on(future).unwrap()).join().unwrap();
        log_auto_traits!(holds_rc());
        log_auto_traits!(drops_rc());
        log_auto_traits!(holds_cell(&Cell::new(1)));
        log_auto_traits!(generic(1));
        log_auto_traits!(generic(Rc::new(1)));
        log_auto_traits!(launches(CudaStream::shared(1)));
        log_auto_traits!(body(&CudaStream::new(1)));
        log!("{} {}", block_on(holds_rc()), block_on(drops_rc()));
        log!("{} {}", block_on(holds_cell(&Cell::new(3))), block_on(generic('c')));
        log!("{:?}", block_on(launches(CudaStream::shared(1))));
        log!("{:?}", block_on(body(&CudaStream::new(2))));
    }
}

pub mod async_methods {
    use crate::support::*;

    struct S(u8);

    impl S {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        async fn get(&self) -> u8 {
            yield_now().await;
            self.0
        }

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        async fn set(&mut self, value: u8) -> &mut Self {
            self.0 = value;
            self
        }

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        async fn consume(mut self: Box<Self>) -> Self {
            self.0 += self.get().await;
            *self
        }
    }

    pub fn run() {
        log!("{}", block_on(async { S(1).set(5).await.get().await }));
        log!("{}", block_on(Box::new(S(2)).consume()).0);
    }
}

pub mod async_in_traits {
    use crate::support::*;

    trait Fetch {
        async fn fetch(&self) -> u8;

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        async fn fetch_twice(&self) -> u8 {
            self.fetch().await + self.fetch().await
        }
    }

    impl Fetch for u8 {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        async fn fetch(&self) -> u8 {
            yield_now().await;
            *self
        }
    }

    pub fn run() {
        log!("{}", block_on(4u8.fetch_twice()));
    }
}

pub mod async_question_mark {
    use crate::support::*;
    use std::num::ParseIntError;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn parse(text: &str) -> Result<u8, ParseIntError> {
        yield_now().await;
        text.parse()
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn sum(a: &str, b: &str) -> Result<u8, Box<dyn std::error::Error>> {
        let _noisy = Noisy("sum");
        let n = match parse(a).await {
            Ok(0) => return Ok(0),
            other => other?,
        };
        Ok(n + parse(b).await?)
    }

    pub fn run() {
        for (a, b) in [("1", "2"), ("0", "x"), ("1", "x"), ("x", "")].iter() {
            log!("{:?}", block_on(sum(a, b)));
        }
    }
}

pub mod async_drop_order {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn work(_a: Noisy, _: Noisy, (b, _): (Noisy, Noisy)) -> Noisy {
        let _local = Noisy("local");
        yield_now().await;
        let n = Noisy("temporary").len();
        log!("{} {}", n, b.len());
        Noisy("returned")
    }

    fn start() -> impl Future<Output = Noisy> {
        work(Noisy("a"), Noisy("wild"), (Noisy("b"), Noisy("rest")))
    }

    pub fn run() {
        block_on(start()).len();
        log!("-- cancelled at the await");
        cancel(start());
        log!("-- never polled");
        drop(start());
        log!("end");
    }
}

pub mod async_tail_temporaries {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn tail(_param: Noisy) -> usize {
        let _local = Noisy("local");
        match Noisy("scrutinee").get() {
            Some(n) => {
                yield_now().await;
                n + Noisy("tail").len()
            }
            None => 0,
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn awaited_tail(noisy: &Noisy) -> usize {
        let _local = Noisy("local");
        ready(Noisy("argument").len(), noisy).await
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn ready(n: usize, noisy: &Noisy) -> usize {
        n + noisy.len()
    }

    pub fn run() {
        log!("{}", block_on(tail(Noisy("param"))));
        log!("{}", block_on(awaited_tail(&Noisy("outer"))));
    }
}

pub mod async_cancelled_in_a_temporary {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn pend(noisy: &Noisy) -> usize {
        yield_now().await;
        noisy.len()
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn outer() {
        let _first = Noisy("first");
        let _second = (pend(&Noisy("temporary")).await, Noisy("second"));
        pend(&Noisy("statement")).await;
    }

    pub fn run() {
        block_on(outer());
        cancel(outer());
    }
}

pub mod async_panics {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn fail(after: bool) -> u8 {
        let _noisy = Noisy("local");
        if after {
            yield_now().await;
        }
        None.expect("nothing")
    }

    pub fn run() {
        attempt(|| block_on(fail(false)));
        attempt(|| block_on(fail(true)));
    }
}

pub mod async_never {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn forever() -> ! {
        loop {
            yield_now().await
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn fail() -> ! {
        panic!("never")
    }

    pub fn run() {
        cancel(async {
            forever().await;
        });
        attempt(|| block_on(fail()));
    }
}

pub mod async_recursion {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn countdown(n: u8) -> u32 {
        if n == 0 {
            return 0;
        }
        yield_now().await;
        Box::pin(countdown(n - 1)).await + 1
    }

    pub fn run() {
        log!("{}", block_on(countdown(5)));
    }
}

pub mod async_patterns_and_generics {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn all<const N: usize, F>(
        (mut a, _): (u8, Noisy),
        [first, _]: [u8; 2],
        numbers: [u8; N],
        f: impl FnOnce(u8) -> F,
    ) -> F::Output
    where
        F: Future,
    {
        a += first + numbers.len() as u8;
        f(a).await
    }

    pub fn run() {
        let result = block_on(all((1, Noisy("wild")), [2, 3], [0; 7], |n| async move {
            yield_now().await;
            n * 2
        }));
        log!("{}", result);
    }
}

pub mod async_lints_stay {
    use crate::support::*;

    #[must_use]
    #[inline]
    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn must(n: u8) -> u8 {
        #![allow(unused_variables)]
        let unused = n;
        1
    }

    #[expect(unused_variables)]
    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn unused(n: u8) {}

    pub fn run() {
        log!("{} {:?}", block_on(must(1)), block_on(unused(2)));
    }
}
