//! Launches whose records are awaited, and the rule by which all of them have come.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};

use crate::record::graph_sizes::GraphSizes;
use crate::record::launches::NotedLaunch;
use crate::record::stream_progress::StreamProgress;

/// The time without a record after which launches are no longer waited for, once the GPU has gone on to later
/// ones. Missing records were then lost, and groups have no more of them.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The time without a record after which launches are lost in any case. What the GPU has reached is not always known, and
/// CUPTI is flushed for as long as it is waited for. This includes calls of which only a group without any record is
/// left: it may be empty, but CUPTI may as well withhold its records behind a kernel that runs for as long.
pub(super) const LONGEST_PATIENCE: Duration = Duration::from_secs(600);
/// Groups are complete after this many collections without a new record, once the GPU has gone on to later launches.
pub(super) const QUIET: u32 = 2;

/// A launch, by its correlation id, with what is known of its records.
#[derive(Clone, Copy)]
pub(crate) struct KnownLaunch {
    pub launch: NotedLaunch,
    /// The number of its records.
    pub records: u32,
    /// It was noted among the launches of its graph that get no more records for a while.
    pub is_quiet: bool,
    /// The ordinal of the device that its records name; `None` before the first record.
    pub device: Option<u32>,
    /// The ended call that waits for its records, and the position of its frame in that call.
    pub frame: Option<(u64, u32)>,
    /// The window that waits for its records.
    pub window: Option<u64>,
    /// It is of a group, and its call has been recorded.
    pub has_ended: bool,
}

pub(crate) type KnownLaunches = HashMap<u32, KnownLaunch>;

impl KnownLaunch {
    pub fn new(launch: NotedLaunch) -> KnownLaunch {
        KnownLaunch {
            launch,
            records: 0,
            is_quiet: false,
            device: None,
            frame: None,
            window: None,
            has_ended: false,
        }
    }

    /// Returns `true` if nothing waits for its records, or may do so later.
    pub fn is_over(&self) -> bool {
        self.window.is_none() && self.launch.owner.is_none() && !self.has_ended
    }
}

/// Changes what needs the records of a launch, and forgets the launch if nothing does any more.
pub(super) fn release(
    launches: &mut KnownLaunches,
    correlation: u32,
    change: impl FnOnce(&mut KnownLaunch),
) {
    if let Entry::Occupied(mut known) = launches.entry(correlation) {
        change(known.get_mut());
        if known.get().is_over() {
            known.remove();
        }
    }
}

/// The launches of an ended call or of a window, as far as their records are awaited.
pub(crate) struct Awaited {
    /// Their correlation ids.
    pub launches: Vec<u32>,
    /// The number of launches without a record, apart from groups. A graph without kernels, copies and memsets
    /// never has a record.
    missing: usize,
    /// Those of them that may never have one, because a helper thread made them for a call.
    optional: usize,
    pub has_groups: bool,
    /// The number of collections since the last record.
    pub quiet: u32,
    /// The time of the round with the last record or, before the first, the time at which the wait began.
    pub heard: Instant,
    /// There was a record in this round, whose time is not noted yet.
    has_heard: bool,
}

/// The state of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outlook {
    MoreExpected,
    Complete,
    Lost,
}

impl Awaited {
    pub fn new() -> Awaited {
        Awaited {
            launches: Vec::new(),
            missing: 0,
            optional: 0,
            has_groups: false,
            quiet: 0,
            heard: Instant::now(),
            has_heard: false,
        }
    }

    /// Adds a launch. It is not missed for ever if it `is_optional`.
    pub fn add(&mut self, known: &KnownLaunch, is_optional: bool) {
        self.launches.push(known.launch.correlation);
        self.has_groups |= known.launch.is_group;
        self.count(known, is_optional, |count| count + 1);
    }

    /// Forgets a launch, which has failed and has no record.
    pub fn forget(&mut self, known: &KnownLaunch, is_optional: bool) {
        if let Some(at) = self.launches.iter().rposition(|id| *id == known.launch.correlation) {
            self.launches.remove(at);
            self.count(known, is_optional, |count| count - 1);
        }
    }

    /// Notes a record, before its launch knows of it.
    pub fn hear(&mut self, known: &KnownLaunch, is_optional: bool) {
        (self.quiet, self.has_heard) = (0, true);
        self.count(known, is_optional, |count| count - 1);
    }

    fn count(&mut self, known: &KnownLaunch, is_optional: bool, change: fn(usize) -> usize) {
        if known.device.is_none() && !known.launch.is_group {
            self.missing = change(self.missing);
            self.optional = if is_optional { change(self.optional) } else { self.optional };
        }
    }

    /// Begins a round. Must be called before the records of a collection are taken.
    pub fn begin_round(&mut self, now: Instant) {
        self.quiet += 1;
        if std::mem::take(&mut self.has_heard) {
            self.heard = now;
        }
    }

    /// Lets time pass without a record.
    #[cfg(test)]
    pub fn wait(&mut self, time: Duration) {
        (self.heard, self.has_heard) = (self.heard - time, false);
    }

    /// Returns the time since the last record.
    pub fn silence(&self, now: Instant) -> Duration {
        if self.has_heard { Duration::ZERO } else { now.saturating_duration_since(self.heard) }
    }

    /// Does not count the current round: CUPTI was not flushed, so a lack of records means nothing.
    pub fn repeat_round(&mut self) {
        self.quiet = self.quiet.saturating_sub(1);
    }

    /// Returns the state of the records.
    ///
    /// A group may have more records until the GPU goes on to a later launch, unless `sizes` tells how many it has. One
    /// without any record may be empty, or CUPTI may withhold its records because other work in the same buffer has not
    /// ended. `is_last` means that CUPTI has returned all records, even those of work that has not ended.
    pub fn outlook(
        &self,
        known: &KnownLaunches,
        progress: &StreamProgress,
        sizes: &GraphSizes,
        now: Instant,
        is_last: bool,
    ) -> Outlook {
        let silence = self.silence(now);
        let is_silent = silence > PATIENCE;
        let launches = || self.launches.iter().filter_map(|id| known.get(id));
        let is_past = |of: &KnownLaunch| progress.are_past(of.launch.stream, of.launch.correlation);
        let has_ended = |of: &KnownLaunch| of.device.is_some() && is_past(of);
        let has_begun = |of: &KnownLaunch| of.device.is_some() || is_past(of);
        let is_whole = |of: &KnownLaunch| {
            of.launch.graph.is_some_and(|graph| sizes.are_all(graph, of.records))
        };
        let mut groups = launches().filter(|of| of.launch.is_group && !is_whole(of));
        let mut unsure = launches().filter(|of| of.launch.is_group || of.device.is_none());
        let lacks_own = self.missing > self.optional;
        let lacks_own_group = || {
            launches().any(|of| of.launch.is_group && !of.launch.is_by_helper() && !is_whole(of))
        };
        // The work of a helper thread may still be in a queue, or may have gone into a graph.
        let lost_if = |is_lost| if is_lost { Outlook::Lost } else { Outlook::Complete };
        match self.missing {
            0 if is_last || !self.has_groups || groups.clone().next().is_none() => {
                Outlook::Complete
            }
            0 if self.quiet >= QUIET && groups.all(has_ended) => Outlook::Complete,
            0 if is_silent && launches().all(has_begun) => Outlook::Complete,
            1.. if is_last && !lacks_own => Outlook::Complete,
            1.. if is_silent && unsure.all(is_past) => lost_if(lacks_own),
            _ if silence > LONGEST_PATIENCE => lost_if(lacks_own || lacks_own_group()),
            _ => Outlook::MoreExpected,
        }
    }
}
