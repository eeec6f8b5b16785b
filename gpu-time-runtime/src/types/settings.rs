//! What goes before a bracket, also as the one number that threads share.

use crate::types::attribute::{Cold, Hold};

/// What goes before a bracket, after the configuration had its say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub cold: Option<Cold>,
    pub hold: Option<Hold>,
}

impl Settings {
    /// Nothing is asked for.
    pub(crate) const NONE: u64 = 0;

    /// As one number, which calls read while the program changes it: the state of the L2 in two bits, and
    /// the time of the hold in the others.
    pub(crate) fn pack(self) -> u64 {
        let cold = match self.cold {
            None => 0,
            Some(Cold::Clean) => 1,
            Some(Cold::Dirty) => 2,
        };
        let hold = match self.hold {
            None => 0,
            Some(Hold::UntilEnqueued) => 1,
            Some(Hold::For(ns)) => ns.saturating_add(2).min(u64::MAX >> 2),
        };
        hold << 2 | cold
    }

    pub(crate) fn unpack(packed: u64) -> Self {
        let cold = match packed & 3 {
            0 => None,
            1 => Some(Cold::Clean),
            _ => Some(Cold::Dirty),
        };
        let hold = match packed >> 2 {
            0 => None,
            1 => Some(Hold::UntilEnqueued),
            ns => Some(Hold::For(ns - 2)),
        };
        Settings { cold, hold }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_they_were_stored() {
        assert_eq!(Settings::unpack(Settings::NONE), Settings::default());
        let holds = [None, Some(Hold::UntilEnqueued), Some(Hold::For(0)), Some(Hold::For(1 << 60))];
        for hold in holds {
            for cold in [None, Some(Cold::Clean), Some(Cold::Dirty)] {
                let settings = Settings { cold, hold };
                assert_eq!(Settings::unpack(settings.pack()), settings);
            }
        }
    }
}
