//! Fragments of `macro_rules!` beside tokens that would split them if they were written out.

pub mod expressions_as_operands {
    use crate::support::*;

    macro_rules! define {
        ($name:ident($e:expr, $truth:expr, $literal:literal) -> $output:ty) => {
            #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
            fn $name() -> $output {
                let product = $e * 4;
                let quotient = 100 / $e;
                let is_equal = !$truth == false;
                let power = $literal.pow(2);
                let rest = $e - $e;
                (product, quotient, is_equal, power, rest, ($e) as u8, -$e)
            }
        };
    }

    define!(sums(2 + 3, true && false, -3i32) -> (i32, i32, bool, i32, i32, u8, i32));
    define!(products(7 & 3, true || false, 3i32) -> (i32, i32, bool, i32, i32, u8, i32));
    define!(blocks({ 5 }, { true }, 0i32) -> (i32, i32, bool, i32, i32, u8, i32));
    define!(chosen(if true { 2 } else { 9 } + 3, match 3 { _ => false } == true, 1i32) -> (i32, i32, bool, i32, i32, u8, i32));

    macro_rules! tail {
        ($name:ident, $e:expr) => {
            #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
            fn $name() -> usize {
                $e
            }
        };
    }

    tail!(ends_in_a_sum, if true { 2 } else { 3 } + 4);
    tail!(ends_in_a_cast, { 258u32 } as u8 as usize);
    tail!(ends_in_a_block, match 3 { n => n });

    pub fn run() {
        log!("{:?} {:?} {:?} {:?}", sums(), products(), blocks(), chosen());
        log!("{} {} {}", ends_in_a_sum(), ends_in_a_cast(), ends_in_a_block());
    }
}

pub mod expressions_of_every_kind {
    use crate::support::*;

    struct State {
        call: fn(u32) -> u32,
        n: u32,
    }

    impl State {
        fn call(&self, n: u32) -> u32 {
            n + 100
        }
    }

    macro_rules! define {
        ($state:ident, $field:expr, $closure:expr, $cast:expr, $ty:ty, $range:expr, $value:expr, $assign:expr, $place:expr) => {
            #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
            fn every_kind($state: &mut State) -> u32 {
                let called = $field(1) + $closure(2);
                let is_less = $cast < 3 && $state.n as $ty < 300;
                let is_shifted = $state.n as $ty << 1;
                let length = $range.len();
                $assign;
                $place += 1;
                for i in $range {
                    log!("{} {}", i, stringify!($range));
                }
                if $value.n == 3 {
                    log!("{:?}", assert_fails(|| assert!($cast > 700)));
                }
                match $value {
                    State { n, .. } => log!("{} {} {}", n, is_less, is_shifted),
                }
                called + length as u32
            }
        };
    }

    fn assert_fails(f: impl FnOnce() + UnwindSafe) -> bool {
        catch_unwind(f).is_err()
    }

    fn double(n: u32) -> u32 {
        n * 2
    }

    define!(state, state.call, |n: u32| n + 1, 2 as u8 as u32, u64, 0..3, State { call: double, n: 3 }, state.n = 5, state.n);

    pub fn run() {
        let mut state = State { call: double, n: 1 };
        log!("{} {}", every_kind(&mut state), state.n);
        log!("{}", state.call(1));
    }
}

pub mod places_of_panics {
    use crate::support::*;

    macro_rules! define {
        ($name:ident($n:ident), $e:expr) => {
            #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
            fn $name($n: u32) -> u32 {
                let difference = $e - 10;
                difference
            }
        };
    }

    define!(overflowing(n), n + 1);

    pub fn run() {
        attempt(|| overflowing(20));
        attempt(|| overflowing(2));
    }
}

pub mod patterns_and_types {
    use crate::support::*;

    trait Bits {
        fn bits(&self) -> usize;
    }

    macro_rules! define {
        ($negative:literal, $range:pat, $reference:pat, $rest:pat, $mutable:ident $binding:pat, $bounds:ty, $array:ty) => {
            #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
            fn matched(n: i32, list: &[u8]) -> u8 {
                let &$binding = &list[0];
                $mutable += 1;
                let first = match list {
                    [$reference, $rest] if n > 0 => 1,
                    [_, $rest] => 2,
                    [] => 3,
                };
                let kind = match n {
                    $negative => 10,
                    n @ $range => n as u8,
                    _ => 30,
                };
                $mutable + first + kind + <$array>::default()[1]
            }

            #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
            fn bounded(name: &'static str) -> &'static $bounds {
                log!("{}", name);
                &[1u8, 2]
            }

            #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
            impl Bits for &'static $bounds {
                fn bits(&self) -> usize {
                    std::mem::size_of_val(*self) * 8
                }
            }
        };
    }

    define!(-3, 1..=5, 3, .., mutable mut mutable, dyn Debug + Sync, [u8; 3]);

    pub fn run() {
        log!("{} {} {}", matched(-3, &[3, 4]), matched(2, &[3]), matched(9, &[5, 6, 7]));
        let bounded = bounded("several bounds");
        log!("{:?} {}", bounded, bounded.bits());
    }
}

pub mod marked_bodies {
    use crate::support::*;

    macro_rules! define {
        ($name:ident, $stream:ident, $e:expr, $literal:literal, $reference:expr, $first:stmt; $second:stmt; $third:stmt;) => {
            #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
            async fn $name() -> (i32, i32) {
                let waited = {
                    yield_now().await;
                    $e * 4
                };
                $first
                $second
                $third
                let waited = waited;
                if !($e * 2 == waited) {
                    log!("{} {}", stringify!($e), format!("{}", $e));
                }
                (waited, $literal.pow(2))
            }

            #[cfg_attr(feature = "timed", gpu_timed)]
            fn launching($stream: &CudaStream) -> (i32, Result<(), Refused>) {
                const TWICE: i32 = $e * 2;
                let sized = <Sized<$literal>>::VALUE;
                let launched = {
                    let grid = $e * 3;
                    $reference.launch_builder("k").launch(grid as u32)
                };
                (TWICE + sized, launched)
            }
        };
    }

    struct Sized<const N: i32>;

    impl<const N: i32> Sized<N> {
        const VALUE: i32 = N;
    }

    define!(awaiting, stream, 2 + 3, -3i32, &*stream, let mut n = 1; n += 2; println!("  {}", n););

    pub fn run() {
        let stream = CudaStream::new(1);
        log!("{:?} {:?}", block_on(awaiting()), launching(&stream));
    }
}

pub mod members_of_containers {
    use crate::support::*;

    pub struct S;

    macro_rules! define {
        ($visibility:vis, $e:expr, $($member:item)*) => {
            #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
            impl S {
                const X: u32 = $e * 2;

                $visibility fn of_impl(&self) -> u32 {
                    Self::X + $e * 3
                }
            }

            #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
            mod inner {
                pub const Y: u32 = $e * 2;

                $($member)*

                pub fn of_mod() -> u32 {
                    let y = $e * 3;
                    Y + y + second(first())
                }
            }
        };
    }

    define! { pub(crate), 2 + 3,
        /// Documented.
        fn first() -> u32 { 1 }
        fn second(n: u32) -> u32 { n }
    }

    pub fn run() {
        log!("{} {}", S.of_impl(), inner::of_mod());
    }
}

pub mod leading_items {
    use crate::support::*;

    macro_rules! define {
        ($e:expr, $lint:meta, $item:item) => {
            #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
            fn leading() -> u32 {
                #![$lint]
                const X: u32 = $e * 2;
                $item
                let unused = 1;
                X + Y * $e
            }
        };
    }

    define!(2 + 3, allow(unused_variables), const Y: u32 = 7;);

    pub fn run() {
        log!("{}", leading());
    }
}

pub mod values_of_keys {
    use crate::support::*;

    macro_rules! define {
        ($n:expr, $name:expr, $($key:meta),*) => {
            #[cfg_attr(feature = "timed", gpu_timed(clock = "host", name = $name, warmup = $n * 2, key = $n, bytes = $n * 4, flops = $n, $($key),*))]
            fn host() -> usize {
                let bytes = $n * 4;
                bytes
            }

            #[cfg_attr(feature = "timed", gpu_timed(clock = "host", key = $n, bytes = $n))]
            impl S {
                fn inherits(&self) -> usize {
                    $n * 2
                }
            }
        };
    }

    define!(1 << 2, "name", every = 1);

    pub struct S;

    pub fn run() {
        log!("{} {}", host(), S.inherits());
    }
}

pub mod scopes {
    use crate::support::*;

    macro_rules! timed {
        ($e:expr, $literal:literal) => {
            scope!("scope", clock = "host", key = $e, { $e * 2 + $literal.pow(2) })
        };
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn outer(n: i32) -> i32 {
        timed!(n + 1, -3i32)
    }

    pub fn run() {
        log!("{}", outer(2));
    }
}
