//! User-defined names do not shadow those in generated code, or vice versa.
#![deny(warnings)]
#![forbid(unsafe_code)]
#![allow(dead_code, non_camel_case_types, non_snake_case, unused_macros)]

mod names {
    pub struct Option;
    pub struct Some;
    pub struct None;
    pub struct Result;
    pub struct usize;
    pub struct u32;
    pub struct str;
    pub struct bool;
    pub struct CallSite;
    pub struct Scope;
    pub struct Target;
    pub mod core {}
    pub mod std {}
    pub mod alloc {}
    pub mod gpu_time {}
    pub mod inventory {}
    pub fn enter() {}
    pub fn stop() {}

    macro_rules! file {
        () => {
            nothing
        };
    }
    macro_rules! line {
        () => {
            nothing
        };
    }
    macro_rules! column {
        () => {
            nothing
        };
    }
    macro_rules! submit {
        () => {
            nothing
        };
    }

    pub trait Everything {
        fn start(self) -> ()
        where
            Self: Sized,
        {
        }
        fn stream(&self) {}
        fn keep(&self) {}
        fn ok(&self) {}
        fn failed(&self) {}
        fn result(&self) {}
        fn is_in_multi_stream_mode(&self) {}
        fn is_event_tracking(&self) {}
    }
    impl<T: ?Sized> Everything for T {}

    struct Kernel;
    impl Kernel {
        fn launch(&self) -> ::std::result::Result<(), ()> {
            Ok(())
        }
    }

    #[::gpu_time::gpu_timed(warmup = 3, name = "shadowed")]
    pub fn launches(
        stream: ::std::option::Option<&::cudarc::driver::CudaStream>,
    ) -> ::std::result::Result<(), ()> {
        let _ = stream;
        Kernel.launch()?;
        Kernel.launch()
    }
}

mod locals {
    use gpu_time::gpu_timed;

    static __GPU_TIME_SITE: u8 = 2;

    fn __gpu_time_marker() -> u8 {
        3
    }

    #[gpu_timed(clock = "host")]
    pub fn seen(__gpu_time_scope: u8, __gpu_time_value: u8) -> u8 {
        let __gpu_time_target = __gpu_time_scope + __gpu_time_value;
        __gpu_time_target + __GPU_TIME_SITE + __gpu_time_marker()
    }

    #[gpu_timed(clock = "host")]
    pub fn items() -> u8 {
        static __GPU_TIME_SITE: u8 = 4;
        fn __gpu_time_marker() -> u8 {
            5
        }
        __GPU_TIME_SITE + __gpu_time_marker()
    }
}

mod without_prelude {
    #![no_implicit_prelude]

    #[::gpu_time::gpu_timed]
    pub fn launches(
        stream: ::std::option::Option<::std::sync::Arc<::cudarc::driver::CudaStream>>,
    ) -> ::std::result::Result<bool, ()> {
        fn launch_in_words() {}
        launch_in_words();
        let launch = |answer| answer;
        launch(::std::result::Result::Ok(stream.is_none()))
    }
}

#[test]
fn runs() {
    names::launches(None).unwrap();
    assert_eq!(locals::seen(1, 1), 7);
    assert_eq!(locals::items(), 9);
    assert_eq!(without_prelude::launches(None), Ok(true));
}
