//! The versions of CUPTI that the stand-in can present.

use std::ptr;

use crate::abi;

/// The text in the library's file that names the toolkit whose version the library presents.
/// [`choose`] changes the digits, so that a process can load several versions.
#[used]
static PRESENTED: [u8; 32] = *b"gpu-time-sim-cupti toolkit 13.0\0";
const NAME_BYTES: usize = 27;

/// Makes the library in this image present the version of `toolkit`.
pub(crate) fn choose(image: &mut [u8], toolkit: &str) {
    let at = image.windows(PRESENTED.len()).position(|bytes| bytes == PRESENTED);
    let at = at.expect("the library names a toolkit") + NAME_BYTES;
    image[at..at + toolkit.len()].copy_from_slice(toolkit.as_bytes());
}

/// Returns the version that this library presents.
pub(crate) fn presented() -> &'static Traits {
    // SAFETY: reads a static. The volatile access sees the file's text, not the compiler's.
    let text = unsafe { ptr::read_volatile(&raw const PRESENTED) };
    let toolkit = str::from_utf8(&text[NAME_BYTES..text.len() - 1]).ok();
    toolkit.and_then(Traits::of).expect("a known version")
}

/// The properties in which versions differ.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Traits {
    pub toolkit: &'static str,
    /// File name of the library.
    pub file: &'static str,
    /// Result of `cuptiGetVersion`.
    pub number: u32,
    /// One more than the highest id of a driver function.
    pub driver_ids: u32,
    kernel_bytes: usize,
    copy_bytes: usize,
    set_bytes: usize,
    /// Exported functions that this version lacks.
    pub lacks: &'static [&'static str],
}

const SINCE_13_0: &[&str] = &["cuptiSubscribe_v2"];
const SINCE_13_2: &[&str] =
    &["cuptiActivityEnable_v2", "cuptiActivityDisable_v2", "cuptiActivityRegisterCallbacks_v2"];
const SINCE_13_5: &[&str] =
    &["cuptiActivityGetNextRecord_v2", "cuptiActivityGetNumDroppedRecords_v2"];
const BEFORE_13_0: &[&str] =
    &[SINCE_13_0[0], SINCE_13_2[0], SINCE_13_2[1], SINCE_13_2[2], SINCE_13_5[0], SINCE_13_5[1]];
const BEFORE_13_2: &[&str] =
    &[SINCE_13_2[0], SINCE_13_2[1], SINCE_13_2[2], SINCE_13_5[0], SINCE_13_5[1]];

/// All versions that the stand-in can present. The first and the last have made-up but plausible values: no headers
/// were available for 10.2, and 99.0 does not exist. Clients refuse both because of their version numbers.
pub(crate) const VERSIONS: &[Traits] = &[
    traits("10.2", "libcupti.so", 12, 600, (144, 64, 56), BEFORE_13_0),
    traits("11.8", "libcupti.so.11.8", 18, 677, (200, 88, 88), BEFORE_13_0),
    traits("12.4", "libcupti.so.12", 22, 754, (208, 88, 88), BEFORE_13_0),
    traits("13.0", "libcupti.so.13", 130_001, 807, (216, 96, 88), BEFORE_13_2),
    traits("13.2", "libcupti.so.13", 130_202, 846, (224, 96, 88), SINCE_13_5),
    traits("13.5", "libcupti.so.13", 130_500, 877, (248, 112, 104), &[]),
    traits("99.0", "libcupti.so", 990_000, 877, (248, 112, 104), &[]),
];

const fn traits(
    toolkit: &'static str,
    file: &'static str,
    number: u32,
    driver_ids: u32,
    (kernel_bytes, copy_bytes, set_bytes): (usize, usize, usize),
    lacks: &'static [&'static str],
) -> Traits {
    Traits { toolkit, file, number, driver_ids, kernel_bytes, copy_bytes, set_bytes, lacks }
}

impl Traits {
    /// Returns the version of a toolkit.
    pub fn of(toolkit: &str) -> Option<&'static Self> {
        VERSIONS.iter().find(|version| version.toolkit == toolkit)
    }

    /// Returns the size of a record, or `None` if the stand-in does not record this kind.
    pub fn record_bytes(&self, kind: u32) -> Option<usize> {
        match kind {
            abi::KERNEL | abi::CONCURRENT_KERNEL => Some(self.kernel_bytes),
            abi::MEMCPY => Some(self.copy_bytes),
            // The same in all versions.
            abi::MEMCPY2 => Some(96),
            abi::MEMSET => Some(self.set_bytes),
            _ => None,
        }
    }

    /// Returns `true` if the library works on a driver of this version, as returned by
    /// `cuDriverGetVersion`. The driver's major version must be the same or newer.
    pub fn runs_on(&self, driver: i32) -> bool {
        let major = self.toolkit.split('.').next().and_then(|major| major.parse::<i32>().ok());
        major.is_some_and(|major| major <= driver / 1_000)
    }

    /// Returns `true` if several clients can subscribe.
    pub fn shares(&self) -> bool {
        self.number >= 130_200
    }

    /// Returns `true` if a client that lets others subscribe gets no records. The real CUPTI of
    /// CUDA 13.2 loses many of them.
    pub fn loses_shared_records(&self) -> bool {
        self.toolkit == "13.2"
    }

    /// Returns `true` if a thread gets no more callbacks after the callback of a function was switched
    /// off while the thread was in that function.
    pub fn loses_callbacks(&self) -> bool {
        self.number >= 130_000
    }

    /// Returns `true` if switching a kind off may deadlock while another thread launches.
    pub fn needs_launches_apart(&self) -> bool {
        self.number < 130_000
    }
}
