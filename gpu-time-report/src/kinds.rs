//! Enums used in the report, written and read by name.

/// Declares an enum whose variants have the names that reports use.
macro_rules! named {
    ($(#[$of_enum:meta])* pub enum $kind:ident {
        $($(#[$of_variant:meta])* $variant:ident = $name:literal,)*
    }) => {
        $(#[$of_enum])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $kind {
            $($(#[$of_variant])* #[serde(rename = $name)] $variant,)*
        }

        impl $kind {
            /// All of them, in the order of the report.
            pub const ALL: [$kind; [$($name,)*].len()] = [$($kind::$variant,)*];

            /// Returns the name used in reports.
            pub fn name(self) -> &'static str {
                match self {
                    $($kind::$variant => $name,)*
                }
            }
        }
    };
}
pub(crate) use named;

named! {
    /// The contents of the L2 at the start of a bracket.
    #[derive(Default, PartialOrd, Ord, Hash)]
    pub enum CacheState {
        /// As left by previous work.
        #[default]
        AsFound = "as-found",
        /// None of the work's data, and no dirty lines.
        Cold = "cold",
        /// None of the work's data, but dirty lines that must be written back.
        ColdDirty = "cold-dirty",
        /// As left by the earlier launches of a cold call.
        AfterCold = "after-cold",
        /// Less of the work's data than before, because the L2 could not be emptied.
        Partial = "partial",
    }
}

named! {
    /// The interval measured by the times of a series.
    #[derive(Default, Hash)]
    pub enum Measure {
        /// The launches of one call, added up.
        #[default]
        Sum = "sum",
        /// One call, from the first operation that it enqueued to the last.
        Span = "span",
        /// One launch.
        Launch = "launch",
    }
}

named! {
    /// The work surrounded by a bracket.
    #[derive(Default, Hash)]
    pub enum ScopeKind {
        /// Each visible launch.
        #[default]
        Launches = "launches",
        /// The whole body.
        Body = "body",
    }
}

named! {
    /// The clock that measures a series' times.
    #[derive(Default, Hash)]
    pub enum Clock {
        /// CUDA events.
        #[default]
        Events = "events",
        /// Wall time on the host between two moments when the stream was idle.
        Sync = "sync",
        /// Wall time on the host.
        Host = "host",
        /// CUPTI's records of the kernels.
        Kernels = "kernels",
    }
}

named! {
    /// A remark made by the attribute about how it times a function. The macro decides at compile time
    /// which remarks apply. The JSON report contains their names; the table and the page contain their
    /// sentences.
    pub enum Remark {
        /// The macro could not parse the body, so it cannot look for launches.
        UnparsedBody = "unparsed-body",
        /// A launch is in a place where the macro cannot bracket it, so the whole body is timed.
        HiddenLaunch = "hidden-launch",
        /// Every visible launch is on another stream than the timed one.
        OtherStream = "other-stream",
    }
}

named! {
    /// The reason why the sample of the calls does not show the error of their total.
    pub enum UnknownError {
        /// The calls were picked by number, and the program may have the same period.
        Counted = "counted",
        /// Sampled calls made the launch several times, so its samples were not drawn independently.
        Repeated = "repeated",
        /// There are too few samples, or phases, to have included rare calls that may make up much of the total.
        Few = "few",
        /// Few of the samples make up most of the error.
        Dominated = "dominated",
    }
}

named! {
    /// The amount of detail in the table.
    #[derive(Default)]
    pub enum Detail {
        /// As much as fits on a screen: all functions, details of the largest, and the notes that ask
        /// for something to be done.
        #[default]
        Brief = "brief",
        /// All notes, with the meaning of each word, and all details.
        All = "all",
    }
}

impl Detail {
    /// The valid values, in a form that completes a sentence ending in "expected".
    pub const EXPECTED: &str = "`brief` or `all`";

    /// Parses the value of `GPU_TIME_NOTES`.
    pub fn parse(text: &str) -> Option<Detail> {
        Detail::ALL.into_iter().find(|detail| detail.name() == text)
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[test]
    fn name_matches_serialization() {
        fn same<T>(kinds: &[T], name: fn(T) -> &'static str)
        where
            T: Copy + PartialEq + std::fmt::Debug + Serialize + for<'a> Deserialize<'a>,
        {
            for &kind in kinds {
                let json = format!("{:?}", name(kind));
                assert_eq!(serde_json::to_string(&kind).unwrap(), json);
                assert_eq!(serde_json::from_str::<T>(&json).unwrap(), kind);
            }
        }
        same(&CacheState::ALL, CacheState::name);
        same(&[Measure::Sum, Measure::Span, Measure::Launch], Measure::name);
        same(&[ScopeKind::Launches, ScopeKind::Body], ScopeKind::name);
        same(&Remark::ALL, Remark::name);
        same(&[Clock::Events, Clock::Sync, Clock::Host, Clock::Kernels], Clock::name);
    }
}
