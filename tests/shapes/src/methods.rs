//! Receivers, operators, and methods that the standard library calls.

pub mod by_reference {
    use crate::support::*;

    struct S(i32);

    impl S {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn get(&self) -> i32 {
            self.0
        }

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn set(&mut self, value: i32) -> &mut Self {
            self.0 = value;
            self
        }
    }

    pub fn run() {
        log!("{}", S(1).set(2).set(3).get());
    }
}

pub mod by_value {
    use crate::support::*;

    struct S(Noisy);

    impl S {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn consume(self) -> &'static str {
            (self.0).0
        }

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn rename(mut self, name: &'static str) -> Self {
            (self.0).0 = name;
            self
        }
    }

    pub fn run() {
        log!("{}", S(Noisy("old")).rename("new").consume());
    }
}

pub mod smart_pointer_receivers {
    use crate::support::*;

    struct S(u8);

    impl S {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn boxed(self: Box<Self>) -> u8 {
            self.0
        }

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn counted(self: Rc<Self>) -> usize {
            Rc::strong_count(&self)
        }

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn shared(self: &Arc<Self>) -> usize {
            Arc::strong_count(self)
        }

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn pinned(self: Pin<&mut Self>) -> u8 {
            let this = self.get_mut();
            this.0 += 1;
            this.0
        }

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn rebound(mut self: &Self, other: &'static Self) -> u8 {
            if self.0 == 0 {
                self = other;
            }
            self.0
        }
    }

    pub fn run() {
        static OTHER: S = S(9);
        log!("{} {}", Box::new(S(1)).boxed(), Rc::new(S(1)).counted());
        log!("{} {}", Arc::new(S(1)).shared(), Pin::new(&mut S(1)).pinned());
        log!("{} {}", S(0).rebound(&OTHER), S(4).rebound(&OTHER));
    }
}

pub mod named_receiver_lifetime {
    use crate::support::*;

    struct Parser<'t> {
        text: &'t str,
    }

    impl<'t> Parser<'t> {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn take<'s>(&'s mut self, n: usize) -> (&'t str, &'s mut Parser<'t>)
        where
            't: 's,
        {
            let (head, tail) = self.text.split_at(n);
            self.text = tail;
            (head, self)
        }
    }

    pub fn run() {
        let mut parser = Parser { text: "abcdef" };
        let (head, rest) = parser.take(2);
        log!("{} {}", head, rest.take(1).0);
        log!("{}", parser.text);
    }
}

pub mod enum_method {
    use crate::support::*;

    #[derive(Debug)]
    enum Tree {
        Leaf(i32),
        Node(Box<Tree>, Box<Tree>),
    }

    impl Tree {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn sum(&self) -> i32 {
            match self {
                Self::Leaf(n) => *n,
                Self::Node(a, b) => a.sum() + b.sum(),
            }
        }

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn leftmost(&mut self) -> &mut i32 {
            match self {
                Tree::Leaf(n) => n,
                Tree::Node(a, _) => a.leftmost(),
            }
        }
    }

    pub fn run() {
        let leaf = |n| Box::new(Tree::Leaf(n));
        let mut tree = Tree::Node(leaf(1), Box::new(Tree::Node(leaf(2), leaf(3))));
        *tree.leftmost() = 5;
        log!("{} {:?}", tree.sum(), tree);
    }
}

pub mod same_name_in_two_impls {
    use crate::support::*;

    struct A;
    struct B;

    impl A {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn run(&self) -> &'static str {
            "a"
        }
    }

    impl B {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn run(&self) -> &'static str {
            "b"
        }
    }

    pub fn run() {
        log!("{} {}", A.run(), B.run());
    }
}

pub mod operators {
    use crate::support::*;
    use std::ops::{AddAssign, Deref, Index, IndexMut, Neg};

    #[derive(Debug)]
    struct V([i32; 2]);

    impl Neg for V {
        type Output = Self;

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn neg(self) -> Self {
            V([-self.0[0], -self.0[1]])
        }
    }

    impl AddAssign<i32> for V {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn add_assign(&mut self, by: i32) {
            self.0.iter_mut().for_each(|x| *x += by)
        }
    }

    impl Index<usize> for V {
        type Output = i32;

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn index(&self, i: usize) -> &i32 {
            &self.0[i]
        }
    }

    impl IndexMut<usize> for V {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn index_mut(&mut self, i: usize) -> &mut i32 {
            &mut self.0[i]
        }
    }

    impl Deref for V {
        type Target = [i32];

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn deref(&self) -> &[i32] {
            &self.0
        }
    }

    pub fn run() {
        let mut v = -V([1, 2]);
        v += 10;
        v[1] = v[0] * 2;
        log!("{:?} {}", v, v.len());
    }
}

pub mod standard_traits {
    use crate::support::*;

    struct Count(u8);

    impl Iterator for Count {
        type Item = u8;

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn next(&mut self) -> Option<u8> {
            self.0 = self.0.checked_sub(1)?;
            Some(self.0)
        }
    }

    impl Display for Count {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "count {}", self.0)?;
            Ok(())
        }
    }

    impl std::str::FromStr for Count {
        type Err = std::num::ParseIntError;

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn from_str(s: &str) -> Result<Self, Self::Err> {
            Ok(Self(s.parse()?))
        }
    }

    impl Clone for Count {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn clone(&self) -> Self {
            Self(self.0)
        }
    }

    impl Drop for Count {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn drop(&mut self) {
            log!("drop {}", self);
        }
    }

    pub fn run() {
        let count: Count = "3".parse().unwrap();
        log!("{:?} {}", count.clone().collect::<Vec<_>>(), count);
        log!("{:?}", "x".parse::<Count>().err());
    }
}
