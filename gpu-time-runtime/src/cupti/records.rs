//! The layouts of CUPTI's activity records.
//!
//! Later versions of a record only append fields, so the runtime reads the prefix that all versions
//! share. The offsets were checked against the headers of CUDA 11.8, 12.0, 12.4, 12.9, 13.0, 13.2 and
//! 13.5.

use std::ffi::{CStr, c_char};
use std::ptr;

use crate::types::activity::Activity;

// `CUpti_ActivityKind`.
pub(super) const MEMCPY: u32 = 1;
pub(super) const MEMSET: u32 = 2;
/// Kernels that CUPTI serializes. Never switched on by the runtime.
const KERNEL: u32 = 3;
pub(super) const CONCURRENT_KERNEL: u32 = 10;
/// Copies between contexts.
pub(super) const MEMCPY2: u32 = 22;

/// The work that a record describes.
#[derive(Debug, PartialEq)]
pub(super) enum RecordedWork<'a> {
    Kernel { name: &'a CStr, shape: Shape },
    Memory(&'static str),
}

/// The launch configuration of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub registers: u16,
    pub shared_bytes: u32,
}

/// Reads the record at the beginning of `bytes`, which extend to the end of the buffer, and converts its work. Returns
/// `None` if the record is truncated or of another kind.
///
/// # Safety
///
/// CUPTI must have written the record. Its name must be null or a string that stays valid as long as
/// `bytes`.
pub(super) unsafe fn read<'a, W>(
    bytes: &'a [u8],
    convert: impl FnOnce(RecordedWork<'a>) -> W,
) -> Option<Activity<W>> {
    // The offset of the device, which the context and the stream follow, and that of the correlation id.
    let (device, correlation, work) = match u32_at(bytes, 0)? {
        // SAFETY: guaranteed by the caller.
        KERNEL | CONCURRENT_KERNEL => (40, 92, unsafe { kernel(bytes) }?),
        MEMCPY => (32, 44, RecordedWork::Memory(copy_name(*bytes.get(4)?))),
        MEMSET => (32, 44, RecordedWork::Memory("[memset]")),
        MEMCPY2 => (32, 60, RecordedWork::Memory("[copy PtoP]")),
        _ => return None,
    };
    let [device, context, stream] = u32s_at(bytes, device)?;
    Some(Activity {
        start_ns: u64_at(bytes, 16)?,
        end_ns: u64_at(bytes, 24)?,
        correlation: u32_at(bytes, correlation)?,
        device,
        context,
        stream,
        work: convert(work),
    })
}

/// Reads what `CUpti_ActivityKernel8` of CUDA 11.8 and all later versions share.
///
/// # Safety
///
/// The name must be null or a string that stays valid for `'a`.
unsafe fn kernel<'a>(bytes: &[u8]) -> Option<RecordedWork<'a>> {
    let name = ptr::with_exposed_provenance::<c_char>(u64_at(bytes, 104)? as usize);
    let name = if name.is_null() {
        c"<unnamed>"
    } else {
        // SAFETY: guaranteed by the caller.
        unsafe { CStr::from_ptr(name) }
    };
    let [static_shared, dynamic_shared] = [u32_at(bytes, 76)?, u32_at(bytes, 80)?];
    let shape = Shape {
        grid: u32s_at(bytes, 52)?,
        block: u32s_at(bytes, 64)?,
        registers: u16::from_ne_bytes(at(bytes, 6)?),
        shared_bytes: static_shared.saturating_add(dynamic_shared),
    };
    Some(RecordedWork::Kernel { name, shape })
}

/// Returns the bytes at an offset, or `None` if the record is truncated.
fn at<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..)?.first_chunk().copied()
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    at(bytes, offset).map(u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    at(bytes, offset).map(u64::from_ne_bytes)
}

fn u32s_at(bytes: &[u8], offset: usize) -> Option<[u32; 3]> {
    Some([u32_at(bytes, offset)?, u32_at(bytes, offset + 4)?, u32_at(bytes, offset + 8)?])
}

/// Returns the description of a `CUpti_ActivityMemcpyKind`.
fn copy_name(kind: u8) -> &'static str {
    const NAMES: [&str; 11] = [
        "[copy]",
        "[copy HtoD]",
        "[copy DtoH]",
        "[copy HtoA]",
        "[copy AtoH]",
        "[copy AtoA]",
        "[copy AtoD]",
        "[copy DtoA]",
        "[copy DtoD]",
        "[copy HtoH]",
        "[copy PtoP]",
    ];
    NAMES.get(usize::from(kind)).copied().unwrap_or("[copy]")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes of a kernel record in CUDA 11.8, 12, 13.0, 13.2 and 13.5.
    const KERNEL_SIZES: [usize; 5] = [200, 208, 216, 224, 248];

    /// A record of zeros with these values at these offsets.
    fn record(size: usize, kind: u32, values: &[(usize, u64, usize)]) -> Vec<u8> {
        let mut bytes = vec![0; size];
        bytes[..4].copy_from_slice(&kind.to_ne_bytes());
        for &(at, value, width) in values {
            bytes[at..at + width].copy_from_slice(&value.to_ne_bytes()[..width]);
        }
        bytes
    }

    fn parsed(bytes: &[u8]) -> Option<Activity<RecordedWork<'_>>> {
        // SAFETY: the tests write null or static names.
        unsafe { read(bytes, |work| work) }
    }

    #[test]
    fn kernel_is_read_in_every_version() {
        let name = c"_Z6kernelv".as_ptr().expose_provenance() as u64;
        let values = [
            (6, 32, 2),
            (16, 1_000, 8),
            (24, 2_500, 8),
            (40, 1, 4),
            (44, 2, 4),
            (48, 7, 4),
            (52, 10, 4),
            (56, 11, 4),
            (60, 12, 4),
            (64, 13, 4),
            (68, 14, 4),
            (72, 15, 4),
            (76, 100, 4),
            (80, 1_024, 4),
            (92, 99, 4),
            (104, name, 8),
        ];
        let expected = Activity {
            start_ns: 1_000,
            end_ns: 2_500,
            correlation: 99,
            device: 1,
            context: 2,
            stream: 7,
            work: RecordedWork::Kernel {
                name: c"_Z6kernelv",
                shape: Shape {
                    grid: [10, 11, 12],
                    block: [13, 14, 15],
                    registers: 32,
                    shared_bytes: 1_124,
                },
            },
        };
        for size in KERNEL_SIZES {
            for kind in [KERNEL, CONCURRENT_KERNEL] {
                assert_eq!(parsed(&record(size, kind, &values)).as_ref(), Some(&expected));
            }
        }
    }

    #[test]
    fn copies_and_memsets_are_read() {
        let common = [(16, 1, 8), (24, 2, 8), (32, 3, 4), (36, 4, 4), (40, 5, 4)];
        let of = |kind, more: &[(usize, u64, usize)]| record(88, kind, &[&common, more].concat());
        let expected = |name| Activity {
            start_ns: 1,
            end_ns: 2,
            correlation: 6,
            device: 3,
            context: 4,
            stream: 5,
            work: RecordedWork::Memory(name),
        };
        for (kind, name) in [(1, "[copy HtoD]"), (2, "[copy DtoH]"), (8, "[copy DtoD]")] {
            let copy = of(MEMCPY, &[(4, kind, 1), (44, 6, 4)]);
            assert_eq!(parsed(&copy), Some(expected(name)));
        }
        let unknown = of(MEMCPY, &[(4, 99, 1), (44, 6, 4)]);
        assert_eq!(parsed(&unknown), Some(expected("[copy]")));
        let memset = of(MEMSET, &[(4, 0xff, 4), (44, 6, 4)]);
        assert_eq!(parsed(&memset), Some(expected("[memset]")));
        let peer = of(MEMCPY2, &[(60, 6, 4)]);
        assert_eq!(parsed(&peer), Some(expected("[copy PtoP]")));
    }

    #[test]
    fn cut_off_and_unknown_records_are_skipped() {
        let kernel = record(200, CONCURRENT_KERNEL, &[]);
        assert!(
            matches!(parsed(&kernel).unwrap().work, RecordedWork::Kernel { name, .. } if name == c"<unnamed>")
        );
        assert_eq!(parsed(&kernel[..111]), None);
        assert_eq!(parsed(&record(88, MEMSET, &[])[..47]), None);
        assert_eq!(parsed(&record(200, 4, &[])), None);
        assert_eq!(parsed(&[1, 0, 0]), None);
    }
}
