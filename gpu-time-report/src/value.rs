//! Construction of a report's values in other crates.

/// Evaluates a struct expression of a report's value, in crates where its `#[non_exhaustive]` forbids
/// one. Fields that are not named come from the base after `..`, or are the default. The fields are evaluated
/// before the base, because the base may be moved and a field may borrow it.
#[doc(hidden)]
#[macro_export]
macro_rules! value {
    ($value:ident { $($fields:tt)* }) => { $crate::value!(@ $value [] $($fields)*) };
    (@ $value:ident $done:tt $field:ident: $new:expr $(, $($rest:tt)*)?) => {{
        let new = $new;
        $crate::value!(@done $value $done $field new $($($rest)*)?)
    }};
    (@ $value:ident $done:tt $field:ident $(, $($rest:tt)*)?) => {
        $crate::value!(@done $value $done $field $field $($($rest)*)?)
    };
    (@ $value:ident $done:tt) => { $crate::value!(@ $value $done ..$crate::$value::default()) };
    (@ $value:ident [$($field:ident $new:ident)*] ..$base:expr) => {{
        let mut value = $base;
        $(value.$field = $new;)*
        value
    }};
    (@done $value:ident [$($done:tt)*] $field:ident $new:ident $($rest:tt)*) => {
        $crate::value!(@ $value [$($done)* $field $new] $($rest)*)
    };
}
