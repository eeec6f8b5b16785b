//! Reasons for lost samples, and their counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::kinds::named;
use crate::{Measure, units};

named! {
    /// The reason why a bracket gave no sample.
    #[derive(PartialOrd, Ord)]
    pub enum Lost {
        /// The stream was being captured into a graph.
        Capture = "capture",
        /// The launch returned an error, or the call unwound.
        Failed = "failed",
        /// The future was dropped before it completed, or several calls of a span were mistaken for
        /// one.
        Cancelled = "cancelled",
        /// The start and the stop were called on different threads, for a handle that refers to a
        /// different stream on every thread, or for a recorded call.
        Thread = "thread",
        /// The stream was dropped before the stop.
        Stream = "stream",
        /// The context was destroyed or reset.
        Context = "context",
        /// The limit on pending events was reached, because the GPU was too far behind.
        Events = "events",
        /// One of gpu-time's driver calls failed.
        Driver = "driver",
        /// The elapsed time was negative or not a number.
        Invalid = "invalid",
        /// CUPTI dropped a record of a recorded call, or never delivered it. Or too many calls waited for
        /// their records, or another thread was loading code.
        Records = "records",
        /// A recorded call went on for too long beyond its phase, or had more launches or inner calls than are kept at
        /// once.
        Long = "long",
        /// The recorded call around it ended first, or the thread or the process did.
        Unfinished = "unfinished",
    }
}

impl Lost {
    /// Returns the reason as a clause that completes "lost because".
    pub fn cause(self) -> &'static str {
        self.words().0
    }

    /// Returns the cause with its details.
    pub fn meaning(self) -> String {
        match self.words() {
            (cause, "") => cause.to_owned(),
            (cause, details) => format!("{cause}; {details}"),
        }
    }

    /// Returns the cause and its details.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Lost::Capture => (
                "the stream was being captured",
                "`graph` in the attribute times launches in graphs",
            ),
            Lost::Failed => ("the call panicked, or a launch of it returned an error", ""),
            Lost::Cancelled => (
                "the call was cancelled",
                "the future was dropped before it completed, or several calls of a span were mistaken for one",
            ),
            Lost::Thread => (
                "the stop was on another thread than the start",
                "the stream is a per-thread default stream, or the call was recorded",
            ),
            Lost::Stream => ("the stream was dropped before the stop event", ""),
            Lost::Context => ("the context was destroyed or reset", ""),
            Lost::Events => (
                "too many events were pending",
                "the GPU was so far behind that their limit was reached",
            ),
            Lost::Driver => ("a driver call of gpu-time failed", ""),
            Lost::Invalid => ("the elapsed time was negative or not a number", ""),
            Lost::Records => (
                "records of CUPTI were missing",
                "CUPTI did not deliver them, too many calls waited for theirs, or code was being loaded",
            ),
            Lost::Long => (
                "the call was too long to be recorded",
                "it went on beyond its phase, or made too many launches; the calls inside it are counted",
            ),
            Lost::Unfinished => {
                ("the recorded call around it, the thread or the process ended first", "")
            }
        }
    }
}

/// The number of lost brackets, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses([u64; Lost::ALL.len()]);

impl Losses {
    /// Counts one lost bracket.
    #[inline]
    pub fn add(&mut self, reason: Lost) {
        if let Some(count) = self.0.get_mut(reason as usize) {
            *count += 1;
        }
    }

    /// Adds another set of counts.
    pub fn add_all(&mut self, other: Losses) {
        self.0
            .iter_mut()
            .zip(other.0)
            .for_each(|(count, more)| *count = count.saturating_add(more));
    }

    /// Subtracts another set of counts.
    pub fn take_off(&mut self, other: Losses) {
        self.0
            .iter_mut()
            .zip(other.0)
            .for_each(|(count, less)| *count = count.saturating_sub(less));
    }

    /// Returns the number of brackets lost for a reason.
    pub fn of(&self, reason: Lost) -> u64 {
        self.0.get(reason as usize).copied().unwrap_or_default()
    }

    /// Returns every reason with its count.
    pub fn iter(&self) -> impl Iterator<Item = (Lost, u64)> + '_ {
        Lost::ALL.into_iter().zip(self.0)
    }

    /// Returns a sentence with the reasons, such as `2 calls were lost because …`. `None` if nothing
    /// was lost.
    pub(crate) fn sentence(&self, of: Measure) -> Option<String> {
        let found: Vec<(Lost, u64)> = self.iter().filter(|(_, count)| *count > 0).collect();
        let causes = match &found[..] {
            [] => return None,
            [(reason, _)] => format!(" because {}", reason.cause()),
            several => {
                let each = several
                    .iter()
                    .map(|(reason, n)| format!("{} because {}", units::count(*n), reason.cause()));
                format!(": {}", each.collect::<Vec<_>>().join(", "))
            }
        };
        Some(were_lost(self.total(), of) + &causes)
    }

    /// Returns the total number of lost brackets.
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// Counts lost calls or launches.
pub(crate) fn were_lost(count: u64, of: Measure) -> String {
    let [one, several] =
        if of == Measure::Launch { ["launch", "launches"] } else { ["call", "calls"] };
    match count {
        1 => format!("1 {one} was lost"),
        count => format!("{} {several} were lost", units::count(count)),
    }
}

/// Serializes to an object with every reason, including those with a count of 0, so that scripts
/// need no default.
impl Serialize for Losses {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// Missing reasons count as 0.
impl<'de> Deserialize<'de> for Losses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Losses, D::Error> {
        let counts = BTreeMap::<Lost, u64>::deserialize(deserializer)?;
        Ok(Losses(Lost::ALL.map(|reason| counts.get(&reason).copied().unwrap_or_default())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn add_counts_each_reason_separately() {
        let mut losses = Losses::default();
        for (i, reason) in Lost::ALL.into_iter().enumerate() {
            for _ in 0..=i {
                losses.add(reason);
            }
        }
        for (i, (reason, count)) in losses.iter().enumerate() {
            assert_eq!((reason, count), (Lost::ALL[i], i as u64 + 1));
        }
        assert_eq!(losses.total(), 78);
    }

    #[test]
    fn sentence_counts_each_cause() {
        let mut losses = Losses::default();
        assert_eq!(losses.sentence(Measure::Sum), None);
        losses.add(Lost::Failed);
        let one = losses.sentence(Measure::Launch).unwrap();
        assert!(one.starts_with("1 launch ") && one.ends_with(Lost::Failed.cause()), "{one}");
        (0..10).for_each(|_| losses.add(Lost::Capture));
        let expected = "11 calls were lost: 10 because the stream was being captured, 1 because the call panicked, or \
                        a launch of it returned an error";
        assert_eq!(losses.sentence(Measure::Sum).unwrap(), expected);
    }

    #[test]
    fn json_has_every_reason() {
        let mut losses = Losses::default();
        losses.add(Lost::Capture);
        let json = serde_json::to_value(losses).unwrap();
        assert_eq!(json["capture"], 1);
        assert_eq!(json["invalid"], 0);
        assert_eq!(json.as_object().unwrap().len(), Lost::ALL.len());
        for reason in Lost::ALL {
            assert!(json[reason.name()].is_u64(), "{}", reason.name());
        }
        assert_eq!(serde_json::from_value::<Losses>(json).unwrap(), losses);
        assert_eq!(serde_json::from_str::<Losses>(r#"{"capture": 1}"#).unwrap(), losses);
    }
}
