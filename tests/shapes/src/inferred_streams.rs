//! Streams that the attribute infers, and what a body may do with them.

/// The attribute infers the stream from the parameter's type.
pub mod inferred_from_a_parameter {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn owned(stream: CudaStream) -> Result<(), Refused> {
        stream.launch_builder("owned").launch(1)
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn borrowed(n: u32, stream: &CudaStream) -> Result<(), Refused> {
        stream.launch_builder("borrowed").launch(n)
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn mutable(stream: &mut CudaStream) -> Result<(), Refused> {
        stream.launch_builder("mutable").launch(1)?;
        *stream = CudaStream::new(8);
        stream.launch_builder("replaced").launch(2)
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn arc(stream: Arc<CudaStream>) -> Result<(), Refused> {
        stream.launch_builder("arc").launch(1)
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn borrowed_arc<'a>(stream: &'a std::sync::Arc<crate::cuda::CudaStream>) -> &'a CudaStream {
        let _ = stream.launch_builder("borrowed arc").launch(1);
        stream
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn twice(stream: &&CudaStream) -> Result<(), Refused> {
        stream.launch_builder("twice").launch(1)
    }

    pub fn run() {
        let mut stream = CudaStream::new(1);
        log!("{:?} {:?}", borrowed(3, &stream), twice(&&stream));
        log!("{:?} {:?}", mutable(&mut stream), owned(stream));
        let arc_stream = CudaStream::shared(2);
        log!("{:?} {:?}", borrowed_arc(&arc_stream), arc(Arc::clone(&arc_stream)));
    }
}

pub mod inferred_from_an_option {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn borrowed(stream: Option<&CudaStream>) -> Option<Refused> {
        stream?.launch_builder("borrowed").launch(13).err()
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn arc(stream: &Option<Arc<CudaStream>>) -> usize {
        if let Some(stream) = stream {
            let _ = stream.launch_builder("arc").launch(1);
            return Arc::strong_count(stream);
        }
        0
    }

    #[cfg_attr(feature = "timed", gpu_timed(scope = "body"))]
    fn taken(stream: Option<Arc<CudaStream>>) -> Option<CudaStream> {
        Arc::try_unwrap(stream?).ok()
    }

    pub fn run() {
        let stream = CudaStream::new(1);
        log!("{:?} {:?}", borrowed(None), borrowed(Some(&stream)));
        log!("{:?} {:?}", arc(&None), arc(&Some(Arc::new(stream))));
        log!("{:?} {:?}", taken(None), taken(Some(CudaStream::shared(2))));
    }
}

pub mod inferred_past_configured_out_parameters {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn one(
        #[cfg(any())] stream: &CudaStream,
        #[cfg(all())] stream: &Arc<CudaStream>,
    ) -> Result<(), Refused> {
        stream.launch_builder("kept").launch(1)
    }

    pub fn run() {
        log!("{:?}", one(&CudaStream::shared(1)));
    }
}

pub mod inferred_from_the_builder {
    use crate::support::*;

    struct Ctx {
        stream: Arc<CudaStream>,
    }

    struct Model {
        ctx: Ctx,
        pair: (u8, CudaStream),
    }

    impl Model {
        #[cfg_attr(feature = "timed", gpu_timed)]
        fn field(&self) -> Result<(), Refused> {
            self.ctx.stream.launch_builder("field").arg(&1).launch(1)
        }

        #[cfg_attr(feature = "timed", gpu_timed)]
        fn tuple_field(&mut self) -> Result<(), Refused> {
            self.pair.0 += 1;
            let grid = u32::from(self.pair.0);
            let mut builder = self.pair.1.launch_builder("tuple field");
            builder.arg(&grid).arg(&2);
            builder.launch(grid)
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn parameter(model: &Model) -> Result<(), Refused> {
        for i in 0..2 {
            model.ctx.stream.launch_builder("parameter").arg(&i).launch(1)?;
        }
        Ok(())
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn generic<S: std::ops::Deref<Target = CudaStream>>(gpu: S) -> Result<(), Refused> {
        gpu.launch_builder("generic").launch(1)
    }

    pub fn run() {
        let ctx = Ctx { stream: CudaStream::shared(1) };
        let mut model = Model { ctx, pair: (4, CudaStream::new(2)) };
        log!("{:?} {:?}", model.field(), model.tuple_field());
        log!("{:?} {:?}", parameter(&model), generic(Arc::clone(&model.ctx.stream)));
        log!("{:?}", generic(&model.pair.1));
    }
}

pub mod stream_moved_by_the_body {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(scope = "body"))]
    fn dropped(stream: Arc<CudaStream>) -> u8 {
        drop(stream);
        1
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream))]
    fn unwrapped(stream: Arc<CudaStream>) -> Option<CudaStream> {
        log!("strong {}", Arc::strong_count(&stream));
        Arc::try_unwrap(stream).ok()
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn moved_between_launches(stream: Arc<CudaStream>) -> Result<(), Refused> {
        stream.launch_builder("first").launch(1)?;
        let stream = [stream];
        stream[0].launch_builder("second").launch(2)
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn into_thread(stream: Arc<CudaStream>) -> Result<(), Refused> {
        std::thread::spawn(move || stream.launch_builder("elsewhere").launch(3)).join().unwrap()
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = *stream, scope = "body"))]
    fn exclusive(stream: &mut Arc<CudaStream>) -> &mut Arc<CudaStream> {
        *stream = CudaStream::shared(5);
        stream
    }

    pub fn run() {
        log!("{} {:?}", dropped(CudaStream::shared(1)), unwrapped(CudaStream::shared(2)));
        log!("{:?}", moved_between_launches(CudaStream::shared(3)));
        log!("{:?}", into_thread(CudaStream::shared(4)));
        log!("{:?}", exclusive(&mut CudaStream::shared(4)));
    }
}

pub mod stream_in_patterns {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(stream = s))]
    fn tuple((s, grid): (&CudaStream, u32)) -> Result<(), Refused> {
        s.launch_builder("tuple").launch(grid)
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn mutable(mut stream: Arc<CudaStream>) -> Arc<CudaStream> {
        let _ = stream.launch_builder("mutable").launch(1);
        stream = CudaStream::shared(2);
        stream
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn by_ref(ref stream: Arc<CudaStream>) -> Result<(), Refused> {
        stream.launch_builder("by ref").launch(1)
    }

    pub fn run() {
        log!("{:?}", tuple((&CudaStream::new(1), 2)));
        log!("{:?} {:?}", mutable(CudaStream::shared(1)), by_ref(CudaStream::shared(3)));
    }
}
