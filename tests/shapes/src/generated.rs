//! Functions that macros write: fragments arrive in invisible groups, spans come from two places.

pub mod from_fragments {
    use crate::support::*;

    macro_rules! define {
        ($(#[$attribute:meta])* $visibility:vis $name:ident<$life:lifetime>($pattern:pat => $input:ty) -> $output:ty = $value:expr) => {
            $(#[$attribute])*
            #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
            $visibility fn $name<$life>($pattern: &$life $input) -> $output {
                $value
            }
        };
    }

    define!(#[inline] pub(self) double<'a>(&n => i32) -> i32 = -n.pow(2) + 2);
    define!(first<'x>((a, _) => (String, u8)) -> &'x str = a);

    pub fn run() {
        log!("{}", double(&3));
        log!("{}", first(&("text".into(), 1)));
    }
}

pub mod body_as_a_block_fragment {
    use crate::support::*;

    macro_rules! define {
        ($name:ident($($arg:ident: $ty:ty),*) -> $output:ty $body:block) => {
            #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
            fn $name($($arg: $ty),*) -> $output $body
        };
    }

    define!(single(n: u8) -> u8 { n });
    define!(several(n: u8, m: u8) -> u8 {
        let _noisy = Noisy("local");
        if n > m {
            return n;
        }
        m + Noisy("tail").len() as u8
    });

    pub fn run() {
        log!("{} {} {}", single(1), several(1, 2), several(4, 3));
    }
}

pub mod launching_block_fragment {
    use crate::support::*;

    macro_rules! define {
        ($name:ident($stream:ident) $body:block) => {
            #[cfg_attr(feature = "timed", gpu_timed)]
            fn $name($stream: &CudaStream) -> Result<(), Refused> $body
        };
    }

    define!(go(stream) {
        stream.launch_builder("in a fragment").launch(1)?;
        stream.launch_builder("in a fragment").launch(13)
    });

    pub fn run() {
        log!("{:?}", go(&CudaStream::new(3)));
    }
}

pub mod body_as_a_tail_macro {
    use crate::support::*;

    macro_rules! body {
        ($value:expr) => {{
            let value = $value;
            value * 2
        }};
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn expression(n: i32) -> i32 {
        body!(n + 1)
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn statement(n: i32) {
        println!("  {}", n);
    }

    #[rustfmt::skip]
    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn braced(n: i32) -> Vec<i32> {
        vec! { n, 1 }
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn item_macro(n: i32) -> i32 {
        thread_local! {
            static LOCAL: Cell<i32> = const { Cell::new(5) };
        }
        LOCAL.with(|local| local.get() + n)
    }

    pub fn run() {
        log!("{}", expression(1));
        statement(2);
        log!("{:?} {}", braced(3), item_macro(4));
    }
}

pub mod arguments_from_the_macro {
    use crate::support::*;

    macro_rules! define {
        ($name:ident, $stream:ident, $label:literal, $n:expr, $value:expr) => {
            #[cfg_attr(feature = "timed", gpu_timed(stream = $value, name = $label, warmup = $n))]
            fn $name($stream: &CudaStream) -> Result<(), Refused> {
                $stream.launch_builder($label).launch($n)
            }
        };
    }

    define!(one, stream, "first", 1 + 1, stream);
    define!(two, s, "second", 3, *s);

    pub fn run() {
        log!("{:?} {:?}", one(&CudaStream::new(1)), two(&CudaStream::new(2)));
    }
}

pub mod whole_items_passed_through {
    use crate::support::*;

    macro_rules! time_all {
        ($($item:item)*) => { $(
            #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
            $item
        )* };
    }

    time_all! {
        fn a() -> u8 {
            1
        }

        /// Documented.
        #[inline]
        pub(crate) fn b(mut n: u8) -> u8 {
            n += a();
            n
        }
    }

    macro_rules! tokens {
        ($($token:tt)*) => { $($token)* };
    }

    tokens! {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn c() -> u8 { b(2) }
    }

    pub fn run() {
        log!("{} {}", b(1), c());
    }
}

pub mod impls_from_a_macro {
    use crate::support::*;

    trait Bits {
        const BITS: u32;
        fn bits(self) -> u32;
        fn twice(&self) -> u32;
    }

    macro_rules! implement {
        ($($ty:ty => $bits:expr),* $(,)?) => { $(
            impl Bits for $ty {
                const BITS: u32 = $bits;

                #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
                fn bits(self) -> u32 {
                    let _ = self;
                    Self::BITS
                }

                #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
                fn twice(&self) -> u32 {
                    (*self).bits() * 2
                }
            }
        )* };
    }

    implement!(u8 => 8, u16 => 16, [u8; 3] => 24);

    pub fn run() {
        log!("{} {} {}", 1u8.bits(), 1u16.twice(), [0; 3].twice());
    }
}

pub mod self_through_a_macro {
    use crate::support::*;

    struct S {
        n: u8,
        stream: CudaStream,
    }

    macro_rules! field {
        ($this:ident . $name:ident) => {
            $this.$name
        };
    }

    macro_rules! method {
        ($name:ident, $this:ident, $body:expr) => {
            #[cfg_attr(feature = "timed", gpu_timed(stream = &field!($this.stream)))]
            fn $name(&$this) -> u8 {
                let _ = $this.stream.launch_builder("k").launch($this.n.into());
                $body
            }
        };
    }

    impl S {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn get(&self) -> u8 {
            field!(self.n)
        }

        method!(more, self, self.get() + field!(self.n));
    }

    pub fn run() {
        log!("{}", S { n: 2, stream: CudaStream::new(4) }.more());
    }
}

pub mod local_names_from_the_macro {
    use crate::support::*;

    // The macro's `n` and the caller's are two variables.
    macro_rules! define {
        ($name:ident, $argument:ident, $value:expr) => {
            #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
            fn $name($argument: u8) -> (u8, u8) {
                let n = 100;
                let result = $value;
                (n, result)
            }
        };
    }

    define!(hygienic, n, n + 1);

    pub fn run() {
        log!("{:?}", hygienic(1));
    }
}

pub mod hidden_launches {
    use crate::support::*;

    macro_rules! go {
        ($stream:expr, $grid:expr) => {
            $stream.launch_builder("hidden").launch($grid)
        };
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream))]
    fn hidden(stream: &CudaStream) -> Result<(), Refused> {
        go!(stream, 1)?;
        go!(stream, 13)
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream, launch = "go"))]
    fn named(stream: &CudaStream) -> Result<(), Refused> {
        go!(stream, 1).unwrap();
        go!(stream, 2)?;
        let last = go!(stream, 13);
        last
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream, launch = "go"))]
    fn statements(stream: &CudaStream) {
        macro_rules! go {
            ($stream:ident, $name:literal) => {
                let $stream = $stream.launch_builder($name).launch(7);
            };
        }
        log!("before");
        go!(stream, "statement");
        log!("{:?}", stream);
    }

    pub fn run() {
        let stream = CudaStream::new(1);
        log!("{:?} {:?}", hidden(&stream), named(&stream));
        statements(&stream);
    }
}

pub mod launches_within_macro_arguments {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn asserted(stream: &CudaStream) -> usize {
        assert!(stream.launch_builder("asserted").launch(1).is_ok());
        let all = vec![stream.launch_builder("in vec").launch(2)];
        log!("{:?}", stream.launch_builder("in format").launch(13));
        all.len()
    }

    pub fn run() {
        log!("{}", asserted(&CudaStream::new(1)));
    }
}

pub mod recursion_by_token_muncher {
    use crate::support::*;

    macro_rules! functions {
        () => {};
        ($name:ident = $value:literal; $($rest:tt)*) => {
            #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
            fn $name() -> u8 { $value }
            functions!($($rest)*);
        };
    }

    functions!(a = 1; b = 2; c = 3;);

    pub fn run() {
        log!("{} {} {}", a(), b(), c());
    }
}

pub mod parenthesised_types_and_paths {
    #![allow(unused_parens)]
    use crate::support::*;

    macro_rules! define {
        ($name:ident, $path:path, $ty:ty) => {
            #[cfg_attr(feature = "timed", gpu_timed)]
            fn $name(stream: $ty) -> Option<$path> {
                stream.launch_builder("typed").launch(13).err()
            }
        };
    }

    define!(shared, Refused, Arc<CudaStream>);
    define!(borrowed, crate::cuda::Refused, &CudaStream);
    define!(grouped, Refused, (&CudaStream));

    pub fn run() {
        let stream = CudaStream::new(1);
        log!("{:?} {:?}", borrowed(&stream), grouped(&stream));
        log!("{:?}", shared(Arc::new(stream)));
    }
}
