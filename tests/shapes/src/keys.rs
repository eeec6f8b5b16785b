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

    #[cfg_attr(feature = "timed", gpu_timed(warmup = 3))]
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

    #[cfg_attr(feature = "timed", gpu_timed(scope = "launches", clock = "host"))]
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
