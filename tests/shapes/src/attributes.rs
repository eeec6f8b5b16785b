//! Other attributes beside, above, below and inside.

pub mod inner_attributes {
    #![allow(clippy::all)]
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn lenient(n: i32) -> i32 {
        //! Documented from within.
        #![allow(unused_variables, unused_mut)]
        #![cfg_attr(all(), allow(unused_assignments))]
        let mut unused = n;
        let assigned = 1;
        n
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn only() {
        #![allow(unused)]
    }

    pub fn run() {
        log!("{:?}", (lenient(1), only()));
    }
}

pub mod documented {
    use crate::support::*;

    /// Above.
    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    /// Below.
    #[doc = concat!("Com", "puted")]
    /** And a block. */
    fn documented() -> u8 {
        // No doc comment.
        /* Nor this. */
        1
    }

    pub fn run() {
        log!("{}", documented());
    }
}

pub mod track_caller {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    #[track_caller]
    fn caller() -> u32 {
        log!("{}", Location::caller());
        std::iter::once(()).map(|()| Location::caller().line()).sum()
    }

    #[track_caller]
    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn through() -> u32 {
        caller()
    }

    #[track_caller]
    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn fail(option: Option<u8>) -> u8 {
        option.unwrap()
    }

    trait Place {
        #[track_caller]
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn place(&self) -> &'static Location<'static> {
            Location::caller()
        }
    }

    impl Place for u8 {}

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn untracked() -> u32 {
        Location::caller().line()
    }

    pub fn run() {
        log!("{} {} {}", caller(), through(), 1u8.place());
        log!("{}", untracked());
        let pointer: fn() -> u32 = caller;
        log!("{}", pointer() > 0);
        attempt(|| fail(None));
    }
}

pub mod must_use {
    use crate::support::*;

    #[must_use = "it is all there is"]
    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn value() -> u8 {
        1
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    #[must_use]
    fn result() -> Result<u8, u8> {
        Ok(1)
    }

    pub fn run() {
        let _ = value();
        log!("{} {:?}", value(), result());
    }
}

pub mod code_generation {
    use crate::support::*;

    #[inline(always)]
    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn inlined() -> u8 {
        1
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    #[inline(never)]
    #[cold]
    fn outlined() -> u8 {
        2
    }

    pub fn run() {
        log!("{} {}", inlined(), outlined());
    }
}

pub mod deprecated {
    use crate::support::*;

    #[deprecated(since = "0.0.0", note = "use another")]
    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn old() -> u8 {
        if false { old() } else { 1 }
    }

    pub fn run() {
        #[allow(deprecated)]
        let value = old();
        log!("{}", value);
    }
}

pub mod fulfilled_expectations {
    use crate::support::*;

    #[expect(dead_code)]
    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn never_called() {}

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    #[expect(unused_variables, unused_mut)]
    fn unused(mut a: u8) -> u8 {
        1
    }

    #[rustfmt::skip]
    #[expect(unused_braces)]
    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn braced() -> u8 {
        { 1 }
    }

    #[expect(unreachable_code)]
    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn unreachable() -> u8 {
        return 1;
        2
    }

    #[expect(unconditional_recursion)]
    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn forever(n: u8) -> u8 {
        forever(n)
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    #[expect(non_snake_case)]
    fn Named(Upper: u8) -> u8 {
        Upper
    }

    pub fn run() {
        log!("{} {} {} {}", unused(1), braced(), unreachable(), Named(3));
        log!("{}", type_of(&forever));
    }
}

pub mod tool_attributes {
    use crate::support::*;

    #[rustfmt::skip]
    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    #[allow(clippy::needless_return)]
    #[cfg_attr(all(), inline, doc(hidden))]
    fn cramped ( ) -> u8 { return 1 ; }

    pub fn run() {
        log!("{}", cramped());
    }
}

pub mod written_twice_over {
    use crate::support::*;

    #[cfg_attr(any(), missing::attribute)]
    #[cfg_attr(
        feature = "timed",
        cfg_attr(all(), gpu_timed(clock = "host", name = "nested",)),
        allow(unused)
    )]
    fn nested() -> u8 {
        1
    }

    pub fn run() {
        log!("{}", nested());
    }
}

pub mod visibilities {
    use crate::support::*;

    mod inner {
        #[cfg(feature = "timed")]
        use crate::support::gpu_timed;

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        pub(in crate::attributes::visibilities) fn path() -> u8 {
            1
        }

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        pub(super) fn parent() -> u8 {
            2
        }

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        pub(crate) extern "Rust" fn everywhere() -> u8 {
            3
        }
    }

    pub fn run() {
        log!("{} {} {}", inner::path(), inner::parent(), inner::everywhere());
    }
}

pub mod functions_in_odd_places {
    use crate::support::*;

    const LENGTH: fn(&str) -> usize = {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn length(text: &str) -> usize {
            text.len()
        }
        length
    };

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn outer(n: i32) -> i32 {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn outer(n: i32) -> i32 {
            n * 10
        }
        struct Local(i32);
        impl Local {
            #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
            fn get(&self) -> i32 {
                self.0
            }
        }
        let closure = |n| {
            #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
            fn deep(n: i32) -> i32 {
                n + 1
            }
            deep(n)
        };
        closure(outer(Local(n).get()))
    }

    pub fn run() {
        log!("{} {}", LENGTH("abc"), outer(4));
    }
}
