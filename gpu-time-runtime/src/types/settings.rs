//! Bracket preparation, packed into one atomic word.

use crate::types::attribute::{Cold, Hold};

/// The preparation for each of a site's brackets, as set by its attribute and the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub cold: Option<Cold>,
    pub hold: Option<Hold>,
}

impl Settings {
    /// The packed default: no preparation.
    pub(crate) const NONE: u64 = 0;

    /// Packs the settings into one word, which calls can read while another thread changes it. The
    /// L2 state takes two bits and the hold time the rest.
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

    /// Restores settings from [`Settings::pack`].
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
    fn settings_survive_packing() {
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
