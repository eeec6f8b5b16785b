//! Patterns, `mut`, and conditional compilation in parameter lists.

pub mod tuples_and_structs {
    use crate::support::*;

    struct Point {
        x: i32,
        y: i32,
    }
    struct Wrapper(Point);

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn sum(
        (a, b): (i32, i32),
        Point { x, y: up }: Point,
        Wrapper(Point { x: z, .. }): Wrapper,
    ) -> i32 {
        a + b + x + up + z
    }

    pub fn run() {
        let wrapper = Wrapper(Point { x: 5, y: 6 });
        log!("{}", wrapper.0.y);
        log!("{}", sum((1, 2), Point { x: 3, y: 4 }, wrapper));
    }
}

pub mod mutable_bindings {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn grow(mut n: u32, (mut a, b): (u32, u32), mut list: Vec<u32>) -> Vec<u32> {
        n += 1;
        a *= 2;
        list.extend(vec![n, a, b]);
        list
    }

    pub fn run() {
        log!("{:?}", grow(1, (2, 3), vec![0]));
    }
}

pub mod reference_patterns {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn deref(&a: &i32, &mut b: &mut i32, &(c, ref d): &(i32, String)) -> String {
        format!("{}{}{}{}", a, b, c, d)
    }

    pub fn run() {
        log!("{}", deref(&1, &mut 2, &(3, "four".into())));
    }
}

pub mod ref_and_ref_mut {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn push(ref mut list: Vec<i32>, ref by: i32, (ref left, _): (Noisy, Noisy)) -> usize {
        list.push(*by);
        list.len() + left.len()
    }

    pub fn run() {
        log!("{}", push(vec![1], 2, (Noisy("left"), Noisy("right"))));
    }
}

pub mod arrays_and_bindings {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn ends([first, .., last]: [i32; 4], whole @ (a, _): (i32, i32)) -> (i32, (i32, i32)) {
        (first + last + a, whole)
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn rest([_, middle @ ..]: [u8; 3]) -> [u8; 2] {
        middle
    }

    pub fn run() {
        log!("{:?} {:?}", ends([1, 2, 3, 4], (5, 6)), rest([1, 2, 3]));
    }
}

pub mod or_patterns {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn either((Ok(n) | Err(n)): Result<i32, i32>, (Some(_) | None): Option<i32>) -> i32 {
        n
    }

    pub fn run() {
        log!("{} {}", either(Ok(1), None), either(Err(2), Some(1)));
    }
}

pub mod unused_and_unit {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn ignore(_: i32, _unused: &str, (): (), _: impl Debug) -> u8 {
        1
    }

    pub fn run() {
        log!("{}", ignore(1, "", (), 'c'));
    }
}

pub mod conditional_parameters {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn sum(
        #[cfg(all())] a: i32,
        #[cfg(any())] b: Missing,
        #[cfg_attr(any(), cfg(any()))] c: i32,
    ) -> i32 {
        #[cfg(any())]
        let a = b;
        a + c
    }

    pub fn run() {
        log!("{}", sum(1, 2));
    }
}

pub mod conditional_generics {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn show<#[cfg(all())] T: Debug, #[cfg(any())] U: Missing>(value: T) -> String
    where
        T: Clone,
    {
        format!("{:?}", value.clone())
    }

    pub fn run() {
        log!("{}", show(Some(1)));
    }
}

pub mod conditional_statements {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn choose(n: i32) -> i32 {
        #[cfg(any())]
        compile_error!("not compiled");
        #[cfg(all())]
        let n = n + 1;
        match n {
            #[cfg(any())]
            0 => missing(),
            #[cfg(all())]
            0 => 100,
            n => [
                #[cfg(any())]
                missing(),
                n,
            ][0],
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn tail() -> i32 {
        #[cfg(all())]
        {
            1
        }
        #[cfg(any())]
        {
            2
        }
    }

    pub fn run() {
        log!("{} {} {}", choose(-1), choose(1), tail());
    }
}

pub mod conditional_function {
    use crate::support::*;

    #[cfg(any())]
    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn which() -> Missing {
        missing()
    }

    #[cfg(all())]
    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn which() -> u8 {
        1
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    #[cfg(all())]
    fn below() -> u8 {
        2
    }

    pub fn run() {
        log!("{} {}", which(), below());
    }
}

pub mod parameter_attributes {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn lenient(#[allow(unused_variables)] a: i32, #[allow(unused_mut)] mut b: i32) -> i32 {
        b
    }

    pub fn run() {
        log!("{}", lenient(1, 2));
    }
}

pub mod parameters_named_oddly {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn r#match(r#type: u8, größe: u8, r#async: u8, _0: u8) -> u8 {
        r#type + größe + r#async + _0
    }

    pub fn run() {
        log!("{}", r#match(1, 2, 3, 4));
    }
}
