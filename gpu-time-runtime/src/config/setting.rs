//! One option from one source.

/// An option of the environment or of `configure()`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Setting<T> {
    /// Not given, so the next source decides.
    #[default]
    Unset,
    /// Invalid, or given up by the program: the default applies, whatever the next source says.
    UseDefault,
    Value(T),
}

impl<T> Setting<T> {
    /// Returns the setting of `next` if this source has none.
    pub fn or(self, next: Setting<T>) -> Setting<T> {
        if let Setting::Unset = self { next } else { self }
    }

    /// Returns the value, or `None` if the default applies.
    pub fn value(self) -> Option<T> {
        if let Setting::Value(value) = self { Some(value) } else { None }
    }

    /// Checks or converts the value.
    pub fn and_then<U>(self, check: impl FnOnce(T) -> Setting<U>) -> Setting<U> {
        match self {
            Setting::Unset => Setting::Unset,
            Setting::UseDefault => Setting::UseDefault,
            Setting::Value(value) => check(value),
        }
    }
}

/// `None` stands for the default.
impl<T> From<Option<T>> for Setting<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Setting::UseDefault, Setting::Value)
    }
}
