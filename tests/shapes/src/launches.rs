//! Launches with every name and result type.

pub mod results_of_every_type {
    use crate::support::*;

    struct Kernel<T>(T);

    impl<T> Kernel<T> {
        fn launch(self) -> T {
            self.0
        }
        fn launch_cooperative(&mut self) -> &mut T {
            &mut self.0
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream))]
    fn all(stream: &CudaStream, noisy: Noisy) -> Box<dyn Debug> {
        Kernel(()).launch();
        let boolean = Kernel(true).launch();
        let option = Kernel(Some("option")).launch();
        let nested = Kernel(Some(Ok::<u8, u8>(1))).launch();
        let owned = String::from("reference");
        let reference: &str = Kernel(&owned).launch();
        let coerced: &dyn Debug = Kernel(&1u8).launch();
        let slice: &[u8] = Kernel(&[1, 2, 3]).launch();
        let boxed: Box<dyn Fn(u8) -> u8> = Kernel(Box::new(|n| n + 1)).launch();
        let (a, b) = Kernel((1, 'b')).launch();
        let mut kernel = Kernel(vec![1]);
        kernel.launch_cooperative().push(2);
        *kernel.launch_cooperative() = kernel.launch_cooperative().drain(..).rev().collect();
        let inferred = Kernel("17").launch().parse();
        let number: u16 = inferred.unwrap_or_default();
        log!("{} {:?} {:?} {} {:?}", boolean, option, nested, reference.len(), coerced);
        log!("{:?} {} {} {} {:?} {}", slice, boxed(1), a, b, kernel.0, number);
        log!("{:?}", stream);
        Kernel(Box::new(noisy)).launch()
    }

    pub fn run() {
        log!("{:?}", all(&CudaStream::new(1), Noisy("noisy")));
    }
}

pub mod launches_that_diverge {
    use crate::support::*;

    fn launch(n: u8) -> ! {
        panic!("launch {}", n)
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream, scope = "body"))]
    fn never(stream: &CudaStream) -> ! {
        log!("{:?}", stream);
        launch(1)
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream, scope = "body"))]
    fn sometimes(stream: &CudaStream, n: u8) -> u8 {
        if n == 0 {
            log!("{:?}", stream);
            launch(n);
        }
        n
    }

    pub fn run() {
        let stream = CudaStream::new(1);
        attempt(|| {
            if true {
                never(&stream)
            }
        });
        attempt(|| sometimes(&stream, 0));
        attempt(|| sometimes(&stream, 1));
    }
}

pub mod launches_by_path {
    use crate::support::*;

    mod driver {
        use crate::support::*;

        #[allow(non_snake_case)]
        pub fn cuLaunchKernel(stream: CUstream, grid: u32) -> u32 {
            log!("{} {}", stream.is_null(), grid);
            grid
        }

        pub fn launch_kernel<T: Debug>(stream: &CudaStream, value: T) -> Result<T, Refused> {
            stream.launch_builder("by path").launch(1).map(|()| value)
        }
    }

    struct Model(CudaStream);

    impl Model {
        fn launch(stream: &CudaStream, grid: u32) -> Result<(), Refused> {
            stream.launch_builder("associated").launch(grid)
        }

        #[cfg_attr(feature = "timed", gpu_timed(stream = self.0))]
        fn all(&self) -> Result<String, Refused> {
            use driver::launch_kernel;
            Self::launch(&self.0, 1)?;
            <Self>::launch(&self.0, 2)?;
            Builder::launch(&mut self.0.launch_builder("qualified"), 3)?;
            <Builder<'_>>::launch(&mut self.0.launch_builder("qualified"), 4)?;
            let text = launch_kernel::<&str>(&self.0, "turbofish")?;
            Ok(format!("{}{:?}", text, self::driver::launch_kernel(&self.0, [1])?))
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn raw(stream: &CudaStream, raw: CUstream) -> u32 {
        log!("{:?}", stream);
        driver::cuLaunchKernel(raw, 1) + self::driver::cuLaunchKernel(raw, 2)
    }

    pub fn run() {
        let model = Model(CudaStream::new(1));
        log!("{:?} {}", model.all(), raw(&model.0, model.0.cu_stream()));
    }
}

pub mod launches_by_other_names {
    use crate::support::*;

    struct Blas<'a>(&'a CudaStream);

    impl Blas<'_> {
        fn gemm<const N: u32>(&self) -> Result<(), Refused> {
            self.0.launch_builder("gemm").launch(N)
        }
    }

    fn conv(stream: &CudaStream) -> Result<(), Refused> {
        stream.launch_builder("conv").launch(1)
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = blas.0, launch = "gemm"))]
    fn one(blas: &Blas<'_>) -> Result<(), Refused> {
        blas.gemm::<4>()?;
        blas.gemm::<13>()
    }

    #[cfg_attr(feature = "timed", gpu_timed(launch = ["gemm", "conv"]))]
    fn two(stream: &CudaStream) -> Result<(), Refused> {
        Blas(stream).gemm::<1>()?;
        conv(stream)?;
        stream.launch_builder("built in").launch(1)
    }

    pub fn run() {
        let stream = CudaStream::new(1);
        log!("{:?} {:?}", one(&Blas(&stream)), two(&stream));
    }
}

pub mod generic_launches {
    use crate::support::*;

    trait Kernel<const N: usize> {
        type Error;
        fn launch(&self, args: [u32; N]) -> Result<(), Self::Error>;
    }

    struct Named<'a>(&'a CudaStream, &'a str);

    impl<const N: usize> Kernel<N> for Named<'_> {
        type Error = Refused;

        #[cfg_attr(feature = "timed", gpu_timed(stream = self.0))]
        fn launch(&self, args: [u32; N]) -> Result<(), Refused> {
            let mut builder = self.0.launch_builder(self.1);
            for arg in args.iter() {
                builder.arg(arg);
            }
            builder.launch(N as u32)
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream))]
    fn both<const N: usize, A: Kernel<N>, B>(
        stream: &CudaStream,
        a: A,
        b: &B,
    ) -> Result<(), B::Error>
    where
        B: Kernel<1, Error = A::Error> + ?Sized,
    {
        a.launch([u32::from(stream.cu_stream().is_null()); N])?;
        Ok(b.launch([7])?)
    }

    pub fn run() {
        let stream = CudaStream::new(1);
        let b: &dyn Kernel<1, Error = Refused> = &Named(&stream, "b");
        log!("{:?}", both::<13, _, _>(&stream, Named(&stream, "a"), b));
        log!("{:?}", both::<3, _, _>(&stream, Named(&stream, "a"), b));
    }
}

pub mod launches_with_track_caller {
    use crate::support::*;

    #[track_caller]
    fn launch(n: u8) -> u8 {
        log!("{}", Location::caller());
        assert!(n < 3, "too many");
        n
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream))]
    fn all(stream: &CudaStream) -> u8 {
        launch(1);
        log!("{:?}", stream);
        let pair = (launch(1), launch(2));
        launch(pair.0 + pair.1)
    }

    pub fn run() {
        attempt(|| all(&CudaStream::new(1)));
    }
}

pub mod launches_on_many_threads {
    use crate::support::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    struct Counter(AtomicU32);

    impl Counter {
        fn launch(&self) -> u32 {
            self.0.fetch_add(1, Ordering::Relaxed)
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn work(stream: &CudaStream, counter: &Counter) -> bool {
        counter.launch() < u32::MAX && !stream.cu_stream().is_null()
    }

    pub fn run() {
        let counter = Counter(AtomicU32::new(0));
        std::thread::scope(|scope| {
            for n in 1..5 {
                let counter = &counter;
                scope.spawn(move || {
                    let stream = CudaStream::new(n);
                    assert!((0..100).all(|_| work(&stream, counter)));
                });
            }
        });
        log!("{:?}", counter.0);
    }
}
