//! Keeps the first error of CUPTI that does not stop recording but costs records.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::cupti::library::Library;
use crate::cupti::records::MEMSET;

/// The requests that CUPTI may refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Flush,
    Stop,
    Memsets,
    Copies,
}

const ALL: [Refused; 4] = [Refused::Flush, Refused::Stop, Refused::Memsets, Refused::Copies];

/// The first error, packed into one value because callbacks note errors too: the error code in the low half,
/// and 1 plus the index of the request in [`ALL`] in the high half. 0 if there is none.
struct FirstError(AtomicU64);

static FIRST: FirstError = FirstError(AtomicU64::new(0));

impl Refused {
    /// Returns the request to switch on this kind of activity.
    pub fn of(kind: u32) -> Refused {
        if kind == MEMSET { Refused::Memsets } else { Refused::Copies }
    }

    fn description(self) -> &'static str {
        match self {
            Refused::Flush => "hand over its records",
            Refused::Stop => "stop recording",
            Refused::Memsets => "record memsets",
            Refused::Copies => "record copies",
        }
    }
}

/// Notes an error of CUPTI. Only the first one is kept.
pub(super) fn note(refused: Refused, code: c_int) {
    FIRST.note(refused, code);
}

/// Returns one sentence that describes the first error, if there is one.
pub(super) fn describe(library: &Library) -> Option<String> {
    let (refused, code) = FIRST.get()?;
    Some(format!("CUPTI could not {}: {}", refused.description(), library.name_of(code)))
}

impl FirstError {
    fn note(&self, refused: Refused, code: c_int) {
        let packed = (refused as u64 + 1) << 32 | u64::from(code.cast_unsigned());
        _ = self.0.compare_exchange(0, packed, Relaxed, Relaxed);
    }

    fn get(&self) -> Option<(Refused, c_int)> {
        let packed = self.0.load(Relaxed);
        let index = (packed >> 32).checked_sub(1)?;
        Some((*ALL.get(index as usize)?, (packed as u32).cast_signed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_error_is_kept() {
        for refused in ALL {
            let first = FirstError(AtomicU64::new(0));
            assert_eq!(first.get(), None);
            first.note(refused, -1);
            first.note(Refused::Copies, 2);
            assert_eq!(first.get(), Some((refused, -1)));
        }
    }
}
