//! Why brackets gave no sample, and how many.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a bracket gave no sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lost {
    /// The stream was being captured into a graph.
    Capture,
    /// The launch answered an error, or unwound.
    Failed,
    /// The future was dropped before it completed.
    Cancelled,
    /// Start and stop came from different threads of a stream that each thread has its own of.
    Thread,
    /// The stream was dropped before the stop.
    Stream,
    /// The context was destroyed or reset.
    Context,
    /// The bound on events was reached: the GPU was too far behind.
    Events,
    /// A driver call of ours failed.
    Driver,
    /// The elapsed time was no time.
    Invalid,
}

impl Lost {
    /// Every reason, in the order of the report.
    pub const ALL: [Lost; 9] = [
        Lost::Capture,
        Lost::Failed,
        Lost::Cancelled,
        Lost::Thread,
        Lost::Stream,
        Lost::Context,
        Lost::Events,
        Lost::Driver,
        Lost::Invalid,
    ];

    /// Its key in the reports.
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// What happened, in a clause.
    pub fn meaning(self) -> &'static str {
        self.words().1
    }

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Lost::Capture => ("capture", "the stream was being captured into a graph"),
            Lost::Failed => ("failed", "the launch answered an error, or unwound"),
            Lost::Cancelled => ("cancelled", "the future was dropped before it completed"),
            Lost::Thread => ("thread", "a per-thread stream was stopped on another thread"),
            Lost::Stream => ("stream", "the stream was dropped before the stop"),
            Lost::Context => ("context", "the context was destroyed or reset"),
            Lost::Events => ("events", "the GPU was too far behind for more events"),
            Lost::Driver => ("driver", "a driver call of the measurement failed"),
            Lost::Invalid => ("invalid", "the elapsed time was no time"),
        }
    }
}

/// How many brackets were lost, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses([u64; Lost::ALL.len()]);

impl Losses {
    /// Counts one more.
    #[inline]
    pub fn add(&mut self, reason: Lost) {
        if let Some(count) = self.0.get_mut(reason as usize) {
            *count += 1;
        }
    }

    /// Counts what another counted.
    pub fn add_all(&mut self, other: Losses) {
        self.0
            .iter_mut()
            .zip(other.0)
            .for_each(|(count, more)| *count = count.saturating_add(more));
    }

    /// Takes off what another counted.
    pub fn take_off(&mut self, other: Losses) {
        self.0
            .iter_mut()
            .zip(other.0)
            .for_each(|(count, less)| *count = count.saturating_sub(less));
    }

    /// How many were lost for this reason.
    pub fn of(&self, reason: Lost) -> u64 {
        self.0.get(reason as usize).copied().unwrap_or_default()
    }

    /// Every reason with its count.
    pub fn iter(&self) -> impl Iterator<Item = (Lost, u64)> + '_ {
        Lost::ALL.into_iter().zip(self.0)
    }

    /// The sum over all reasons.
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// An object of every reason's name and count, zeros too, so that scripts need no default.
impl Serialize for Losses {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// Reasons that are not there count 0.
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
    fn every_reason_is_counted_by_itself() {
        let mut losses = Losses::default();
        for (i, reason) in Lost::ALL.into_iter().enumerate() {
            for _ in 0..=i {
                losses.add(reason);
            }
        }
        for (i, (reason, count)) in losses.iter().enumerate() {
            assert_eq!((reason, count), (Lost::ALL[i], i as u64 + 1));
        }
        assert_eq!(losses.total(), 45);
    }

    #[test]
    fn losses_are_an_object_with_every_reason() {
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
