//! Macros with the name of a launch or of a join, in every position of a macro.

pub mod macro_places {
    use crate::support::*;

    macro_rules! launch {
        ($place:expr) => {
            $place
        };
    }

    struct State {
        bytes: [u8; 3],
        n: u32,
        option: Option<u8>,
        noisy: Noisy,
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream, scope = "launches"))]
    fn all(stream: &CudaStream, s: &mut State) -> u32 {
        stream.launch_builder("visible").enqueue(1).unwrap();
        launch!(log!("statement"));
        launch!(s.bytes).reverse();
        log!("{:?}", s.bytes);
        (launch!(s.bytes)).rotate_left(1);
        launch!(s.bytes)[1] = 7;
        launch!(s).bytes[2] += 1;
        log!("{:?}", s.bytes);
        launch!(s.n) = 3;
        launch!(s.n) += launch!(1);
        *&mut launch!(s.n) += 1;
        launch!({ &mut *s }).n += 1;
        log!("{} {}", s.n, launch!(s.n) == launch!(s.n));
        if let Some(ref mut n) = launch!(s.option) {
            *n += 1;
        }
        match launch!(s.option) {
            Some(ref mut n) => *n += 1,
            None => {}
        }
        while let Some(ref mut n) = launch!(s.option) {
            *n += 1;
            break;
        }
        launch!(s.option).as_mut().map(|n| *n += 1).unwrap();
        log!("{:?}", s.option);
        let ref mut n = launch!(s.n);
        *n += 1;
        let State { ref mut n, .. } = launch!(*s);
        *n += 1;
        let Some(ref mut n) = launch!(s.option) else { return 0 };
        *n += 1;
        log!("{:?} {}", s.option, s.n);
        let _ = launch!(s.noisy);
        log!("still there {}", launch!(s.noisy).len());
        launch!(s.n)
    }

    pub fn run() {
        let mut s =
            State { bytes: [1, 2, 3], n: 0, option: Some(1), noisy: Noisy("not moved out") };
        log!("{}", all(&CudaStream::new(1), &mut s));
        log!("{:?} {} {:?} {}", s.bytes, s.n, s.option, s.noisy.len());
    }
}

pub mod macro_values {
    use crate::support::*;

    macro_rules! launch {
        ($value:expr) => {
            $value
        };
    }

    fn push(list: &mut Vec<u8>) {
        list.push(1);
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream, scope = "launches"))]
    fn all(stream: &CudaStream, grid: u32) -> Result<u32, Refused> {
        let extended = launch!(&Noisy("extended"));
        let (one, two) = launch!((&Noisy("one"), 2));
        let tail = { launch!(&Noisy("tail of a block")) };
        let unwrapped = launch!(Some(&Noisy("unwrapped"))).unwrap().len();
        log!("{} {} {} {} {}", extended.len(), one.len(), two, tail.len(), unwrapped);
        #[cfg(any())]
        let grid = launch!(missing);
        #[cfg(all())]
        let grid = launch!(grid + 1);
        let typed: Result<_, Refused> = launch!(Ok(grid));
        let mut n = launch!(typed?);
        n += launch!(2);
        launch!(stream.launch_builder("question mark").enqueue(n))?;
        launch!(stream.launch_builder("unwrapped").enqueue(n)).unwrap();
        let coerced: &dyn Debug = launch!(&1u8);
        let slice: &[u8] = launch!(&[1, 2, 3]);
        log!("{:?} {:?}", coerced, slice);
        let cast = launch!(0xffff_ffff) as u32;
        let negated: i8 = -launch!(128);
        let called = launch!(|n| n + 1) as fn(u8) -> u8;
        const NONE: Option<Noisy> = None;
        let repeated = [launch!(NONE); 2];
        let indexed = slice[launch!(2)] + slice[launch!(0)..launch!(1)][0];
        log!("{} {} {} {:?} {}", cast, negated, called(1), repeated, indexed);
        let mut list = vec![3];
        let reborrowed = &mut list;
        push(launch!(reborrowed));
        push(launch!(reborrowed));
        log!("{:?}", launch!(reborrowed));
        let chosen = if n > 3 { launch!(n) } else { launch!(0) };
        for i in launch!(0..2) {
            log!("{} {}", i, launch!(chosen));
        }
        let Ok(n) = launch!(stream.launch_builder("let else").enqueue(n).map(|()| n)) else {
            return launch!(Err(Refused(n)));
        };
        Ok(launch!(n))
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream, scope = "launches"))]
    fn expected_lints(stream: &CudaStream) {
        #[expect(unused_variables)]
        let unused = launch!(1);
        #[expect(unused_mut)]
        let mut constant = launch!(1);
        log!("{:?} {}", stream, constant);
    }

    pub fn run() {
        let stream = CudaStream::new(1);
        log!("{:?} {:?}", all(&stream, 2), all(&stream, 10));
        expected_lints(&stream);
    }
}

pub mod macro_assignments {
    use crate::support::*;

    macro_rules! launch {
        ($($value:tt)*) => {
            $($value)*
        };
    }

    macro_rules! first {
        ($place:ident) => {
            ($place, _)
        };
    }

    struct Pair {
        number: u8,
        noisy: Noisy,
    }

    struct Unit;

    impl Drop for Unit {
        fn drop(&mut self) {
            log!("drop unit");
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream, scope = "launches"))]
    fn wildcards(stream: &CudaStream, noisy: Noisy, n: u8) {
        stream.launch_builder("visible").enqueue(1).unwrap();
        _ = launch!(noisy);
        _ = &(launch!(noisy));
        _ = launch!(stream.launch_builder("refused").enqueue(13));
        _ = launch!(Some(Noisy("unwrapped"))).unwrap();
        _ = (launch!(Noisy("moved")), 1);
        match n {
            0 => _ = launch!(noisy),
            _ => _ = (launch!(n), 1).1,
        }
        log!("end {}", noisy.len());
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream, scope = "launches"))]
    fn patterns(stream: &CudaStream, pair: Pair, unit: Unit) -> u8 {
        stream.launch_builder("visible").enqueue(1).unwrap();
        let tuple = (1, Noisy("tuple"));
        let array = [(3, Noisy("array"))];
        let (mut a, mut b);
        (a, _) = launch!(tuple);
        log!("{} {}", a, tuple.1.len());
        [(a, _)] = launch!(array);
        log!("{} {}", a, array[0].1.len());
        Pair { number: a, .. } = launch!(pair);
        log!("{} {}", a, pair.noisy.len());
        first!(a) = launch!(tuple);
        Unit = launch!(unit);
        let Unit = launch!(unit);
        (launch!(a), b) = (a + 1, 2);
        log!("{} {}", a, b);
        [launch!(a), (launch!(b))] = [b, a];
        Pair { number: launch!(b), .. } = Pair { number: a + b, noisy: Noisy("temporary") };
        a = launch!(b);
        drop(unit);
        a
    }

    pub fn run() {
        let stream = CudaStream::new(1);
        wildcards(&stream, Noisy("not moved out"), 0);
        wildcards(&stream, Noisy("not moved out"), 1);
        log!("{}", patterns(&stream, Pair { number: 4, noisy: Noisy("pair") }, Unit));
    }
}

pub mod awaiting_macro_places {
    use crate::support::*;

    macro_rules! join {
        ($place:expr) => {
            $place
        };
    }

    macro_rules! select {
        ($place:expr) => {
            $place
        };
    }

    struct Work(Noisy);

    impl Work {
        async fn launch(&mut self) {
            log!("{}", self.0.len());
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream, scope = "body"))]
    async fn all(stream: &CudaStream, mut bytes: [u8; 3], mut option: Option<u8>) -> u8 {
        join!(bytes).reverse();
        select!(bytes)[1] = 9;
        *&mut join!(bytes[2]) += 1;
        join!(bytes[0]) = 4;
        if let Some(ref mut n) = select!(option) {
            *n += 1;
        }
        let Some(ref mut n) = join!(option) else { return 0 };
        *n += 1;
        let ref mut last = join!(bytes[2]);
        *last += 1;
        log!("{:?} {:?} {:?}", stream, bytes, option);
        let noisy = Noisy("not moved out");
        let _ = join!(noisy);
        _ = join!(noisy);
        let pair = (1, Noisy("not moved out either"));
        let (mut one, mut two);
        (one, _) = select!(pair);
        (join!(one), two) = (one + 1, one);
        (select!(two), _) = (one + two, join!(pair.0));
        log!("{} {} {}", pair.1.len(), one, two);
        let mut work = Work(noisy);
        join!(work).launch().await;
        select!(work).launch().await;
        let Work(noisy) = work;
        let extended = select!(&Noisy("extended"));
        join!(yield_now().await);
        log!("{} {}", noisy.len(), extended.len());
        join!(option).unwrap() + join!(bytes[0])
    }

    pub fn run() {
        let stream = CudaStream::new(1);
        log_auto_traits!(all(&stream, [1, 2, 3], None));
        log!("{}", block_on(all(&stream, [1, 2, 3], None)));
        log!("{}", block_on(all(&stream, [1, 2, 3], Some(1))));
        cancel(all(&stream, [1, 2, 3], Some(1)));
    }
}

pub mod tail_macros_of_several_statements {
    use crate::support::*;

    macro_rules! select {
        ($branch:expr => $last:expr) => {
            let noisy = Noisy("of the macro");
            log!("{} {:?}", noisy.len(), $branch);
            $last
        };
        () => {};
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn value() -> usize {
        let _local = Noisy("local");
        select! { yield_now().await => Noisy("tail").len() }
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn in_a_block(n: Option<u8>) -> u8 {
        let n = match n {
            Some(n) => {
                select! { yield_now().await => n }
            }
            None => return 0,
        };
        #[allow(clippy::let_and_return)]
        let next = { select! { 1 => n + 1 } };
        next
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    async fn nothing() {
        let _local = Noisy("local");
        #[rustfmt::skip]
        select! {}
    }

    pub fn run() {
        log!("{} {}", block_on(value()), block_on(in_a_block(Some(1))));
        cancel(value());
        block_on(nothing());
    }
}

pub mod launches_that_the_compiler_evaluates {
    use crate::support::*;

    const fn launch(n: usize) -> usize {
        n + 1
    }

    fn sized<const N: usize>() -> usize {
        N
    }

    struct Sized<const N: usize>;

    impl<const N: usize> Sized<N> {
        const LENGTH: usize = N;

        fn turbofish<const M: usize>(&self) -> usize {
            N + M
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream))]
    fn all(stream: &CudaStream) -> usize {
        let array = [launch(1); launch(2)];
        let typed: [u8; launch(1)] = [1; launch(1)];
        let length = sized::<{ launch(3) }>() + Sized::<{ launch(4) }>::LENGTH;
        let other = Sized::<{ launch(1) }>.turbofish::<{ launch(2) }>();
        let block = const { launch(5) };
        log!("{:?} {:?} {:?}", stream, array, typed);
        launch(length + other + block)
    }

    pub fn run() {
        log!("{}", all(&CudaStream::new(1)));
    }
}

pub mod launch_as_a_constructor {
    use crate::support::*;

    #[allow(non_camel_case_types)]
    #[derive(Debug)]
    struct launch(u8, u8);

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream, scope = "launches"))]
    fn assigned(stream: &CudaStream) -> (u8, u8) {
        let (a, mut b, mut c, mut list);
        launch(a, b) = launch(1, 2);
        log!("{:?} {} {}", stream, a, b);
        (launch(b, c), [list, ..]) = (launch(3, 4), [[5, 6], [7, 8]]);
        launch(list[usize::from(launch(1, 0).0)], _) = launch(b, c);
        (b, c) = (list[0], list[1]);
        (b, c)
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream, scope = "launches"))]
    fn promoted(stream: &CudaStream) -> [&'static launch; 4] {
        const TWO: u8 = 2;
        let first = launch(stream.cu_stream() as usize as u8 & 1, TWO);
        log!("{:?}", first.0 < 2);
        let pair: &'static (launch, u8) = &(launch(TWO, 3), 4);
        let list: &'static [launch] = &[launch(0, TWO + 1)];
        [&launch(1, TWO), &pair.0, &list[0], &launch { 0: 4, 1: u8::MAX }]
    }

    macro_rules! launch {
        ($value:expr) => {
            $value
        };
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream, scope = "launches"))]
    fn promoted_parts(stream: &CudaStream) -> [&'static u8; 5] {
        let first = launch(stream.cu_stream() as usize as u8 & 1, 2);
        log!("{:?}", first.0 < 2);
        [
            &launch(1, 2).0,
            &[launch(3, 4)][0].1,
            &(launch(5, 6), 7).0.0,
            &{ launch(7, 8) }.1,
            &(launch!(launch(9, 10)), const { 11 }, || 12, 0..1).0.1,
        ]
    }

    pub fn run() {
        let stream = CudaStream::new(1);
        log!("{:?} {:?}", assigned(&stream), promoted(&stream));
        log!("{:?}", promoted_parts(&stream));
    }
}
