//! Every kind of value that `stream = …` takes.

pub mod given_paths {
    use crate::support::*;

    struct Model {
        streams: Vec<CudaStream>,
        shared: Rc<CudaStream>,
        boxed: Box<CudaStream>,
        pair: (u8, Arc<CudaStream>),
    }

    impl Model {
        #[cfg_attr(feature = "timed", gpu_timed(stream = self.streams[i]))]
        fn indexed(&self, i: usize) -> usize {
            self.streams.len() + i
        }

        #[cfg_attr(feature = "timed", gpu_timed(stream = &self.streams[0]))]
        fn borrowed(&mut self) -> Option<CudaStream> {
            self.streams.pop()
        }

        #[cfg_attr(feature = "timed", gpu_timed(stream = &mut self.streams[0]))]
        fn mutable(&mut self) -> &mut Vec<CudaStream> {
            &mut self.streams
        }

        #[cfg_attr(feature = "timed", gpu_timed(stream = self.shared))]
        fn rc(&self) -> usize {
            Rc::strong_count(&self.shared)
        }

        #[cfg_attr(feature = "timed", gpu_timed(stream = self.boxed))]
        fn unboxed(self) -> CudaStream {
            *self.boxed
        }

        #[cfg_attr(feature = "timed", gpu_timed(stream = self.pair.1))]
        fn tuple(&self) -> u8 {
            self.pair.0
        }

        #[cfg_attr(feature = "timed", gpu_timed(stream = self.stream()))]
        fn by_method(&self) -> &CudaStream {
            self.stream()
        }

        fn stream(&self) -> &CudaStream {
            &self.shared
        }
    }

    pub fn run() {
        let mut model = Model {
            streams: vec![CudaStream::new(1), CudaStream::new(2)],
            shared: Rc::new(CudaStream::new(3)),
            boxed: Box::new(CudaStream::new(4)),
            pair: (5, CudaStream::shared(5)),
        };
        log!("{} {:?} {}", model.indexed(1), model.borrowed(), model.mutable().len());
        log!("{} {} {:?}", model.rc(), model.tuple(), model.by_method());
        log!("{:?}", model.unboxed());
    }
}

pub mod given_owned_values {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(stream = CudaStream::new(7)))]
    fn temporary() -> u8 {
        1
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = Arc::clone(&stream)))]
    fn clone(stream: Arc<CudaStream>) -> bool {
        Arc::try_unwrap(stream).is_ok()
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = Box::new(CudaStream::new(9))))]
    fn boxed() -> u8 {
        2
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = Some(CudaStream::shared(n))))]
    fn option(n: usize) -> usize {
        n
    }

    pub fn run() {
        log!("{} {} {}", temporary(), clone(CudaStream::shared(1)), boxed());
        log!("{}", option(3));
    }
}

pub mod given_options_and_results {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(stream = device))]
    fn option(device: Option<&Arc<CudaStream>>) -> bool {
        device.is_some()
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = device.as_ref()))]
    fn result(device: Result<CudaStream, String>) -> Result<CudaStream, String> {
        device
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = device.as_ref().ok()))]
    fn ok(device: &Result<Rc<CudaStream>, Noisy>) -> bool {
        device.is_ok()
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = None::<&CudaStream>))]
    fn none() -> u8 {
        1
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = devices.get(i)))]
    fn get(devices: &[CudaStream], i: usize) -> bool {
        i < devices.len()
    }

    pub fn run() {
        let stream = CudaStream::shared(1);
        log!("{} {}", option(None), option(Some(&stream)));
        log!("{:?} {:?}", result(Ok(CudaStream::new(2))), result(Err("none".into())));
        log!("{} {}", ok(&Ok(Rc::new(CudaStream::new(3)))), ok(&Err(Noisy("error"))));
        log!("{} {}", none(), get(&[CudaStream::new(4)], 1));
    }
}

pub mod given_with_question_mark {
    use crate::support::*;

    fn find(n: u8, stream: &CudaStream) -> Result<&CudaStream, std::num::TryFromIntError> {
        <std::num::NonZeroU8 as std::convert::TryFrom<u8>>::try_from(n).map(|_| stream)
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = find(n, other)?))]
    fn result(n: u8, other: &CudaStream) -> bool {
        find(n, other).is_ok()
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = find(n, other)?))]
    fn in_a_result(n: u8, other: &CudaStream) -> Result<(), Refused> {
        other.launch_builder("k").launch(n.into())
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = Some(find(n, other)?)))]
    fn within(n: u8, other: &CudaStream) -> u8 {
        let _ = other;
        n
    }

    pub fn run() {
        let stream = CudaStream::new(1);
        log!("{} {}", result(0, &stream), result(1, &stream));
        log!("{:?} {:?}", in_a_result(0, &stream), in_a_result(13, &stream));
        log!("{} {}", within(0, &stream), within(1, &stream));
    }
}

pub mod given_guards {
    use crate::support::*;
    use std::sync::RwLock;

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream.lock().unwrap()))]
    fn mutex(stream: &Mutex<CudaStream>) -> bool {
        stream.try_lock().is_ok()
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream.borrow()))]
    fn cell(stream: &RefCell<CudaStream>) -> bool {
        stream.try_borrow_mut().is_ok()
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream.lock().unwrap()))]
    fn mutex_of_arc(stream: &Mutex<Arc<CudaStream>>) -> usize {
        Arc::strong_count(&stream.lock().unwrap())
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream.read().ok()))]
    fn read(stream: &RwLock<CudaStream>) -> bool {
        stream.try_write().is_ok()
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream.lock().unwrap().as_ref()))]
    fn mutex_of_option(stream: &Mutex<Option<CudaStream>>) -> bool {
        stream.try_lock().is_ok()
    }

    pub fn run() {
        log!("{}", mutex(&Mutex::new(CudaStream::new(1))));
        log!("{}", cell(&RefCell::new(CudaStream::new(2))));
        log!("{}", mutex_of_arc(&Mutex::new(CudaStream::shared(3))));
        log!("{}", read(&RwLock::new(CudaStream::new(4))));
        log!("{}", mutex_of_option(&Mutex::new(Some(CudaStream::new(5)))));
    }
}

pub mod given_constants {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(stream = gpu_time::NULL_STREAM))]
    fn null() -> u8 {
        1
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = Some(&gpu_time::LEGACY_STREAM)))]
    fn legacy() -> u8 {
        2
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = gpu_time::PER_THREAD_STREAM, scope = "body"))]
    async fn per_thread() -> u8 {
        yield_now().await;
        3
    }

    pub fn run() {
        log_auto_traits!(per_thread());
        log!("{} {} {}", null(), legacy(), block_on(per_thread()));
    }
}

pub mod given_generic_values {
    use crate::support::*;
    use std::borrow::Borrow;
    use std::ops::Deref;

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream))]
    fn deref<S: Deref<Target = CudaStream>>(stream: S) -> S {
        stream
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = *stream))]
    fn dereferenced(stream: impl Deref<Target = CudaStream>) -> usize {
        std::mem::size_of_val(&stream)
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream.borrow()))]
    fn borrow<S: Borrow<CudaStream>>(stream: S) -> S {
        stream
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream.as_ref()))]
    fn as_ref<S: AsRef<CudaStream> + ?Sized>(stream: &S) -> usize {
        std::mem::size_of_val(stream)
    }

    trait Device {
        type Stream: AsRef<CudaStream>;
        fn stream(&self) -> Self::Stream;

        #[cfg_attr(feature = "timed", gpu_timed(stream = self.stream().as_ref()))]
        fn work(&self) -> bool {
            self.stream().as_ref().cu_stream().is_null()
        }
    }

    impl Device for Arc<CudaStream> {
        type Stream = Self;
        fn stream(&self) -> Self {
            Arc::clone(self)
        }
    }

    pub fn run() {
        let stream = CudaStream::shared(1);
        log!("{:?} {}", deref(&*stream), dereferenced(Arc::clone(&stream)));
        log!("{:?} {}", borrow(Arc::clone(&stream)), as_ref(&stream));
        log!("{} {}", stream.work(), Arc::strong_count(&stream));
    }
}

pub mod given_blocks {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(stream = { let (_, second) = pair; second }))]
    fn block(pair: (u8, &CudaStream)) -> u8 {
        pair.0
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = if first { a } else { b }))]
    fn choice(first: bool, a: &CudaStream, b: &CudaStream) -> bool {
        std::ptr::eq(a, b) || first
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = match device {
        Device::Cpu => None,
        Device::Gpu { stream, .. } => Some(stream),
    }))]
    fn matched(device: &Device) -> bool {
        let Device::Gpu { id, stream } = device else { return false };
        *id > 0 && !stream.cu_stream().is_null()
    }

    enum Device {
        Cpu,
        Gpu { id: u8, stream: CudaStream },
    }

    #[allow(clippy::redundant_closure_call)]
    #[cfg_attr(feature = "timed", gpu_timed(stream = (|| a)()))]
    fn closure(a: &CudaStream) -> &CudaStream {
        a
    }

    pub fn run() {
        let stream = CudaStream::new(1);
        log!("{} {}", block((1, &stream)), choice(true, &stream, &stream));
        log!("{:?}", closure(&stream));
        log!("{} {}", matched(&Device::Cpu), matched(&Device::Gpu { id: 1, stream }));
    }
}
