//! Every kind of stream in the real cudarc. All are compiled; those that need no driver are run.
#![deny(warnings)]
#![allow(dead_code)]

use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::{Arc, Mutex, RwLock};

use cudarc::driver::sys::CUstream;
use cudarc::driver::{CudaContext, CudaStream, DriverError};
use gpu_time::gpu_timed;

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
    fn raw(stream: cudarc::driver::sys::CUstream) -> bool {
        stream.is_null()
    }

    pub struct CudaStream2;
    pub struct Next(Option<Arc<CudaStream>>);

    pub fn run() {
        assert!(!optional(None));
        assert!(raw(std::ptr::null_mut()));
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

        #[gpu_timed(stream = self.optional().map(|stream| stream.cu_stream()))]
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

    #[gpu_timed(stream = { fn none() -> Option<CUstream> { None } none()? })]
    fn on_the_cpu() -> u8 {
        4
    }

    #[gpu_timed(stream = None::<CUstream>)]
    async fn asynchronous() -> u8 {
        5
    }

    pub fn run() {
        assert_eq!(result_parameter(Err("no device")), Some("no device"));
        assert_eq!(on_the_cpu(), 4);
        drop(asynchronous());
    }
}

fn main() {
    inferred::run();
    given::run();
}
