//! User code that reuses the names of std, or names that an expansion might use.

pub mod shadowed_types {
    #[cfg(feature = "timed")]
    use crate::support::gpu_timed;
    use crate::support::log;

    #[derive(Debug)]
    pub struct Option;
    #[derive(Debug)]
    pub struct Result;
    #[derive(Debug)]
    pub struct Some;
    #[derive(Debug)]
    pub struct None;
    #[derive(Debug)]
    pub struct Ok;
    #[derive(Debug)]
    pub struct Err;
    #[derive(Debug)]
    pub struct String;
    #[derive(Debug)]
    pub struct Vec;
    #[derive(Debug)]
    pub struct Box;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn all() -> (Option, Result, (Some, None, Ok, Err), (String, Vec, Box)) {
        (Option, Result, (Some, None, Ok, Err), (String, Vec, Box))
    }

    pub fn run() {
        log!("{:?}", all());
    }
}

pub mod shadowed_primitives {
    use crate::support::*;

    #[allow(non_camel_case_types)]
    mod fake {
        pub type u32 = String;
        pub type u64 = String;
        pub type usize = Vec<u8>;
        pub type bool = ();
        pub struct str;
        #[derive(Debug)]
        pub struct u8;
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host", warmup = 2))]
    fn all(_: fake::u8) -> (u32, usize, bool) {
        let _ = (u64::new(), str);
        (u32::from("text"), usize::new(), ())
    }

    use fake::{bool, str, u32, u64, usize};

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream))]
    fn launching(stream: &CudaStream) -> bool {
        let _ = stream.launch_builder("k").launch(1);
    }

    pub fn run() {
        log!("{:?}", all(fake::u8));
        log!("{:?}", launching(&CudaStream::new(1)));
    }
}

pub mod shadowed_crates_and_modules {
    use crate::support::*;

    #[allow(dead_code)]
    mod core {
        pub const NAME: &str = "my core";
    }
    #[allow(dead_code)]
    mod std {
        pub const NAME: &str = "my std";
    }
    #[allow(dead_code)]
    mod alloc {}
    #[allow(dead_code)]
    mod gpu_time {
        pub mod __private {}
        pub const NAME: &str = "my gpu_time";
    }
    #[allow(dead_code)]
    mod inventory {}

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn host() -> [&'static str; 3] {
        [core::NAME, std::NAME, gpu_time::NAME]
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn launches(stream: &CudaStream) -> Result<(), Refused> {
        stream.launch_builder(gpu_time::NAME).launch(1)
    }

    #[cfg_attr(feature = "timed", gpu_timed(scope = "body"))]
    fn body(stream: &CudaStream) -> &'static str {
        stream.launch_builder(core::NAME).launch(2).map_or(std::NAME, |()| gpu_time::NAME)
    }

    pub fn run() {
        log!("{:?}", host());
        log!("{:?} {}", launches(&CudaStream::new(1)), body(&CudaStream::new(2)));
    }
}

#[rustfmt::skip] // one line each
pub mod shadowed_macros {
    #![allow(unused_macros)]
    use crate::support::*;

    macro_rules! file { ($($arg:tt)*) => { 1 } }
    macro_rules! line { ($($arg:tt)*) => { "line" } }
    macro_rules! column { ($($arg:tt)*) => { "column" } }
    macro_rules! concat { ($($arg:tt)*) => { 2 } }
    macro_rules! stringify { ($($arg:tt)*) => { 3 } }
    macro_rules! module_path { ($($arg:tt)*) => { 4 } }
    macro_rules! matches { ($($arg:tt)*) => { 5 } }
    macro_rules! submit { ($($arg:tt)*) => { 6 } }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn host() -> (i32, &'static str, i32) {
        (file!(), line!(), concat!("a"))
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn launches(stream: &CudaStream) -> (i32, &'static str, i32) {
        let _ = stream.launch_builder("k").launch(1);
        (stringify!(x), column!(), matches!(1, 2) + submit!() + module_path!())
    }

    pub fn run() {
        log!("{:?} {:?}", host(), launches(&CudaStream::new(1)));
    }
}

pub mod no_implicit_prelude {
    #![no_implicit_prelude]
    #[cfg(feature = "timed")]
    use crate::support::gpu_timed;
    use crate::support::{CudaStream, Refused, log};
    use ::std::{format_args, println};

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn host(n: u8) -> ::std::option::Option<u8> {
        ::std::option::Option::Some(n)
    }

    #[cfg_attr(feature = "timed", gpu_timed(cold, warmup = 1, sleep))]
    fn launches(stream: &CudaStream) -> ::std::result::Result<(), Refused> {
        stream.launch_builder("bare").launch(1)
    }

    #[cfg_attr(feature = "timed", gpu_timed(scope = "body", stream = stream))]
    async fn body(stream: &CudaStream) -> ::std::result::Result<(), Refused> {
        crate::support::yield_now().await;
        stream.launch_builder("bare").launch(13)
    }

    pub fn run() {
        let stream = CudaStream::new(1);
        log!("{:?} {:?}", host(1), launches(&stream));
        log!("{:?}", crate::support::block_on(body(&stream)));
    }
}

pub mod locals_with_our_names {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn locals(stream: &CudaStream, __scope: u8, scope: u8, token: u8) -> u8 {
        let r = 1;
        let site = 2;
        let target = 3;
        let _ = stream.launch_builder("k").arg(&u32::from(__scope)).launch(u32::from(token));
        let __scope = __scope + r + site + target;
        let _ = stream.launch_builder("k").launch(__scope.into());
        __scope + scope
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn untouched<const __SCOPE: u8, __Scope: Default + Into<u32>>() -> u32 {
        let __gpu_time = __Scope::default();
        __gpu_time.into() + u32::from(__SCOPE)
    }

    pub fn run() {
        log!("{}", locals(&CudaStream::new(1), 1, 2, 3));
        log!("{}", untouched::<4, u16>());
    }
}

pub mod items_with_our_names {
    use crate::support::*;

    static __GPU_TIME_SITE: &str = "my site";
    #[allow(dead_code)]
    const SITE: &str = "other";
    #[allow(dead_code)]
    struct Spec;
    #[allow(dead_code)]
    struct CallSite;
    #[allow(dead_code)]
    struct Scope;
    #[derive(Debug)]
    struct Token;

    fn enter() -> Token {
        Token
    }
    fn start(n: u32) -> u32 {
        n
    }
    fn stop(n: u32) -> u32 {
        n + 1
    }
    fn marker() -> &'static str {
        "marker"
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream))]
    fn all(stream: &CudaStream) -> (&'static str, Token, &'static str) {
        let _ = stream.launch_builder(__GPU_TIME_SITE).launch(stop(start(1)));
        (__GPU_TIME_SITE, enter(), marker())
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn inner_items() -> u8 {
        static __GPU_TIME_SITE: u8 = 1;
        fn marker() -> u8 {
            2
        }
        fn path() -> u8 {
            3
        }
        __GPU_TIME_SITE + marker() + path()
    }

    pub fn run() {
        log!("{:?} {}", all(&CudaStream::new(1)), inner_items());
    }
}

pub mod type_parameters_with_our_names {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn all<K: Debug, R: Debug, T: Debug, Probe: Debug, Target: Debug>(
        stream: &CudaStream,
        k: K,
        r: R,
        t: T,
        both: (Probe, Target),
    ) -> String {
        let _ = stream.launch_builder("k").launch(1);
        format!("{:?}", (k, r, t, both))
    }

    pub fn run() {
        log!("{}", all(&CudaStream::new(1), 1, 'r', "t", (2, 3)));
    }
}

pub mod constants_as_bindings {
    #![allow(non_upper_case_globals)]
    use crate::support::*;

    // A binding with the name of a constant in scope becomes a constant pattern.
    #[allow(dead_code)]
    const __scope: u8 = 1;
    #[allow(dead_code)]
    const scope: u8 = 2;
    #[allow(dead_code)]
    const r: u8 = 3;
    #[allow(dead_code)]
    const token: u8 = 4;
    #[allow(dead_code)]
    const value: u8 = 5;
    #[allow(dead_code)]
    const e: u8 = 6;

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn launches(stream: &CudaStream) -> Result<(), Refused> {
        stream.launch_builder("k").launch(1)?;
        stream.launch_builder("k").launch(r.into())
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream.ok_or(0)?, scope = "body"))]
    fn body(stream: Option<&CudaStream>) -> u8 {
        if stream.is_some() { __scope + scope } else { token + value + e }
    }

    pub fn run() {
        let stream = CudaStream::new(1);
        log!("{:?} {} {}", launches(&stream), body(None), body(Some(&stream)));
    }
}

pub mod blanket_traits_in_scope {
    use crate::support::*;

    trait Everything {
        fn failed(&self) -> &'static str {
            "mine"
        }
        fn new_stream(&self) -> u8 {
            1
        }
        fn gpu_time(&self) -> u8 {
            2
        }
        fn cu_ctx(&self) -> u8 {
            3
        }
        fn hold(&self) -> u8 {
            4
        }
        fn start(&self, _: u32) -> u8 {
            5
        }
        fn target(&self) -> u8 {
            6
        }
        fn is_managing_stream_synchronization(&self) -> u8 {
            7
        }
    }

    impl<T: ?Sized> Everything for T {}

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn launches(stream: &Arc<CudaStream>) -> Result<(), Refused> {
        stream.launch_builder("k").launch(1)?;
        log!("{} {} {}", 1.failed(), 1.new_stream(), 1.hold());
        stream.launch_builder("k").launch(13)
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream, scope = "body"))]
    fn body(stream: Option<Arc<CudaStream>>) -> u8 {
        stream.start(1)
            + 1.gpu_time()
            + 1.cu_ctx()
            + 1.target()
            + 1.is_managing_stream_synchronization()
    }

    pub fn run() {
        let stream = CudaStream::shared(1);
        log!("{:?} {} {}", launches(&stream), body(Some(stream)), body(None));
    }
}

pub mod globs_and_imports_in_the_body {
    use crate::support::*;

    mod many {
        pub fn drop(_: u8) -> &'static str {
            "my drop"
        }
        pub fn enter() -> u8 {
            1
        }
        pub struct Site;
        pub use std::fmt::Result;
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn globbed() -> (&'static str, u8, Result<u8, u8>) {
        use many::*;
        let _: Result = Ok(());
        let Site = Site;
        (drop(1), enter(), std::result::Result::Ok(1))
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn items_everywhere() -> usize {
        const N: usize = M + 1;
        let a = [0u8; N];
        macro_rules! two {
            () => {
                M
            };
        }
        use many::enter as renamed;
        let b = two!() + usize::from(renamed());
        return a.len() + b + later();
        const M: usize = 2;
        fn later() -> usize {
            M
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn items_only() {
        #[allow(dead_code)]
        struct Unused;
        #[allow(unused_imports)]
        use many::enter;
    }

    pub fn run() {
        log!("{:?} {} {:?}", globbed(), items_everywhere(), items_only());
    }
}

pub mod user_methods_with_our_names {
    use crate::support::*;

    struct Device {
        stream: CudaStream,
        started: Cell<u32>,
    }

    impl Device {
        fn start(&self, n: u32) -> &Self {
            self.started.set(self.started.get() + n);
            self
        }
        fn stop(&self) -> u32 {
            self.started.replace(0)
        }
        fn awaiting(&self) -> bool {
            self.started.get() > 0
        }

        #[cfg_attr(feature = "timed", gpu_timed(stream = self.stream))]
        fn launch(&self, n: u32) -> u32 {
            let _ = self.start(n).stream.launch_builder("k").launch(n);
            if self.awaiting() && n > 0 { self.launch(n - 1) } else { self.stop() }
        }
    }

    pub fn run() {
        log!("{}", Device { stream: CudaStream::new(1), started: Cell::new(0) }.launch(3));
    }
}

pub mod renamed_imports {
    #[cfg(feature = "timed")]
    use crate::support::gpu_timed as timed;
    use crate::support::log;

    #[cfg_attr(feature = "timed", timed(clock = "host"))]
    fn renamed() -> u8 {
        1
    }

    #[cfg_attr(feature = "timed", gpu_time::gpu_timed(clock = "host"))]
    fn by_path() -> u8 {
        2
    }

    #[cfg_attr(feature = "timed", ::gpu_time::gpu_timed(clock = "host"))]
    fn by_absolute_path() -> u8 {
        3
    }

    pub fn run() {
        log!("{} {} {}", renamed(), by_path(), by_absolute_path());
    }
}
