//! Every kind of stream in the real cudarc. All are compiled; those that need no driver are run.
#![deny(warnings)]
#![allow(unsafe_code)]
#![allow(dead_code)]

use std::cell::RefCell;
use std::ffi::c_void;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::{Arc, Mutex, RwLock};

use cudarc::driver::sys::CUstream;
use cudarc::driver::{CudaContext, CudaStream, DriverError};
use gpu_time::{GpuStream, RawStream, gpu_timed, raw_stream};

mod inferred {
    use super::*;

    #[gpu_timed]
    fn owned(stream: CudaStream) {
        drop(stream);
    }

    #[gpu_timed]
    fn borrowed(stream: &CudaStream, other: &mut CudaStream2) {
        let _ = (stream, other);
    }

    #[gpu_timed]
    fn mutably(stream: &mut CudaStream) {
        let _ = stream;
    }

    #[gpu_timed]
    fn counted(mut stream: Arc<CudaStream>, next: &Next) -> Result<CudaStream, Arc<CudaStream>> {
        if let Some(next) = &next.0 {
            stream = next.clone();
        }
        Arc::try_unwrap(stream)
    }

    #[gpu_timed]
    fn counted_borrowed<'a>(stream: &'a Arc<CudaStream>) -> &'a CudaContext {
        stream.context()
    }

    #[gpu_timed]
    fn optional(stream: Option<&Arc<cudarc::driver::CudaStream>>) -> bool {
        stream.is_some()
    }

    #[gpu_timed]
    fn beside_a_raw_handle(stream: Option<&CudaStream>, raw: CUstream) -> bool {
        stream.is_none() && raw.is_null()
    }

    pub struct CudaStream2;
    pub struct Next(Option<Arc<CudaStream>>);

    pub fn run() {
        assert!(!optional(None));
        assert!(beside_a_raw_handle(None, std::ptr::null_mut()));
    }
}

mod from_builders {
    use super::*;
    use cudarc::driver::{CudaFunction, LaunchConfig, PushKernelArg};

    struct Net {
        stream: Arc<CudaStream>,
        kernel: CudaFunction,
    }

    impl Net {
        #[gpu_timed(warmup = 10, cold)]
        fn forward(&mut self, n: u32) -> Result<(), DriverError> {
            let mut builder = self.stream.launch_builder(&self.kernel);
            builder.arg(&n);
            unsafe { builder.launch(LaunchConfig::for_num_elems(n)) }?;
            unsafe {
                (&self.stream)
                    .launch_builder(&self.kernel)
                    .arg(&n)
                    .launch(LaunchConfig::for_num_elems(n))
                    .map(|_| ())
            }
        }

        #[gpu_timed]
        fn in_a_field_of_a_parameter(net: &Net) -> Result<(), DriverError> {
            match unsafe {
                net.stream.launch_builder(&net.kernel).launch(LaunchConfig::for_num_elems(1))
            } {
                Ok(None) => Ok(()),
                Ok(Some((start, end))) => start.elapsed_ms(&end).map(drop),
                Err(error) => Err(error),
            }
        }
    }
}

mod given {
    use super::*;

    struct Device {
        context: Arc<CudaContext>,
        stream: Arc<CudaStream>,
        locked: Mutex<Arc<CudaStream>>,
        shared: RwLock<Option<CudaStream>>,
        cell: RefCell<CudaStream>,
    }

    impl Device {
        #[gpu_timed(stream = self.stream)]
        fn field(&self) {}

        #[gpu_timed(stream = &self.stream)]
        fn reference(&mut self) -> &mut Self {
            self
        }

        #[gpu_timed(stream = self.stream.clone())]
        fn clone_of_it(self: Arc<Self>) {}

        #[gpu_timed(stream = self.context.default_stream())]
        fn made_to_name_it(&self) {}

        #[gpu_timed(stream = self.context.per_thread_stream())]
        fn per_thread(self: Box<Self>) {}

        #[gpu_timed(stream = self.stream.fork())]
        fn result(&self) {}

        #[gpu_timed(stream = self.locked.lock().unwrap())]
        fn guard(&self) {}

        #[gpu_timed(stream = self.shared.read().unwrap())]
        fn option_behind_a_guard(&self) {}

        #[gpu_timed(stream = self.cell.borrow())]
        fn cell(&self) {}

        #[gpu_timed(stream = self.optional()?.fork()?)]
        fn question_marks(&self) -> u8 {
            3
        }

        // SAFETY: the device keeps the stream alive.
        #[gpu_timed(stream = self.optional().map(|s| unsafe { raw_stream(s.cu_stream()) }))]
        fn raw(&self) -> Option<u8> {
            self.optional()?;
            None
        }

        fn optional(&self) -> Option<&Arc<CudaStream>> {
            Some(&self.stream)
        }
    }

    #[gpu_timed(stream = stream)]
    fn rc(stream: Rc<CudaStream>) {
        drop(stream);
    }

    #[gpu_timed(stream = stream)]
    fn boxed(stream: Box<CudaStream>) -> CudaStream {
        *stream
    }

    #[gpu_timed(stream = stream)]
    fn through_deref<S: Deref<Target = CudaStream>>(stream: S) {
        drop(stream);
    }

    #[gpu_timed(stream = stream.as_ref())]
    fn through_as_ref(stream: impl AsRef<CudaStream>) {
        drop(stream);
    }

    #[gpu_timed(stream = stream)]
    fn result_parameter<E: std::fmt::Debug>(stream: Result<&CudaStream, E>) -> Option<E> {
        stream.err()
    }

    #[gpu_timed(stream = { fn none() -> Option<RawStream> { None } none()? })]
    fn on_the_cpu() -> u8 {
        4
    }

    #[gpu_timed(stream = None::<RawStream>)]
    async fn asynchronous() -> u8 {
        5
    }

    #[gpu_timed(stream = gpu_time::PER_THREAD_STREAM)]
    fn constant() -> u8 {
        6
    }

    // SAFETY: the caller keeps the stream alive.
    #[gpu_timed(stream = unsafe { raw_stream(stream) })]
    unsafe fn in_an_unsafe_function(stream: CUstream) -> bool {
        stream.is_null()
    }

    pub fn run() {
        assert_eq!(result_parameter(Err("no device")), Some("no device"));
        assert_eq!(on_the_cpu(), 4);
        drop(asynchronous());
        assert_eq!(constant(), 6);
        // SAFETY: the NULL stream is never destroyed.
        assert!(unsafe { in_an_unsafe_function(std::ptr::null_mut()) });
    }
}

/// User-defined stream types.
mod implemented {
    use super::*;

    struct Queue(CUstream);

    // SAFETY: a `Queue` here has the NULL stream, which is never destroyed.
    unsafe impl GpuStream for Queue {
        fn stream_handle(&self) -> *mut c_void {
            self.0.cast()
        }
    }

    #[gpu_timed(stream = queue)]
    fn owned(queue: Queue) -> Queue {
        queue
    }

    #[gpu_timed(stream = queue.borrow().as_ref())]
    fn behind_guards(queue: &RefCell<Option<Rc<Queue>>>) -> bool {
        queue.borrow().is_some()
    }

    #[gpu_timed(stream = queue.lock().unwrap(), scope = "body")]
    fn locked(queue: &Mutex<Box<dyn GpuStream>>) -> bool {
        queue.try_lock().is_ok()
    }

    #[gpu_timed(stream = queue)]
    fn generic(queue: &(impl GpuStream + ?Sized)) -> bool {
        queue.stream_handle().is_null()
    }

    pub fn run() {
        let queue = owned(Queue(std::ptr::null_mut()));
        assert!(generic(&queue) && generic(&gpu_time::NULL_STREAM));
        assert!(!behind_guards(&RefCell::new(None)));
        assert!(behind_guards(&RefCell::new(Some(Rc::new(Queue(std::ptr::null_mut()))))));
        assert!(locked(&Mutex::new(Box::new(queue))));
    }
}

#[test]
fn runs() {
    inferred::run();
    given::run();
    implemented::run();
}
