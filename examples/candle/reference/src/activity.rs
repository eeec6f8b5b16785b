//! CUPTI's records of kernels, copies and memsets.

use std::ffi::{CStr, c_char};
use std::mem::offset_of;

/// `CUPTI_ACTIVITY_KIND_MEMCPY`, `_MEMSET` and `_CONCURRENT_KERNEL`.
pub const KINDS: [u32; 3] = [MEMCPY, MEMSET, KERNEL];
const MEMCPY: u32 = 1;
const MEMSET: u32 = 2;
const KERNEL: u32 = 10;

/// The prefix that the records of all three kinds share in CUPTI 11 to 13.
#[repr(C)]
struct Prefix {
    kind: u32,
    /// The direction of a copy.
    copy_kind: u8,
    differs: u8,
    /// The registers of each thread of a kernel.
    registers: u16,
    also_differs: [u8; 8],
    start_ns: u64,
    end_ns: u64,
}

/// The prefix of the records of kernels.
#[repr(C)]
struct KernelPrefix {
    prefix: Prefix,
    completed: u64,
    device: u32,
    context: u32,
    stream: u32,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: [u32; 2],
    local_bytes: [u32; 2],
    correlation: u32,
    grid_id: u64,
    name: *const c_char,
}

// As in `cupti_activity.h`.
const _: () = {
    assert!(offset_of!(Prefix, copy_kind) == 4);
    assert!(offset_of!(Prefix, registers) == 6);
    assert!(offset_of!(Prefix, start_ns) == 16);
    assert!(offset_of!(Prefix, end_ns) == 24);
    assert!(offset_of!(KernelPrefix, grid) == 52);
    assert!(offset_of!(KernelPrefix, block) == 64);
    assert!(offset_of!(KernelPrefix, shared_bytes) == 76);
    assert!(offset_of!(KernelPrefix, name) == 104);
};

/// A kernel with its launch configuration, or a kind of copy or memset.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Work {
    /// The kernel's name as CUPTI returns it, or a description such as `[copy HtoD]`.
    pub name: String,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub registers: u16,
    /// Static and dynamic shared memory of a block.
    pub shared_bytes: u32,
}

/// One kernel, copy or memset. A time that CUPTI could not determine is 0.
#[derive(Debug, PartialEq, Eq)]
pub struct Activity {
    pub work: Work,
    pub start_ns: u64,
    pub end_ns: u64,
}

impl Activity {
    /// Reads a record. Returns `None` if its kind is not in [`KINDS`].
    ///
    /// # Safety
    /// `record` must point to a CUPTI record, aligned to 8 bytes.
    pub unsafe fn read(record: *const u8) -> Option<Activity> {
        // SAFETY: every record starts with its kind.
        let kind = unsafe { record.cast::<u32>().read() };
        if !KINDS.contains(&kind) {
            return None;
        }
        // SAFETY: records of these kinds start with `Prefix`.
        let Prefix { copy_kind, start_ns, end_ns, .. } = unsafe { record.cast::<Prefix>().read() };
        let work = match kind {
            // SAFETY: this is the record of a kernel.
            KERNEL => unsafe { kernel(record) },
            MEMSET => Work::without_grid("[memset]"),
            _ => Work::without_grid(copy(copy_kind)),
        };
        Some(Activity { work, start_ns, end_ns })
    }
}

impl Work {
    /// Returns a copy or a memset.
    pub fn without_grid(name: &str) -> Work {
        Work { name: name.into(), grid: [0; 3], block: [0; 3], registers: 0, shared_bytes: 0 }
    }
}

/// # Safety
/// `record` must point to CUPTI's record of a kernel, aligned to 8 bytes.
unsafe fn kernel(record: *const u8) -> Work {
    // SAFETY: records of kernels start with `KernelPrefix`.
    let KernelPrefix { prefix, grid, block, shared_bytes: [fixed, dynamic], name, .. } =
        unsafe { record.cast::<KernelPrefix>().read() };
    let name = match name.is_null() {
        true => String::new(),
        // SAFETY: the name is NUL-terminated and lives as long as its module.
        false => unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned(),
    };
    let Prefix { registers, .. } = prefix;
    Work { name, grid, block, registers, shared_bytes: fixed + dynamic }
}

/// Returns the name of a `CUpti_ActivityMemcpyKind`.
fn copy(kind: u8) -> &'static str {
    match kind {
        1 => "[copy HtoD]",
        2 => "[copy DtoH]",
        3 => "[copy HtoA]",
        4 => "[copy AtoH]",
        5 => "[copy AtoA]",
        6 => "[copy AtoD]",
        7 => "[copy DtoA]",
        8 => "[copy DtoD]",
        9 => "[copy HtoH]",
        10 => "[copy PtoP]",
        _ => "[copy]",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a record of 216 bytes, the size of `CUpti_ActivityKernel10`.
    fn record(kind: u32, name: &CStr) -> [u64; 27] {
        let mut words = [0xABAB_ABAB_ABAB_ABAB; 27];
        // Registers, two bytes that are not read, and the kind of a copy.
        words[0] = 40 << 48 | 0xAB01 << 32 | u64::from(kind);
        words[2] = 1_000;
        words[3] = 1_545;
        // The grid starts in the middle of a word: x, then y and z.
        words[6] = 132 << 32;
        words[7] = 1 << 32 | 2;
        words[8] = 8 << 32 | 32;
        // The block's z, then the shared memory.
        words[9] = 1_024 << 32 | 1;
        words[10] = 0xABAB_ABAB_0000_1000;
        words[13] = name.as_ptr() as u64;
        words
    }

    fn read(words: &[u64; 27]) -> Option<Activity> {
        // SAFETY: the words have the layout of a CUPTI record.
        unsafe { Activity::read(words.as_ptr().cast()) }
    }

    #[test]
    fn a_kernel_has_a_name_and_a_grid() {
        let work = Work {
            name: "empty".into(),
            grid: [132, 2, 1],
            block: [32, 8, 1],
            registers: 40,
            shared_bytes: 5_120,
        };
        let expected = Activity { work, start_ns: 1_000, end_ns: 1_545 };
        assert_eq!(read(&record(KERNEL, c"empty")), Some(expected));
    }

    #[test]
    fn copies_and_memsets_are_named_by_their_kind() {
        for (kind, name) in [(MEMCPY, "[copy HtoD]"), (MEMSET, "[memset]")] {
            let activity = read(&record(kind, c"never read")).unwrap();
            assert_eq!(activity.work, Work::without_grid(name));
            assert_eq!((activity.start_ns, activity.end_ns), (1_000, 1_545));
        }
    }

    #[test]
    fn other_kinds_are_ignored() {
        assert_eq!(read(&record(3, c"`KERNEL`, which serialises")), None);
    }
}
