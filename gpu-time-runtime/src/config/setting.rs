//! The state of one option.

/// One option of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Setting<T> {
    /// Not given: the next source decides.
    #[default]
    Unset,
    /// Given without a valid value: the default applies, whatever the next source says.
    Default,
    Value(T),
}

impl<T> Setting<T> {
    /// This setting, or `other` if it is unset.
    pub fn or(self, other: Self) -> Self {
        match self {
            Setting::Unset => other,
            given => given,
        }
    }

    /// The value, if there is one.
    pub fn value(self) -> Option<T> {
        match self {
            Setting::Value(value) => Some(value),
            Setting::Unset | Setting::Default => None,
        }
    }
}
