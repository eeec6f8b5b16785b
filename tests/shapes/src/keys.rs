//! The attribute's keys, alone and together.

pub mod no_arguments {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn bare(stream: &CudaStream) -> bool {
        stream.cu_stream().is_null()
    }

    #[cfg_attr(feature = "timed", gpu_timed())]
    fn empty(stream: &CudaStream) -> bool {
        stream.cu_stream().is_null()
    }

    pub fn run() {
        log!("{} {}", bare(&CudaStream::new(1)), empty(&CudaStream::new(2)));
    }
}

pub mod names {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(name = "a name, with {braces}", clock = "host"))]
    fn named() -> u8 {
        1
    }

    #[cfg_attr(feature = "timed", gpu_timed(name = r#"a "raw" name"#, clock = "host",))]
    fn raw() -> u8 {
        2
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host", name = concat!("computed ", 1)))]
    fn computed() -> u8 {
        3
    }

    pub fn run() {
        log!("{} {} {}", named(), raw(), computed());
    }
}

pub mod warm_up {
    use crate::support::*;

    const WARMUP: u32 = 2;

    struct S;

    impl S {
        const CALLS: u32 = 3;
    }

    #[cfg_attr(feature = "timed", gpu_timed(warmup = 3, helpers = false))]
    fn literal(stream: &CudaStream) -> Result<(), Refused> {
        stream.launch_builder("literal").launch(1)
    }

    #[cfg_attr(feature = "timed", gpu_timed(warmup = WARMUP * 2 + S::CALLS, clock = "host"))]
    fn expression() -> u32 {
        WARMUP + S::CALLS
    }

    #[cfg_attr(feature = "timed", gpu_timed(warmup = u32::MAX, scope = "body"))]
    fn path(stream: &CudaStream) -> bool {
        stream.cu_stream().is_null()
    }

    pub fn run() {
        for _ in 0..5 {
            log!("{:?} {}", literal(&CudaStream::new(1)), expression());
        }
        log!("{}", path(&CudaStream::new(2)));
    }
}

pub mod cold_and_sleep {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(cold))]
    fn cold(stream: &CudaStream) -> Result<(), Refused> {
        stream.launch_builder("cold").launch(1)?;
        stream.launch_builder("after cold").launch(2)
    }

    #[cfg_attr(feature = "timed", gpu_timed(cold = "dirty", sleep))]
    fn dirty(stream: &CudaStream) -> Result<(), Refused> {
        stream.launch_builder("dirty").launch(1)
    }

    #[cfg_attr(feature = "timed", gpu_timed(sleep = "50us", scope = "body"))]
    fn held(stream: &CudaStream) -> Result<(), Refused> {
        stream.launch_builder("held").launch(1)
    }

    #[cfg_attr(feature = "timed", gpu_timed(cold))]
    fn nested(stream: &CudaStream) -> Result<(), Refused> {
        cold(stream)?;
        held(stream)
    }

    pub fn run() {
        let stream = CudaStream::new(1);
        log!("{:?} {:?} {:?}", cold(&stream), dirty(&stream), held(&stream));
        log!("{:?}", nested(&stream));
    }
}

pub mod scopes_and_clocks {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(scope = "launches", clock = "events"))]
    fn launches(stream: &CudaStream) -> Result<(), Refused> {
        stream.launch_builder("launches").launch(1)
    }

    #[cfg_attr(feature = "timed", gpu_timed(scope = "body", clock = "events"))]
    fn body(stream: &CudaStream) -> Result<(), Refused> {
        stream.launch_builder("body").launch(1)
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn host_launches(stream: &CudaStream) -> Result<(), Refused> {
        stream.launch_builder("host launches").launch(1)?;
        stream.launch_builder("host launches").launch(13)
    }

    #[cfg_attr(feature = "timed", gpu_timed(scope = "body", clock = "host"))]
    fn host_body(stream: &CudaStream) -> Result<(), Refused> {
        stream.launch_builder("host body").launch(1)
    }

    pub fn run() {
        let stream = CudaStream::new(1);
        log!("{:?} {:?}", launches(&stream), body(&stream));
        log!("{:?} {:?}", host_launches(&stream), host_body(&stream));
    }
}

pub mod work {
    use crate::support::*;

    struct Net {
        weights: Vec<f32>,
        layers: Option<u32>,
    }

    impl Net {
        #[cfg_attr(
            feature = "timed",
            gpu_timed(bytes = 4 * self.weights.len(), flops = self.layers? * 2)
        )]
        fn forward(&self, stream: &CudaStream) -> Result<usize, Refused> {
            stream.launch_builder("forward").launch(1)?;
            stream.launch_builder("forward").launch(2)?;
            Ok(self.weights.len())
        }

        #[cfg_attr(feature = "timed", gpu_timed(scope = "body", bytes = self.size()))]
        fn grow(&mut self, stream: &CudaStream) -> &mut Vec<f32> {
            if self.size() < Some(9) && !stream.cu_stream().is_null() {
                self.weights.push(3.0);
            }
            &mut self.weights
        }

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host", flops = &self.layers))]
        fn unwrap(self) -> (Vec<f32>, Option<u32>) {
            (self.weights, self.layers)
        }

        fn size(&self) -> Option<usize> {
            self.weights.len().checked_mul(4)
        }
    }

    /// The body moves the value, and the expression does not.
    #[cfg_attr(feature = "timed", gpu_timed(bytes = data.len(), flops = data.iter().map(|noisy| noisy.0.len()).sum::<usize>()))]
    fn consume(stream: &CudaStream, data: Vec<Noisy>) -> usize {
        let _ = stream;
        data.into_iter().count()
    }

    #[cfg_attr(
        feature = "timed",
        gpu_timed(clock = "host", bytes = std::mem::size_of::<T>() * items.len(), flops = N)
    )]
    fn generic<T: Debug, const N: usize>(items: &[T; N]) -> String {
        format!("{:?}", items)
    }

    /// `?` in a value ends the evaluation and not the function, whatever its return type.
    #[cfg_attr(
        feature = "timed",
        gpu_timed(bytes = text.parse::<u64>()? + 1, flops = text.find('7')? as f64 / 2.0)
    )]
    fn parsed(stream: &CudaStream, text: &str) -> &'static str {
        let _ = (stream, text);
        "done"
    }

    #[cfg_attr(feature = "timed", gpu_timed(bytes = *n, flops = n.leading_zeros()))]
    fn reference<'a>(stream: &CudaStream, n: &'a mut u32) -> &'a mut u32 {
        let _ = stream;
        *n += 1;
        n
    }

    #[cfg_attr(feature = "timed", gpu_timed(bytes = shared.borrow().len()))]
    fn guarded(stream: &CudaStream, shared: &RefCell<Vec<u8>>) -> usize {
        let _ = stream;
        shared.borrow_mut().push(1);
        shared.borrow().len()
    }

    #[cfg_attr(feature = "timed", gpu_timed(bytes = 8 * n, flops = Some(n)?))]
    async fn awaited(stream: &CudaStream, n: u64) -> Result<u64, Refused> {
        stream.launch_builder("awaited").launch(1)?;
        std::future::ready(n).await;
        Ok(n)
    }

    pub fn run() {
        let stream = CudaStream::new(1);
        let mut net = Net { weights: vec![1.0, 2.0], layers: None };
        log!("{:?} {:?}", net.forward(&stream), net.grow(&stream).len());
        log!("{:?}", net.unwrap());
        log!("{}", consume(&stream, vec![Noisy("a"), Noisy("b")]));
        log!("{} {}", generic(&[1u8, 2]), generic::<(), 0>(&[]));
        log!("{} {}", parsed(&stream, "17"), parsed(&stream, "none"));
        log!("{}", reference(&stream, &mut 3));
        log!("{}", guarded(&stream, &RefCell::new(vec![])));
        log!("{:?}", block_on(awaited(&stream, 5)));
    }
}

pub mod barriers {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "sync"))]
    fn launches(stream: &CudaStream) -> Result<(), Refused> {
        stream.launch_builder("launches").launch(1)?;
        stream.launch_builder("launches").launch(13)
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "sync", cold = "dirty", bytes = n))]
    fn drops(stream: Arc<CudaStream>, n: u32) -> bool {
        let _noise = Noisy("local");
        Arc::try_unwrap(stream).is_ok() && n > 0
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "sync", warmup = 1, stream = &*stream))]
    fn borrows(stream: &mut CudaStream) -> &mut CudaStream {
        stream
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "sync"))]
    fn leaves(stream: &CudaStream, early: bool) -> Option<u8> {
        if early {
            return None;
        }
        stream.launch_builder("leaves").launch(1).ok()?;
        Some(1)
    }

    pub fn run() {
        let mut stream = CudaStream::new(1);
        log!("{:?} {}", launches(&stream), drops(CudaStream::shared(2), 1));
        log!("{:?} {:?}", leaves(&stream, true), leaves(&stream, false));
        for _ in 0..3 {
            log!("{:?}", borrows(&mut stream));
        }
    }
}

pub mod renamed_crate {
    use crate::support::*;

    pub mod reexport {
        #[cfg(feature = "timed")]
        pub use gpu_time as timing;
    }

    #[cfg_attr(feature = "timed", gpu_timed(crate = self::reexport::timing, clock = "host"))]
    fn relative() -> u8 {
        1
    }

    #[cfg_attr(
        feature = "timed",
        reexport::timing::gpu_timed(crate = crate::keys::renamed_crate::reexport::timing)
    )]
    fn absolute(stream: &CudaStream) -> Result<(), Refused> {
        stream.launch_builder("renamed").launch(1)
    }

    pub fn run() {
        log!("{} {:?}", relative(), absolute(&CudaStream::new(1)));
    }
}

pub mod everything_at_once {
    use crate::support::*;

    #[cfg_attr(
        feature = "timed",
        gpu_timed(
            stream = Some(&**stream),
            name = "everything",
            warmup = 1,
            cold = "dirty",
            sleep = "1.5ms",
            scope = "launches",
            launch = ["launch", "launch_cooperative"],
            clock = "events",
            bytes = 4 * Arc::strong_count(stream),
            flops = Some(1e9)?,
            crate = gpu_time,
        )
    )]
    fn all(stream: &Arc<CudaStream>) -> Result<(), Refused> {
        stream.launch_builder("everything").launch(1)?;
        stream.launch_builder("everything").launch_cooperative(2)
    }

    pub fn run() {
        let stream = CudaStream::shared(1);
        for _ in 0..3 {
            log!("{:?}", all(&stream));
        }
    }
}
