//! Which functions and series of two reports are the same.

use gpu_time_report::{CacheState, Clock, Launch, Measure, Series, Site};

/// What tells the series of a function apart, on a device.
#[derive(PartialEq, Eq, Clone, Copy)]
pub struct Place<'a> {
    launch: Option<&'a Launch>,
    measure: Measure,
    key: Option<&'a str>,
    cache: CacheState,
    clock: Clock,
    graph: bool,
}

impl<'a> Place<'a> {
    /// That of a series.
    pub fn of(series: &'a Series) -> Place<'a> {
        let &Series { measure, cache, clock, graph, .. } = series;
        Place { launch: series.launch(), measure, key: series.key(), cache, clock, graph }
    }
}

/// Whether two are the same function.
pub fn is_same_site(one: &Site, other: &Site) -> bool {
    (one.name(), one.file(), one.line()) == (other.name(), other.file(), other.line())
}
