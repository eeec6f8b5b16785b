//! Functions with compiler warnings. Each marked line has at least one warning, no other line has
//! any, and the attribute must not change that.
#![warn(unused, nonstandard_style, future_incompatible, rust_2018_idioms, keyword_idents)]
#![warn(unused_results, unused_qualifications, unused_lifetimes, single_use_lifetimes)]
#![warn(trivial_casts, trivial_numeric_casts, let_underscore_drop, unit_bindings)]
#![warn(absolute_paths_not_starting_with_crate, explicit_outlives_requirements, meta_variable_misuse)]
#![warn(non_ascii_idents, redundant_imports, redundant_lifetimes, unsafe_code, unsafe_op_in_unsafe_fn)]
#![warn(impl_trait_redundant_captures, unreachable_pub, missing_docs, unused_crate_dependencies)]
#![warn(tail_expr_drop_order)]

#[allow(warnings)] // Each root uses a part of it.
mod cuda;
#[allow(warnings)]
mod launch_safe;
#[allow(warnings)]
mod log;
#[allow(warnings)]
mod support;

use support::*;

mod never_used {
    use super::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn never_called() {} //~

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn never_launched(stream: &CudaStream) -> Result<(), Refused> { //~
        stream.launch_builder("k").launch(1)
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn never_awaited() {} //~

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn calls_only_itself(n: u32) -> u32 { //~
        if n == 0 { 0 } else { calls_only_itself(n - 1) }
    }

    pub(crate) struct S;

    impl S {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn method(&self) {} //~

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        pub(crate) fn used(&self) {}
    }

    trait Private {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn default(&self) {} //~
        fn used(&self);
    }

    impl Private for S {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn used(&self) {}
    }

    pub(crate) fn run() {
        S.used();
        Private::used(&S);
    }
}

mod variables {
    use super::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    pub(crate) fn parameters(
        unused: u8, //~
        mut needless: u8, //~
        (left, _): (u8, u8), //~
        _fine: u8,
    ) -> u8 {
        needless
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    pub(crate) fn locals(n: u8) -> u8 {
        let unused = n; //~
        let mut needless = n; //~
        let mut assigned = 1; //~
        assigned = needless; //~
        assigned = n;
        let () = ();
        match n {
            0 => 1,
            other => assigned, //~
        }
    }

    /// Its tail has a temporary with a destructor.
    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    pub(crate) fn tail() -> usize {
        Noisy("temporary").0.len()
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    pub(crate) async fn in_async(unused: u8, mut needless: u8) -> u8 { //~
        yield_now().await;
        let local = needless; //~
        needless
    }

    // Without the underscore the two would differ: a stream that only the attribute reads counts as
    // used.
    #[allow(clippy::used_underscore_binding)]
    #[cfg_attr(feature = "timed", gpu_timed(scope = "body"))]
    pub(crate) fn stream(_stream: &CudaStream, mut n: u8) -> u8 { //~
        n
    }
}

mod results {
    use super::*;

    #[must_use]
    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn must() -> u8 {
        1
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn fallible() -> Result<(), Refused> {
        Ok(())
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn future() {}

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    pub(crate) fn ignored() -> u8 {
        must(); //~
        fallible(); //~
        future(); //~
        1 + 1; //~
        Vec::<u8>::new(); //~
        std::mem::replace(&mut 1, 2); //~
        let _ = Noisy("dropped"); //~
        1
    }

    struct Kernel;

    impl Kernel {
        fn launch_kernel(&self) -> u8 {
            1
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    pub(crate) fn launches(stream: &CudaStream) -> Result<(), Refused> {
        stream.launch_builder("k").launch(1); //~
        stream.launch_builder("k").launch(2).ok(); //~
        drop(stream.launch_builder("k").launch(3)); //~
        for () in stream.launch_builder("k").launch(4) {} //~
        Kernel.launch_kernel(); //~
        (stream.launch_builder("k").launch(5))?;
        let unused = stream.launch_builder("k").launch(6); //~
        /// Of no use. //~
        stream.launch_builder("k").launch(7)
    }

    #[cfg_attr(feature = "timed", gpu_timed(scope = "body"))]
    pub(crate) fn in_body(stream: &CudaStream) -> Result<(), Refused> {
        stream.launch_builder("k").launch(1); //~
        stream.launch_builder("k").launch(7)
    }
}

#[rustfmt::skip]
mod punctuation {
    use super::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    pub(crate) fn braces(n: u8) -> u8 {
        { n } //~
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    pub(crate) fn parentheses(n: u8) -> u8 {
        let m = (n); //~
        if (m > 1) { //~
            return (m); //~
        };; //~
        (n) //~
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    pub(crate) fn around_launches(stream: &CudaStream) -> Result<(), Refused> {
        let first = { stream.launch_builder("k").launch(1) };
        let second = (stream.launch_builder("k").launch(2)); //~
        if (stream.launch_builder("k").launch(3).is_ok()) { //~
            return { stream.launch_builder("k").launch(4) }; //~
        }
        stream.launch_builder("k").launch({ 5 })?; //~
        stream.launch_builder("k").launch((6))?; //~
        (stream.launch_builder("k").launch(7).and(first.and(second))) //~
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    pub(crate) fn braced_tail(stream: &CudaStream) -> Result<(), Refused> {
        { stream.launch_builder("k").launch(1) } //~
    }

    #[cfg_attr(feature = "timed", gpu_timed(scope = "body"))]
    pub(crate) async fn braced_await(stream: &CudaStream) -> u8 {
        let n = ({ yield_now() }).await; //~
        (yield_now().await);
        { stream.cu_stream().is_null() as u8 } //~
    }
}

mod control_flow {
    use super::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    pub(crate) fn after_return() -> u8 {
        return 1;
        2 //~
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    pub(crate) fn after_panic() -> u8 {
        if true {
            panic!();
            std::process::abort(); //~
        }
        loop {}
        1 //~
    }

    fn launch() -> ! {
        panic!()
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host", scope = "body"))]
    pub(crate) fn after_a_diverging_launch() -> u8 {
        launch();
        1 //~
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host", scope = "body"))]
    pub(crate) fn diverging_arguments(stream: &CudaStream) -> u8 {
        let _ = stream.launch_builder("k").launch(return 1); //~
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    #[allow(clippy::never_loop)]
    pub(crate) fn labels(n: u8) -> u8 {
        'unused: for _ in 0..n { //~
            while true { //~
                break;
            }
        }
        n; //~
        n
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    pub(crate) fn forever(n: u8) -> u8 { //~
        forever(n)
    }
}

mod names_and_items {
    #[cfg(feature = "timed")]
    use super::gpu_timed;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    pub(crate) fn NotSnake(Argument: u8) -> u8 { //~
        let Local = Argument; //~
        Local
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    pub(crate) fn größe<'a>(text: &'a str) -> usize { //~
        text.len()
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    pub(crate) fn lifetimes<'a, 'unused>(text: &'a str) -> &'a str { //~
        text
    }

    #[deprecated]
    fn old() {}

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    pub(crate) fn inner() -> u8 {
        use std::collections::HashMap; //~
        macro_rules! unused { //~
            () => {};
        }
        fn never_called() {} //~
        const NEVER: u8 = 1; //~
        old(); //~
        /// On a statement. //~
        let n = 1 as u8; //~
        std::cmp::max(n as u8, std::primitive::u8::MAX) //~
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    pub fn unreachable_visibility() {} //~

    #[inline]
    #[inline] //~
    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    pub(crate) fn twice() {}

    #[allow(unused_mut)]
    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    #[expect(unused_variables)] //~
    pub(crate) fn unfulfilled() {}

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    pub(crate) fn unsafe_block() -> u8 {
        let n = unsafe { 1 }; //~
        n
    }

    pub(crate) struct Path<'a>(pub(crate) &'a str);

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    pub(crate) fn hidden_lifetime(path: &Path) -> usize { //~
        path.0.len()
    }
}

fn main() {
    let stream = CudaStream::new(1);
    never_used::run();
    let _ = (variables::parameters(1, 2, (3, 4), 5), variables::locals(1));
    let _ = variables::tail();
    let _ = (block_on(variables::in_async(1, 2)), variables::stream(&stream, 1));
    let _ = (results::ignored(), results::launches(&stream), results::in_body(&stream));
    let _ = (punctuation::braces(1), punctuation::parentheses(1));
    let _ = (punctuation::around_launches(&stream), punctuation::braced_tail(&stream));
    let _ = block_on(punctuation::braced_await(&stream));
    let _ = (control_flow::after_return(), control_flow::labels(1));
    let _ = control_flow::diverging_arguments(&stream);
    if stream.cu_stream().is_null() {
        let _ = control_flow::after_panic();
        let _ = control_flow::after_a_diverging_launch();
        let _ = control_flow::forever(1);
    }
    let _ = (names_and_items::NotSnake(1), names_and_items::größe("a"));
    let _ = (names_and_items::lifetimes("a"), names_and_items::inner());
    let _ = (names_and_items::twice(), names_and_items::unfulfilled());
    let _ = (names_and_items::unsafe_block(), names_and_items::unreachable_visibility());
    let _ = names_and_items::hidden_lifetime(&names_and_items::Path("a"));
}
