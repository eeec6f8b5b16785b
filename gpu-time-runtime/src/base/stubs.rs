//! Functions that stand in for those of a feature that is off.

/// Declares functions that do nothing and return the default of their result. With a type and a colon before them, they are
/// methods of that type.
macro_rules! stubs {
    ($kind:ident: $(fn $name:ident(&self $(, $argument:ty)*) $(-> $result:ty)?;)*) => {
        impl $kind {
            $(
                pub fn $name(&self $(, _: $argument)*) $(-> $result)? {
                    Default::default()
                }
            )*
        }
    };
    ($(fn $name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        $(
            pub(crate) fn $name($(_: $argument),*) $(-> $result)? {
                Default::default()
            }
        )*
    };
}

pub(crate) use stubs;
