//! Enums of the report, written and read by name.

use serde::{Deserialize, Serialize};

/// The contents of the L2 at the start of the bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheState {
    /// As the work before it left them.
    AsFound,
    /// None of the work's data, and no dirty lines.
    Cold,
    /// None of the work's data, but dirty lines that must be written back.
    ColdDirty,
    /// As the earlier launches of a cold call left them.
    AfterCold,
    /// Less of the work's data than before: the L2 could not be emptied.
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

    /// Returns the name in the reports.
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

/// The interval that the times of a series measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// The launches of one call, added up.
    Sum,
    /// One call, from the first operation that it enqueued to the last.
    Span,
    /// One launch.
    Launch,
}

impl Measure {
    /// Returns the name in the reports.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Sum => "sum",
            Measure::Span => "span",
            Measure::Launch => "launch",
        }
    }
}

/// The work that a bracket surrounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScopeKind {
    /// Each visible launch.
    Launches,
    /// The whole body.
    Body,
}

impl ScopeKind {
    /// Returns the name in the reports.
    pub fn name(self) -> &'static str {
        match self {
            ScopeKind::Launches => "launches",
            ScopeKind::Body => "body",
        }
    }
}

/// The clock that measures the times of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// CUDA events.
    Events,
    /// Wall time on the host between two moments at which the stream was idle.
    Sync,
    /// Wall time on the host.
    Host,
}

impl Clock {
    /// Returns the name in the reports.
    pub fn name(self) -> &'static str {
        match self {
            Clock::Events => "events",
            Clock::Sync => "sync",
            Clock::Host => "host",
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
        same(&[Clock::Events, Clock::Sync, Clock::Host], Clock::name);
    }
}
