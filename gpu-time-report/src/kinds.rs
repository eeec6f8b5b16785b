//! Enums used in the report, written and read by name.

use serde::{Deserialize, Serialize};

/// The contents of the L2 at the start of a bracket.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum CacheState {
    /// As left by previous work.
    #[default]
    AsFound,
    /// None of the work's data, and no dirty lines.
    Cold,
    /// None of the work's data, but dirty lines that must be written back.
    ColdDirty,
    /// As left by the earlier launches of a cold call.
    AfterCold,
    /// Less of the work's data than before, because the L2 could not be emptied.
    Partial,
}

impl CacheState {
    /// Every state, in the order of the discriminants.
    pub const ALL: [CacheState; 5] = [
        CacheState::AsFound,
        CacheState::Cold,
        CacheState::ColdDirty,
        CacheState::AfterCold,
        CacheState::Partial,
    ];

    /// Returns the name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            CacheState::AsFound => "as-found",
            CacheState::Cold => "cold",
            CacheState::ColdDirty => "cold-dirty",
            CacheState::AfterCold => "after-cold",
            CacheState::Partial => "partial",
        }
    }
}

/// The interval measured by the times of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// The launches of one call, added up.
    #[default]
    Sum,
    /// One call, from the first operation that it enqueued to the last.
    Span,
    /// One launch.
    Launch,
}

impl Measure {
    /// Returns the name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Sum => "sum",
            Measure::Span => "span",
            Measure::Launch => "launch",
        }
    }
}

/// The work surrounded by a bracket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScopeKind {
    /// Each visible launch.
    #[default]
    Launches,
    /// The whole body.
    Body,
}

impl ScopeKind {
    /// Returns the name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            ScopeKind::Launches => "launches",
            ScopeKind::Body => "body",
        }
    }
}

/// The clock that measures a series' times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// CUDA events.
    #[default]
    Events,
    /// Wall time on the host between two moments when the stream was idle.
    Sync,
    /// Wall time on the host.
    Host,
    /// CUPTI's records of the kernels.
    Kernels,
}

impl Clock {
    /// Returns the name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Clock::Events => "events",
            Clock::Sync => "sync",
            Clock::Host => "host",
            Clock::Kernels => "kernels",
        }
    }
}

#[cfg(test)]
mod tests {
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
        same(&[Clock::Events, Clock::Sync, Clock::Host, Clock::Kernels], Clock::name);
    }
}
