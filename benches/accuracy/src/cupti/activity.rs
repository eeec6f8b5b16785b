//! CUPTI's activity records.

use std::ffi::{CStr, c_char};
use std::mem::offset_of;

/// `CUPTI_ACTIVITY_KIND_MEMCPY`, `_MEMSET` and `_CONCURRENT_KERNEL`, kernels last.
pub const KINDS: [u32; 3] = [MEMCPY, MEMSET, KERNEL];
const MEMCPY: u32 = 1;
const MEMSET: u32 = 2;
const KERNEL: u32 = 10;

/// The common prefix of all kinds of records. The layout applies to `CUpti_ActivityKernel4` to
/// `13`, `CUpti_ActivityMemcpy` to `7` and `CUpti_ActivityMemset` to `5`, which are the versions in
/// CUPTI 9 to 13.5.
#[repr(C)]
struct Prefix {
    kind: u32,
    differs: [u8; 12],
    start_ns: u64,
    end_ns: u64,
}

/// The longer prefix of kernel records, in the same versions.
#[repr(C)]
struct KernelPrefix {
    prefix: Prefix,
    differs: [u8; 72],
    name: *const c_char,
}

const _: () = {
    assert!(offset_of!(Prefix, kind) == 0);
    assert!(offset_of!(Prefix, start_ns) == 16);
    assert!(offset_of!(Prefix, end_ns) == 24);
    assert!(offset_of!(KernelPrefix, name) == 104);
};

/// A kernel, a copy or a memset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    /// The kernel's name; `None` for a copy or a memset.
    pub kernel: Option<String>,
    /// The start time on CUPTI's clock, in nanoseconds.
    pub start_ns: u64,
    /// The end on the same clock.
    pub end_ns: u64,
}

impl Activity {
    /// Returns the duration in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }

    /// Reads a record. Returns `None` for another kind of record, or if either time is missing.
    ///
    /// # Safety
    /// `record` must point to a CUPTI activity record, aligned to 8 bytes.
    pub unsafe fn read(record: *const u8) -> Option<Activity> {
        // SAFETY: every record starts with its kind.
        let kind = unsafe { record.cast::<u32>().read() };
        if !KINDS.contains(&kind) {
            return None;
        }
        // SAFETY: records of these kinds start with `Prefix`.
        let Prefix { start_ns, end_ns, .. } = unsafe { record.cast::<Prefix>().read() };
        // CUPTI writes 0 for a time that it could not determine.
        if start_ns == 0 || end_ns < start_ns {
            return None;
        }
        let kernel = (kind == KERNEL).then(|| {
            // SAFETY: kernel records start with `KernelPrefix`.
            let name = unsafe { (*record.cast::<KernelPrefix>()).name };
            if name.is_null() {
                return String::new();
            }
            // SAFETY: the name is NUL-terminated and lives as long as CUPTI is loaded.
            unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
        });
        Some(Activity { kernel, start_ns, end_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a 216-byte record, the size of `CUpti_ActivityKernel10`.
    fn record(kind: u32, start: u64, end: u64, name: &CStr) -> [u64; 27] {
        let mut words = [0xABAB_ABAB_ABAB_ABAB; 27];
        words[0] = 0xABAB_ABAB_0000_0000 | u64::from(kind);
        words[2] = start;
        words[3] = end;
        words[13] = name.as_ptr() as u64;
        words
    }

    fn read(words: &[u64; 27]) -> Option<Activity> {
        // SAFETY: the record has the same layout as CUPTI's.
        unsafe { Activity::read(words.as_ptr().cast()) }
    }

    #[test]
    fn only_kernels_have_names() {
        let kernel = read(&record(KERNEL, 1_000, 1_545, c"empty")).unwrap();
        assert_eq!(kernel.kernel.as_deref(), Some("empty"));
        assert_eq!(kernel.duration_ns(), 545);
        for kind in [MEMCPY, MEMSET] {
            let other = read(&record(kind, 7, 9, c"never read")).unwrap();
            assert_eq!(other, Activity { kernel: None, start_ns: 7, end_ns: 9 });
        }
    }

    #[test]
    fn other_kinds_and_missing_times_are_ignored() {
        assert_eq!(read(&record(3, 1, 2, c"`KERNEL`, not `CONCURRENT_KERNEL`")), None);
        assert_eq!(read(&record(KERNEL, 0, 0, c"unknown")), None);
        assert_eq!(read(&record(KERNEL, 9, 7, c"backwards")), None);
    }
}
