//! Functions that stand in for those of a feature that is off.

/// Declares functions that do nothing and return the default of their result.
macro_rules! stubs {
    ($(fn $name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        $(
            pub(crate) fn $name($(_: $argument),*) $(-> $result)? {
                Default::default()
            }
        )*
    };
}

pub(crate) use stubs;
