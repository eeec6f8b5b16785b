//! Trait methods and their defaults.

pub mod trait_method {
    use crate::support::*;

    trait Area {
        fn area(&self) -> f32;
    }

    struct Disc(f32);
    struct Tile(f32);

    impl Area for Disc {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn area(&self) -> f32 {
            3.0 * self.0 * self.0
        }
    }

    impl Area for Tile {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn area(&self) -> f32 {
            self.0 * self.0
        }
    }

    pub fn run() {
        let all: [&dyn Area; 2] = [&Disc(2.0), &Tile(2.0)];
        log!("{:?}", all.iter().map(|shape| shape.area()).collect::<Vec<_>>());
    }
}

pub mod trait_default {
    use crate::support::*;

    trait Greet {
        fn name(&self) -> String;

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn greet(&self) -> String {
            format!("hello {}", self.name())
        }

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn twice(self) -> (String, Self)
        where
            Self: Sized,
        {
            (self.greet().repeat(2), self)
        }
    }

    struct A;
    struct B;

    impl Greet for A {
        fn name(&self) -> String {
            "a".into()
        }
    }

    impl Greet for B {
        fn name(&self) -> String {
            "b".into()
        }

        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn greet(&self) -> String {
            "overridden".to_owned()
        }
    }

    pub fn run() {
        log!("{} {}", A.greet(), B.greet());
        log!("{} {}", A.twice().0, B.twice().0);
    }
}

pub mod trait_associated_function {
    use crate::support::*;

    trait Make: Sized {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn make() -> Option<Self> {
            None
        }
    }

    impl Make for u8 {}
    impl Make for String {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn make() -> Option<Self> {
            Some(Self::new())
        }
    }

    pub fn run() {
        log!("{:?} {:?}", u8::make(), String::make());
    }
}

pub mod generic_trait {
    use crate::support::*;

    trait Visit<T: ?Sized> {
        fn visit<'a, 'b: 'a>(&'a self, value: &'b T) -> &'b T;
    }

    impl<T: ?Sized, F: Fn(&T)> Visit<T> for F {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn visit<'a, 'b: 'a>(&'a self, value: &'b T) -> &'b T {
            self(value);
            value
        }
    }

    pub fn run() {
        let shout = |text: &str| log!("seen {}", text);
        log!("{}", Visit::<str>::visit(&shout, "x"));
    }
}

pub mod trait_impl_trait_return {
    use crate::support::*;

    trait Labels {
        fn label(&self) -> impl Display;
    }

    impl Labels for u8 {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn label(&self) -> impl Display {
            format!("<{}>", self)
        }
    }

    pub fn run() {
        log!("{}", 5u8.label());
    }
}

pub mod impl_for_foreign_types {
    use crate::support::*;

    trait Sum {
        fn sum(&self) -> i32;
    }

    impl Sum for [i32] {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn sum(&self) -> i32 {
            self.iter().sum()
        }
    }

    impl<T: Sum + ?Sized> Sum for &T {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn sum(&self) -> i32 {
            (**self).sum() + 1
        }
    }

    pub fn run() {
        let slice: &[i32] = &[1, 2, 3];
        log!("{} {}", <[i32] as Sum>::sum(slice), <&[i32] as Sum>::sum(&slice));
    }
}

pub mod supertrait_dispatch {
    use crate::support::*;

    trait Base {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn id(&self) -> u8 {
            1
        }
    }

    trait Derived: Base {
        #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
        fn sum(&self) -> u8 {
            self.id() + Base::id(self)
        }
    }

    impl Base for () {}
    impl Derived for () {}

    pub fn run() {
        let derived: Box<dyn Derived> = Box::new(());
        let base: &dyn Base = &*derived;
        log!("{} {}", derived.sum(), base.id());
    }
}
