//! What a report has a few words for: each kind is read and written by its name.

use serde::{Deserialize, Serialize};

/// What the L2 held when the bracket began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheState {
    /// Whatever the work before it left there.
    AsFound,
    /// None of the work's data, and nothing to write back.
    Cold,
    /// None of the work's data, and dirty lines that must be written back.
    ColdDirty,
    /// What the earlier launches of a cold call left there.
    AfterCold,
    /// Less of the work's data than before, but it could not be emptied.
    Partial,
}

impl CacheState {
    /// Every state, in the order of their discriminants.
    pub const ALL: [CacheState; 5] = [
        CacheState::AsFound,
        CacheState::Cold,
        CacheState::ColdDirty,
        CacheState::AfterCold,
        CacheState::Partial,
    ];

    /// Its name in the reports.
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

/// What the time of a series is the time of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// The launches of one call, added up.
    Sum,
    /// One call, from the first thing that it enqueued to the last.
    Span,
    /// One launch.
    Launch,
}

impl Measure {
    /// Its name in the reports.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Sum => "sum",
            Measure::Span => "span",
            Measure::Launch => "launch",
        }
    }
}

/// What a bracket goes around.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScopeKind {
    /// Each visible launch.
    Launches,
    /// The whole body.
    Body,
}

impl ScopeKind {
    /// Its name in the reports.
    pub fn name(self) -> &'static str {
        match self {
            ScopeKind::Launches => "launches",
            ScopeKind::Body => "body",
        }
    }
}

/// What tells the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// CUDA events.
    Events,
    /// Wall time on the host, between two moments at which the stream was idle.
    Sync,
    /// Wall time on the host.
    Host,
}

impl Clock {
    /// Its name in the reports.
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
    fn the_name_is_what_is_read_and_written() {
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
