//! When things are dropped. Several of these differ between editions, and must keep doing so.

pub mod locals_and_parameters {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn all(_a: Noisy, _b: Noisy) -> Noisy {
        let _c = Noisy("c");
        let _d = Noisy("d");
        log!("body");
        Noisy("returned")
    }

    pub fn run() {
        let returned = all(Noisy("a"), Noisy("b"));
        log!("{}", returned.len());
    }
}

pub mod no_statement_at_all {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn empty(_a: Noisy, _: Noisy) {}

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn same(a: Noisy) -> Noisy {
        a
    }

    pub fn run() {
        empty(Noisy("a"), Noisy("wild"));
        drop(same(Noisy("same")));
    }
}

pub mod wildcard_and_partial_patterns {
    use crate::support::*;

    struct Three {
        x: Noisy,
        y: Noisy,
        z: Noisy,
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn partial(_: Noisy, Three { x, y: _, .. }: Three, (_, _second): (Noisy, Noisy)) -> usize {
        let _local = Noisy("local");
        x.len()
    }

    pub fn run() {
        let three = Three { x: Noisy("x"), y: Noisy("y"), z: Noisy("z") };
        log!("{}", three.y.len() + three.z.len());
        log!("{}", partial(Noisy("wild"), three, (Noisy("first"), Noisy("second"))));
    }
}

pub mod moved_out_and_conditional {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn maybe(take: bool, a: Noisy, b: Noisy) {
        if take {
            drop(a);
        }
        log!("after");
        let moved = b;
        log!("{}", moved.len());
    }

    pub fn run() {
        maybe(true, Noisy("a"), Noisy("b"));
        maybe(false, Noisy("a"), Noisy("b"));
    }
}

pub mod partially_moved_box {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn split(pair: Box<(Noisy, Noisy)>) -> Noisy {
        let first = pair.0;
        log!("split");
        first
    }

    pub fn run() {
        drop(split(Box::new((Noisy("first"), Noisy("second")))));
    }
}

pub mod shadowed_locals {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn shadow(x: Noisy) {
        let x = (x, Noisy("two"));
        let x = (Noisy("three"), x.0);
        let _ = &x;
        let _ = Noisy("immediate");
        log!("end");
    }

    pub fn run() {
        shadow(Noisy("one"));
    }
}

pub mod tail_temporary_against_local {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn tail(_param: Noisy) -> usize {
        let _local = Noisy("local");
        Noisy("temporary").len()
    }

    pub fn run() {
        log!("{}", tail(Noisy("param")));
    }
}

pub mod tail_temporary_in_match {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn tail() -> usize {
        let _local = Noisy("local");
        match Noisy("scrutinee").get() {
            Some(n) => {
                let _arm = Noisy("arm");
                n + Noisy("inner").len()
            }
            None => 0,
        }
    }

    pub fn run() {
        log!("{}", tail());
    }
}

pub mod tail_temporary_in_block {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn tail() -> usize {
        let _outer = Noisy("outer");
        let n = {
            let _inner = Noisy("inner");
            Noisy("temporary").len()
        };
        log!("between");
        n
    }

    pub fn run() {
        log!("{}", tail());
    }
}

pub mod if_let_scrutinee {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn scrutinee(expected: usize) -> usize {
        let _local = Noisy("local");
        if let Some(0) = Noisy("temporary").get() {
            0
        } else if let Some(1) = Noisy("second").get() {
            1
        } else {
            log!("else");
            expected
        }
    }

    pub fn run() {
        log!("{}", scrutinee(2));
    }
}

pub mod tail_borrow_of_parameter {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn locked(values: &Mutex<Vec<u8>>) -> usize {
        values.lock().unwrap().len()
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn borrowed(values: &RefCell<Vec<u8>>) -> u8 {
        let extra = values.borrow().len() as u8;
        values.borrow().iter().sum::<u8>() + extra
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn reentrant(values: &Mutex<Vec<u8>>) -> bool {
        match values.lock().unwrap().first() {
            Some(_) => values.try_lock().is_ok(),
            None => false,
        }
    }

    pub fn run() {
        log!("{}", locked(&Mutex::new(vec![1, 2])));
        log!("{}", borrowed(&RefCell::new(vec![1, 2])));
        log!("{}", reentrant(&Mutex::new(vec![1])));
    }
}

pub mod extended_temporaries {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn extended() -> usize {
        let held = &Noisy("held");
        let (a, _) = (&Noisy("in tuple"), Noisy("not held").len());
        let n = Noisy("statement").len();
        log!("use");
        held.len() + a.len() + n
    }

    pub fn run() {
        log!("{}", extended());
    }
}

pub mod statement_temporaries {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn statements() {
        Noisy("first").len();
        match Noisy("scrutinee").len() {
            _ => log!("in match"),
        }
        for n in Noisy("iterated").get().into_iter().rev() {
            log!("item {}", n);
        }
        { Noisy("in block") }.len();
        Noisy("last");
    }

    pub fn run() {
        statements();
    }
}

pub mod closure_captures {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn capture(pair: (Noisy, Noisy)) -> usize {
        let closure = move || pair.0.len();
        let n = closure();
        drop(closure);
        log!("after the closure");
        n
    }

    pub fn run() {
        log!("{}", capture((Noisy("captured"), Noisy("perhaps"))));
    }
}

pub mod struct_fields_and_assignment {
    use crate::support::*;

    struct Outer {
        _a: Noisy,
        b: Noisy,
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn assign(mut outer: Outer) -> Noisy {
        outer.b = Noisy("b2");
        log!("assigned");
        std::mem::replace(&mut outer.b, Noisy("b3"))
    }

    pub fn run() {
        assign(Outer { _a: Noisy("a"), b: Noisy("b") }).len();
        log!("end");
    }
}

pub mod early_exits {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn exits(_param: Noisy, fail: bool) -> Result<Noisy, Noisy> {
        let _first = Noisy("first");
        if fail {
            Err(Noisy("error"))?;
        }
        let _second = Noisy("second");
        for name in ["x", "y"].iter() {
            let _each = Noisy(name);
            if *name == "x" {
                continue;
            }
            return Ok(Noisy("ok"));
        }
        Err(Noisy("unused"))
    }

    pub fn run() {
        log!("{:?}", exits(Noisy("param"), true));
        log!("{:?}", exits(Noisy("param"), false));
    }
}

pub mod reborrowed_results {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn insert<'a>(map: &'a mut Vec<(u8, u8)>, key: u8) -> &'a mut u8 {
        if let Some(i) = map.iter().position(|entry| entry.0 == key) {
            return &mut map[i].1;
        }
        map.push((key, 0));
        &mut map.last_mut().unwrap().1
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn halves(slice: &mut [u8]) -> (&mut [u8], &mut [u8]) {
        let middle = slice.len() / 2;
        slice.split_at_mut(middle)
    }

    pub fn run() {
        let mut map = vec![];
        *insert(&mut map, 1) += 1;
        *insert(&mut map, 1) += 1;
        log!("{:?}", map);
        let mut array = [1, 2, 3, 4];
        let (left, right) = halves(&mut array);
        std::mem::swap(&mut left[0], &mut right[0]);
        log!("{:?}", array);
    }
}

pub mod returned_values {
    use crate::support::*;
    use std::borrow::Cow;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn cow(text: &str) -> Cow<'_, str> {
        if text.contains(' ') { text.replace(' ', "").into() } else { Cow::Borrowed(text) }
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn large(fill: u8) -> [u8; 4096] {
        [fill; 4096]
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn pointer(value: &u8) -> *const u8 {
        value
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn nested() -> ((), Option<Result<(), [&'static str; 1]>>) {
        ((), Some(Err(["x"])))
    }

    pub fn run() {
        log!("{:?} {:?}", cow("a b"), cow("ab"));
        log!("{}", large(3).iter().map(|x| u32::from(*x)).sum::<u32>());
        let value = 1;
        log!("{} {:?}", pointer(&value) == &value, nested());
    }
}

pub mod discarded_result {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn make(name: &'static str) -> Noisy {
        log!("make {}", name);
        Noisy(name)
    }

    pub fn run() {
        make("statement");
        let _ = make("underscore");
        let _kept = make("kept");
        log!("end");
    }
}

pub mod reference_counts {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn counts(a: Arc<u8>, b: &Rc<u8>) -> (usize, usize, usize, bool) {
        (Arc::strong_count(&a), Rc::strong_count(b), Rc::weak_count(b), Arc::try_unwrap(a).is_ok())
    }

    pub fn run() {
        log!("{:?}", counts(Arc::new(1), &Rc::new(2)));
    }
}
