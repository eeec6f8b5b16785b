//! Unsafe and foreign functions, and unsafe launches.

pub mod unsafe_functions {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    unsafe fn read(pointer: *const u8, n: usize) -> u8 {
        let pointer = unsafe { pointer.add(n) };
        unsafe { *pointer }
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    #[allow(unsafe_op_in_unsafe_fn)]
    unsafe fn implicit(pointer: *mut u8) -> *mut u8 {
        *pointer += 1;
        pointer
    }

    pub fn run() {
        let mut array = [1, 2];
        let pointer: unsafe fn(*const u8, usize) -> u8 = read;
        log!("{}", unsafe { pointer(array.as_ptr(), 1) });
        log!("{}", unsafe { *implicit(array.as_mut_ptr()) });
    }
}

pub mod unsafe_methods {
    use crate::support::*;

    struct Cells([Cell<u8>; 2]);

    impl Cells {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        pub(crate) unsafe fn get(&self, i: usize) -> u8 {
            unsafe { self.0.get_unchecked(i) }.get()
        }
    }

    unsafe trait Zeroed: Sized {
        unsafe fn zeroed() -> Self;

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        unsafe fn zero(&mut self) {
            *self = unsafe { Self::zeroed() };
        }
    }

    unsafe impl Zeroed for u16 {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        unsafe fn zeroed() -> Self {
            unsafe { std::mem::zeroed() }
        }
    }

    pub fn run() {
        let mut n = 3u16;
        unsafe { n.zero() };
        log!("{} {}", unsafe { Cells([Cell::new(1), Cell::new(2)]).get(1) }, n);
    }
}

pub mod foreign_abis {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    extern "C" fn add(a: i32, b: i32) -> i32 {
        a + b
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    pub(crate) unsafe extern "C" fn read(pointer: *const i32) -> i32 {
        unsafe { *pointer }
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    extern "system" fn system(n: u8) -> u8 {
        n
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    #[allow(missing_abi)]
    extern "C" fn no_abi() -> u8 {
        1
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    extern "C-unwind" fn unwinds(n: u8) -> u8 {
        let _noisy = Noisy("local");
        if n == 0 {
            panic!("across");
        }
        n
    }

    pub fn run() {
        let table: [extern "C" fn(i32, i32) -> i32; 1] = [add];
        log!("{} {}", table[0](1, 2), unsafe { read(&5) });
        log!("{} {}", system(1), no_abi());
        attempt(|| unwinds(1));
        attempt(|| unwinds(0));
    }
}

pub mod exported_symbols {
    use crate::support::*;

    #[unsafe(no_mangle)]
    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    pub extern "C" fn shapes_exported(n: u32) -> u32 {
        n + 1
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    #[unsafe(export_name = "shapes_renamed")]
    pub extern "C" fn renamed(n: u32) -> u32 {
        n + 2
    }

    mod imported {
        unsafe extern "C" {
            pub safe fn shapes_exported(n: u32) -> u32;
            pub fn shapes_renamed(n: u32) -> u32;
        }
    }

    pub fn run() {
        log!("{} {}", imported::shapes_exported(1), unsafe { imported::shapes_renamed(1) });
        log!("{}", renamed as *const () != shapes_exported as *const ());
    }
}

pub mod called_back_from_c {
    use crate::support::*;
    use std::ffi::c_void;

    unsafe extern "C" {
        fn qsort(
            base: *mut c_void,
            count: usize,
            size: usize,
            compare: extern "C" fn(*const c_void, *const c_void) -> i32,
        );
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    extern "C" fn compare(a: *const c_void, b: *const c_void) -> i32 {
        let (a, b) = unsafe { (*a.cast::<u8>(), *b.cast::<u8>()) };
        i32::from(a) - i32::from(b)
    }

    pub fn run() {
        let mut array = [3u8, 1, 2];
        unsafe { qsort(array.as_mut_ptr().cast(), 3, 1, compare) };
        log!("{:?}", array);
    }
}

pub mod statics_and_unions {
    use crate::support::*;

    static mut COUNT: u32 = 0;

    union Bits {
        float: f32,
        bits: u32,
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn count() -> u32 {
        unsafe {
            COUNT += 1;
            COUNT
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn bits(float: f32) -> u32 {
        unsafe { Bits { float }.bits }
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    unsafe fn matched(bits: Bits) -> bool {
        match bits {
            bits if unsafe { bits.float } == 1.0 => true,
            Bits { bits: _ } => unsafe { bits.bits == 0 },
        }
    }

    pub fn run() {
        log!("{} {} {}", count(), count(), bits(1.0));
        log!("{}", unsafe { matched(Bits { bits: 0 }) });
    }
}

pub mod lifetimes_by_hand {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    unsafe fn extend<'a, 'b, T: ?Sized>(value: &'a mut T) -> &'b mut T {
        unsafe { &mut *(value as *mut T) }
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    unsafe fn take(slot: *mut Noisy) -> Noisy {
        unsafe { slot.read() }
    }

    pub fn run() {
        let mut n = 1;
        *unsafe { extend(&mut n) } += 1;
        let mut noisy = std::mem::ManuallyDrop::new(Noisy("taken"));
        drop(unsafe { take(&mut *noisy) });
        log!("{}", n);
    }
}

pub mod unsafe_async {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async unsafe fn read(pointer: &*const u8) -> u8 {
        yield_now().await;
        unsafe { **pointer }
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async unsafe fn awaited(pointer: *const u8) -> u8 {
        unsafe { read(&pointer).await }
    }

    pub fn run() {
        let future = unsafe { awaited(&7) };
        log_auto_traits!(future);
        log!("{}", block_on(future));
    }
}

pub mod target_features {
    use crate::support::*;

    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "sse2"))]
    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn safe(n: u32) -> u32 {
        n.count_ones()
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "sse2"))]
    #[inline]
    unsafe fn calls(n: u32) -> u32 {
        safe(n) + 1
    }

    pub fn run() {
        log!("{}", unsafe { calls(7) });
    }
}

pub mod unsafe_launches {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn all(stream: &Arc<CudaStream>) -> Result<(), Refused> {
        unsafe { stream.launch_builder("question mark outside").launch(1) }?;
        unsafe { stream.launch_builder("question mark inside").launch(2)? };
        unsafe {
            stream.launch_builder("statement").arg(&1).launch(3)?;
        }
        let mut builder = stream.launch_builder("held");
        builder.arg(&2);
        let result = unsafe { builder.launch(13) };
        if let Err(error) = unsafe { builder.launch(13) } {
            log!("{}", error);
        }
        match unsafe { builder.launch(4) } {
            Ok(()) => {}
            Err(error) => return Err(error),
        }
        result.or_else(|_| Ok(()))?;
        unsafe { stream.launch_builder("tail").launch(13) }
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    unsafe fn in_unsafe_fn(stream: &CudaStream) -> Result<(), Refused> {
        unsafe {
            let mut builder = stream.launch_builder("block");
            builder.launch(1)?;
            builder.launch(2)
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    #[allow(unsafe_op_in_unsafe_fn)]
    unsafe fn without_a_block(stream: &CudaStream) -> Result<(), Refused> {
        stream.launch_builder("bare").launch(1)?;
        stream.launch_builder("bare").launch(2)
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn hidden(stream: &CudaStream) -> Result<(), Refused> {
        (1..3).try_for_each(|grid| unsafe { stream.launch_builder("hidden").launch(grid) })
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    async fn later(stream: Arc<CudaStream>) -> Result<(), Refused> {
        unsafe { stream.launch_builder("before").launch(1) }?;
        yield_now().await;
        unsafe { stream.launch_builder("after").launch(2) }
    }

    pub fn run() {
        let stream = CudaStream::shared(1);
        log!("{:?} {:?}", all(&stream), unsafe { in_unsafe_fn(&stream) });
        log!("{:?} {:?}", unsafe { without_a_block(&stream) }, hidden(&stream));
        log!("{:?}", block_on(later(stream)));
    }
}

pub mod raw_launches {
    use crate::support::*;

    #[allow(non_snake_case)]
    unsafe extern "C" fn cuLaunchKernel(stream: CUstream, grid: u32, args: *mut u32) -> u32 {
        unsafe { *args += grid + u32::from(stream.is_null()) };
        if grid == 13 { 1 } else { 0 }
    }

    macro_rules! launch_kernel {
        ($stream:expr, $grid:expr, $args:expr) => {
            unsafe { cuLaunchKernel($stream, $grid, $args) }
        };
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = unsafe { gpu_time::raw_stream(stream) }))]
    unsafe fn by_function(stream: CUstream, args: &mut u32) -> Result<(), u32> {
        match unsafe { cuLaunchKernel(stream, 1, args) } {
            0 => Ok(()),
            code => Err(code),
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = unsafe { gpu_time::raw_stream(stream) }))]
    fn by_macro(stream: CUstream, mut args: u32) -> (u32, u32) {
        launch_kernel!(stream, 1, &mut args);
        let code = launch_kernel!(stream, 13, &mut args);
        (code, args)
    }

    pub fn run() {
        let stream = CudaStream::new(1);
        let mut args = 0;
        log!("{:?} {}", unsafe { by_function(stream.cu_stream(), &mut args) }, args);
        log!("{:?}", by_macro(stream.cu_stream(), 5));
    }
}

pub mod raw_handles {
    use crate::support::*;

    #[cfg_attr(
        feature = "timed",
        gpu_timed(stream = unsafe { gpu_time::raw_stream(stream) }, scope = "body")
    )]
    fn given(stream: CUstream) -> bool {
        stream.is_null()
    }

    #[cfg_attr(
        feature = "timed",
        gpu_timed(stream = stream.map(|stream| unsafe { gpu_time::raw_stream(stream) }))
    )]
    fn optional(stream: Option<CUstream>) -> bool {
        stream.is_some()
    }

    #[cfg_attr(
        feature = "timed",
        gpu_timed(stream = unsafe { gpu_time::raw_stream(stream.cu_stream()) })
    )]
    fn of_safe(stream: &CudaStream) -> u8 {
        let _ = stream;
        2
    }

    pub fn run() {
        let stream = CudaStream::new(1);
        log!("{} {} {}", given(stream.cu_stream()), optional(None), of_safe(&stream));
        log!("{}", optional(Some(stream.cu_stream())));
    }
}

pub mod streams_of_its_own {
    use crate::support::*;

    struct Queue(CudaStream);

    #[cfg(feature = "timed")]
    unsafe impl gpu_time::GpuStream for Queue {
        fn stream_handle(&self) -> *mut std::ffi::c_void {
            self.0.cu_stream().cast()
        }
    }

    impl Queue {
        #[cfg_attr(feature = "timed", gpu_timed(stream = self))]
        fn of_self(&self) -> Result<(), Refused> {
            unsafe { self.0.launch_builder("of self").launch(1) }
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = queue))]
    async fn counted(queue: Arc<Queue>) -> Option<Queue> {
        yield_now().await;
        Arc::try_unwrap(queue).ok()
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = queues.borrow().get(i)))]
    fn borrowed(queues: &RefCell<Vec<Rc<Queue>>>, i: usize) -> bool {
        queues.try_borrow_mut().is_ok() && i == 0
    }

    pub fn run() {
        let queue = Queue(CudaStream::new(1));
        log!("{:?}", queue.of_self());
        let queue = Arc::new(queue);
        log_auto_traits!(counted(queue.clone()));
        let queue = block_on(counted(queue)).unwrap();
        let queues = RefCell::new(vec![Rc::new(queue)]);
        log!("{} {}", borrowed(&queues, 0), borrowed(&queues, 1));
    }
}

pub mod stream_from_unsafe_code {
    use crate::support::*;

    static mut STREAM: Option<CudaStream> = None;

    #[cfg_attr(feature = "timed", gpu_timed(stream = unsafe { &*std::ptr::addr_of!(STREAM) }.as_ref()))]
    fn global() -> bool {
        unsafe { &*std::ptr::addr_of!(STREAM) }.is_some()
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = unsafe { (*device).stream.as_ref() }))]
    fn pointer(device: *const Device) -> bool {
        unsafe { &*device }.stream.is_ok()
    }

    struct Device {
        stream: Result<CudaStream, Refused>,
    }

    pub fn run() {
        log!("{}", global());
        log!("{}", pointer(&Device { stream: Err(Refused(1)) }));
        log!("{}", pointer(&Device { stream: Ok(CudaStream::new(1)) }));
    }
}
