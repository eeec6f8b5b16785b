//! Ways out of a function: `?`, `return`, `-> !`, panics; and ways back into it.

pub mod question_mark_everywhere {
    use crate::support::*;

    struct Pair {
        a: i32,
        b: i32,
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn parse(text: &str) -> Result<Pair, std::num::ParseIntError> {
        let mut fields = text.split(' ');
        let mut next = || fields.next().unwrap_or("none").parse::<i32>();
        if next()? > 0 {
            let pair = Pair { a: next()?, b: -next()? };
            return Ok(Pair { b: [pair.b, next()?][1], ..pair });
        }
        for _ in 0..next()? {
            match next()? {
                0 => break,
                n => drop((|| -> Result<i32, std::num::ParseIntError> { Ok(next()? + n) })()?),
            }
        }
        Ok(Pair { a: 0, b: next()? })
    }

    pub fn run() {
        for text in ["", "1 2 3 4", "1 2", "1 2 3", "0 2 5 5 0 7", "0 1 x", "0 0 0", "0 0"].iter() {
            log!("{:?}", parse(text).map(|pair| (pair.a, pair.b)));
        }
    }
}

pub mod question_mark_on_option {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn second(text: &str) -> Option<char> {
        let mut chars = text.chars();
        chars.next()?;
        Some(chars.next()?.to_uppercase().next()?)
    }

    pub fn run() {
        log!("{:?} {:?} {:?}", second("ab"), second("a"), second(""));
    }
}

pub mod question_mark_converts {
    use crate::support::*;
    use std::error::Error;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn read(text: &str) -> Result<f32, Box<dyn Error + Send + Sync>> {
        if text.is_empty() {
            Err("empty")?
        }
        let n: i8 = text.parse()?;
        Ok(f32::from(n) + text.parse::<f32>()?)
    }

    pub fn run() {
        for text in ["", "1", "400", "x"].iter() {
            log!("{:?}", read(text).map_err(|error| error.to_string()));
        }
    }
}

pub mod question_mark_in_tail {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn nothing(text: &str) -> Result<(), std::fmt::Error> {
        use std::fmt::Write;
        write!(String::new(), "{}", text)?;
        Ok::<(), std::fmt::Error>(())?;
        Ok(Err(std::fmt::Error)?)
    }

    pub fn run() {
        log!("{:?}", nothing("x"));
    }
}

pub mod question_mark_on_poll {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn advance(poll: Poll<Result<u8, u8>>) -> Poll<Result<u8, u16>> {
        poll.map(|result| Ok(result? + 1))
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn propagate(poll: Poll<Result<u8, u8>>) -> Poll<Result<u8, u16>> {
        match poll? {
            Poll::Ready(n) => Poll::Ready(Ok(n)),
            Poll::Pending => Poll::Pending,
        }
    }

    pub fn run() {
        for poll in [Poll::Ready(Ok(1)), Poll::Ready(Err(2)), Poll::Pending].iter() {
            log!("{:?} {:?}", advance(*poll), propagate(*poll));
        }
    }
}

pub mod early_return {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn classify(n: i32) -> &'static str {
        if n < 0 {
            return "negative";
        }
        let text = match n {
            0 => return "zero",
            1..=9 => "small",
            _ => "large",
        };
        text
    }

    pub fn run() {
        log!("{} {} {} {}", classify(-1), classify(0), classify(5), classify(50));
    }
}

pub mod labels {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn search(limit: u32) -> u32 {
        let mut rounds = 0;
        let found = 'outer: loop {
            rounds += 1;
            for a in 1.. {
                for b in 1..a {
                    if a * b > limit {
                        break 'outer a + b;
                    }
                    if b > 3 && rounds < 3 {
                        continue 'outer;
                    }
                }
                if a > 4 {
                    break 'outer 0;
                }
            }
        };
        'block: {
            if found == 0 {
                break 'block 100;
            }
            found
        }
    }

    pub fn run() {
        log!("{} {}", search(5), search(500));
    }
}

pub mod let_else {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn port(text: &str) -> u16 {
        let Some((_, port)) = text.split_once(':') else { return 80 };
        let Ok(port) = port.parse() else {
            panic!("bad port");
        };
        port
    }

    pub fn run() {
        attempt(|| port("a"));
        attempt(|| port("a:1"));
        attempt(|| port("a:b"));
    }
}

pub mod never_by_panic {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn fail(n: i32) -> ! {
        panic!("failed with {}", n)
    }

    pub fn run() {
        attempt(|| if true { fail(3) } else { 1 });
    }
}

pub mod never_by_loop {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn spin(steps: &mut Vec<u8>) -> ! {
        loop {
            if steps.pop().unwrap() == 0 {
                std::panic::resume_unwind(Box::new(()));
            }
        }
    }

    pub fn run() {
        attempt(|| -> i32 { spin(&mut vec![0, 1, 2]) });
    }
}

pub mod never_by_a_never_call {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn inner() -> ! {
        unreachable!()
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn outer() -> ! {
        let _noisy = Noisy("outer");
        inner();
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn coerced(choice: Option<u8>) -> u8 {
        choice.unwrap_or_else(|| outer())
    }

    pub fn run() {
        attempt(|| coerced(Some(1)));
        attempt(|| coerced(None));
    }
}

/// Bodies that never reach their end. `todo!` and `unimplemented!` are under test here: nothing is
/// left to implement.
pub mod diverging_bodies {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn later(_: u8) -> Vec<String> {
        todo!()
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn never() -> impl Debug {
        unimplemented!("because");
        #[allow(unreachable_code)]
        1
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn explicit() -> Option<u8> {
        return None;
    }

    pub fn run() {
        attempt(|| later(1));
        attempt(never);
        attempt(explicit);
    }
}

pub mod panic_places {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn fault(kind: u32, zero: usize) -> usize {
        let array = [1, 2, 3];
        match kind {
            0 => array[zero + 3],
            1 => zero - 1,
            2 => 1 / zero,
            3 => None.unwrap(),
            4 => {
                assert_eq!(zero, 1, "they differ");
                0
            }
            5 => {
                let cell = RefCell::new(zero);
                let _one = cell.borrow_mut();
                let two = cell.borrow_mut();
                *two
            }
            6 => "x".parse::<usize>().expect("no number"),
            _ => std::panic::panic_any(zero),
        }
    }

    pub fn run() {
        for kind in 0..8 {
            attempt(|| fault(kind, 0));
        }
    }
}

pub mod unwinding_drops {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn fail(_param: Noisy, (_left, _): (Noisy, Noisy)) {
        let _local = Noisy("local");
        let _array = [Noisy("array 0"), Noisy("array 1")];
        if true {
            panic!("now");
        }
    }

    pub fn run() {
        attempt(|| fail(Noisy("param"), (Noisy("left"), Noisy("wild"))));
    }
}

pub mod catch_inside {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn guarded(n: u32) -> Result<u32, u32> {
        let caught = catch_unwind(|| if n == 0 { panic!("zero") } else { n });
        caught.map_err(|_| n)
    }

    pub fn run() {
        log!("{:?} {:?}", guarded(0), guarded(1));
    }
}

pub mod called_while_unwinding {
    use crate::support::*;

    struct OnDrop;

    impl Drop for OnDrop {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn drop(&mut self) {
            log!("panicking {}", std::thread::panicking());
        }
    }

    pub fn run() {
        attempt(|| {
            let _on_drop = OnDrop;
            panic!("unwind");
        });
    }
}

pub mod recursion {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn fibonacci(n: u32) -> u64 {
        if n < 2 { n.into() } else { fibonacci(n - 1) + fibonacci(n - 2) }
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn even(n: u32) -> bool {
        n == 0 || odd(n - 1)
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn odd(n: u32) -> bool {
        n != 0 && even(n - 1)
    }

    pub fn run() {
        log!("{} {} {}", fibonacci(12), even(1001), odd(1001));
    }
}

pub mod loops {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn collatz(mut n: u64) -> usize {
        let mut steps = 0;
        while n != 1 {
            n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
            steps += 1;
        }
        steps
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn drain(stack: &mut Vec<u8>) {
        while let Some(top) = stack.pop() {
            if top == 9 {
                continue;
            }
            log!("{}", top)
        }
    }

    pub fn run() {
        log!("{}", collatz(27));
        drain(&mut vec![1, 9, 2]);
    }
}

pub mod threads {
    use crate::support::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn work(total: &AtomicU32, n: u32) {
        total.fetch_add(n, Ordering::Relaxed);
    }

    pub fn run() {
        let total = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for n in 0..8 {
                let total = &total;
                scope.spawn(move || (0..100).for_each(|_| work(total, n)));
            }
        });
        log!("{:?}", total);
        log!("{:?}", std::thread::spawn(|| work(&AtomicU32::new(0), 1)).join());
    }
}

pub mod thread_exit {
    use crate::support::*;

    struct AtExit;

    impl Drop for AtExit {
        fn drop(&mut self) {
            farewell(7);
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn farewell(n: u8) {
        log!("farewell {}", n);
    }

    thread_local!(static AT_EXIT: AtExit = const { AtExit });

    pub fn run() {
        std::thread::spawn(|| AT_EXIT.with(|_| farewell(1))).join().unwrap();
    }
}

pub mod lazy_initialiser {
    use crate::support::*;
    use std::sync::LazyLock;

    static VALUE: LazyLock<String> = LazyLock::new(build);

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn build() -> String {
        log!("built");
        "lazy".into()
    }

    pub fn run() {
        log!("{} {}", *VALUE, *VALUE);
    }
}
