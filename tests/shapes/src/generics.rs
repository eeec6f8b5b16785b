//! Generic parameters of every kind, and `impl Trait` in both places.

pub mod type_parameter {
    use crate::support::*;
    use std::ops::Add;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn sum<T: Add<Output = T>>(a: T, b: T) -> T {
        a + b
    }

    pub fn run() {
        log!("{} {}", sum(1, 2), sum(0.5, 0.25));
    }
}

pub mod where_clause {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn join<I>(items: I) -> String
    where
        I: IntoIterator,
        I::Item: Display,
        for<'a> &'a str: PartialEq<&'a str>,
    {
        items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(",")
    }

    pub fn run() {
        log!("{}", join(vec![1, 2, 3]));
        log!("{}", join(&["a", "b"]));
    }
}

pub mod const_parameter {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn rotate<T: Copy, const N: usize>(a: [T; N]) -> [T; N] {
        let mut b = a;
        b.rotate_left(1);
        b
    }

    pub fn run() {
        log!("{:?} {:?}", rotate([1, 2, 3]), rotate(['x']));
    }
}

pub mod const_parameters_of_other_types {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn pick<const UP: bool, const C: char>() -> String {
        if UP { C.to_uppercase().collect() } else { C.to_string() }
    }

    pub fn run() {
        log!("{} {}", pick::<true, 'q'>(), pick::<false, 'q'>());
    }
}

pub mod elided_lifetime {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn first_word(text: &str) -> &str {
        text.split(' ').next().unwrap_or(text)
    }

    pub fn run() {
        log!("{}", first_word("one two"));
    }
}

pub mod named_lifetimes {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn longer<'a, 'b: 'a>(a: &'a str, b: &'b str) -> &'a str {
        if a.len() > b.len() { a } else { b }
    }

    pub fn run() {
        let a = String::from("aaa");
        log!("{}", longer(&a, "bb"));
    }
}

pub mod higher_ranked_closure {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn apply<F>(f: F) -> usize
    where
        F: for<'a> Fn(&'a [u8]) -> &'a [u8],
    {
        let local = [1, 2, 3];
        f(&local).len()
    }

    pub fn run() {
        log!("{}", apply(|bytes| &bytes[1..]));
    }
}

pub mod impl_trait_argument {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn total(values: &mut impl Iterator<Item = impl Into<u64>>) -> u64 {
        let mut total = 0;
        for value in values {
            total += value.into();
        }
        total
    }

    pub fn run() {
        log!("{}", total(&mut vec![1u8, 2].into_iter()));
    }
}

pub mod impl_trait_return {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn shout(text: &'static str) -> impl Display + Clone {
        text.to_uppercase()
    }

    pub fn run() {
        let text = shout("a");
        log_auto_traits!(text);
        log!("{} {}", text.clone(), text);
    }
}

pub mod impl_fn_return {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn adder(n: i32) -> impl Fn(i32) -> i32 {
        move |x| x + n
    }

    pub fn run() {
        log!("{}", adder(2)(3));
    }
}

pub mod impl_fn_higher_ranked_return {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn skipper(n: usize) -> impl for<'a> Fn(&'a str) -> &'a str {
        move |text| &text[n..]
    }

    pub fn run() {
        log!("{}", skipper(1)("abc"));
    }
}

pub mod precise_capturing {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn length<'a, T>(text: &'a str, _: &T) -> impl Debug + use<'a, T> {
        text.len()
    }

    pub fn run() {
        log!("{:?}", length("abc", &1));
    }
}

pub mod impl_trait_in_both_places {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn parse(text: impl AsRef<str>) -> Result<impl ToString, std::num::ParseIntError> {
        text.as_ref().parse::<i32>()
    }

    pub fn run() {
        log!("{}", parse("17").unwrap().to_string());
        log!("{:?}", parse("x").err());
    }
}

pub mod boxed_closure {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn boxed<'a>(prefix: &'a str) -> Box<dyn Fn(&str) -> String + 'a> {
        Box::new(move |text| format!("{}{}", prefix, text))
    }

    pub fn run() {
        log!("{}", boxed("a")("b"));
    }
}

pub mod coercion_to_dyn {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn pick(number: bool) -> Box<dyn Debug> {
        if number {
            return Box::new(1);
        }
        Box::new("text")
    }

    pub fn run() {
        log!("{:?} {:?}", pick(true), pick(false));
    }
}

pub mod coercion_to_fn_pointer {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn operation(negate: bool) -> fn(i32) -> i32 {
        match negate {
            true => |x| -x,
            false => i32::abs,
        }
    }

    pub fn run() {
        log!("{} {}", operation(true)(2), operation(false)(-3));
    }
}

pub mod unsized_parameter {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn size<T: ?Sized + Debug>(value: &T) -> usize {
        std::mem::size_of_val(value)
    }

    pub fn run() {
        log!("{} {} {}", size("four"), size(&[1u16, 2][..]), size::<dyn Debug>(&1u64));
    }
}

pub mod associated_items {
    use crate::support::*;

    trait Shape {
        const SIDES: u32;
        type Unit: Default + Debug;
    }

    struct Square;

    impl Shape for Square {
        const SIDES: u32 = 4;
        type Unit = u16;
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn describe<S: Shape>() -> (u32, S::Unit) {
        (S::SIDES, S::Unit::default())
    }

    pub fn run() {
        log!("{:?}", describe::<Square>());
    }
}

pub mod generic_associated_type {
    use crate::support::*;

    trait Lend {
        type Item<'a>
        where
            Self: 'a;
        fn lend<'a>(&'a mut self) -> Self::Item<'a>;
    }

    struct Window(Vec<u8>);

    impl Lend for Window {
        type Item<'a> = &'a mut [u8];
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn lend<'a>(&'a mut self) -> Self::Item<'a> {
            &mut self.0[1..]
        }
    }

    pub fn run() {
        let mut window = Window(vec![1, 2, 3]);
        window.lend()[0] = 9;
        log!("{:?}", window.0);
    }
}

pub mod generic_impl_generic_method {
    use crate::support::*;

    struct Pair<A, const N: usize>([A; N]);

    impl<A: Copy + Debug, const N: usize> Pair<A, N> {
        const COUNT: usize = N;

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn with<B: From<A>>(&self, i: usize) -> (B, usize) {
            (B::from(self.0[i]), Self::COUNT)
        }
    }

    pub fn run() {
        log!("{:?} {:?}", Pair([1u8, 2]).with::<u32>(1), Pair(['c']).with::<String>(0));
    }
}

pub mod recursive_generic {
    use crate::support::*;

    trait Depth {
        fn depth(&self) -> u32;
    }

    impl Depth for () {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn depth(&self) -> u32 {
            0
        }
    }

    impl<T: Depth> Depth for (T,) {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn depth(&self) -> u32 {
            self.0.depth() + 1
        }
    }

    pub fn run() {
        log!("{}", ((((),),),).depth());
    }
}

pub mod inferred_return {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn convert<T, U: std::str::FromStr + Default>(_: T, text: &str) -> U {
        text.parse().unwrap_or_default()
    }

    pub fn run() {
        let n: u8 = convert((), "7");
        log!("{} {:?}", n, convert::<_, f32>("", "x"));
    }
}

pub mod closure_argument_borrows_mutably {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn twice(mut f: impl FnMut()) {
        f();
        f()
    }

    pub fn run() {
        let mut n = 1;
        twice(|| n *= 3);
        log!("{}", n);
    }
}

pub mod fn_item_stays_zero_sized {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn double(x: i32) -> i32 {
        x * 2
    }

    static TABLE: [fn(i32) -> i32; 1] = [double];

    pub fn run() {
        log_auto_traits!(double);
        log!("{} {} {}", std::mem::size_of_val(&double), type_of(&double), TABLE[0](4));
        log!("{:?}", [1, 2].iter().copied().map(double).collect::<Vec<_>>());
    }
}
