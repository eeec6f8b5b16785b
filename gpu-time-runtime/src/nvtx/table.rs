//! The tables that a tool fills with pointers to its functions when it attaches.
//!
//! The layout is defined by `nvtxTypes.h` of NVTX 3.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Acquire};

/// A pointer to a function of the tool, or null if the tool has not set it. Cast to the type of the
/// function before a call.
type FunctionSlot = AtomicPtr<c_void>;
/// The slots of one module, by the id of the function. Id 0 is not used, and the last entry is null.
type Table = [Option<&'static FunctionSlot>; MAX_IDS + 1];

/// The number of ids in the largest module.
const MAX_IDS: usize = 16;

/// `NVTX_CB_MODULE_CORE`.
const CORE: c_uint = 1;
/// `NVTX_CBID_CORE_RangePushA`.
const RANGE_PUSH_A: usize = 9;
/// `NVTX_CBID_CORE_RangePop`.
const RANGE_POP: usize = 11;
/// The number of ids in each module: `CORE`, `CUDA`, `OPENCL`, `CUDART`, `CORE2` and `SYNC`. A tool may
/// refuse to attach if one is missing.
const SIZES: [usize; 6] = [16, 9, 15, 7, 16, 7];

// The slots that the tool fills: `nvtxRangePushA`, `nvtxRangePop`, and all functions that the runtime never calls.
static PUSH: FunctionSlot = AtomicPtr::new(ptr::null_mut());
static POP: FunctionSlot = AtomicPtr::new(ptr::null_mut());
static UNUSED: FunctionSlot = AtomicPtr::new(ptr::null_mut());

static TABLES: [Table; SIZES.len()] = tables();

const fn tables() -> [Table; SIZES.len()] {
    let mut tables = [[None; MAX_IDS + 1]; SIZES.len()];
    let mut module = 0;
    while module < SIZES.len() {
        let mut id = 1;
        while id < SIZES[module] {
            tables[module][id] = Some(&UNUSED);
            id += 1;
        }
        module += 1;
    }
    tables[CORE as usize - 1][RANGE_PUSH_A] = Some(&PUSH);
    tables[CORE as usize - 1][RANGE_POP] = Some(&POP);
    tables
}

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    struct_size: usize,
    module_table:
        extern "C" fn(c_uint, *mut *const Option<&'static FunctionSlot>, *mut c_uint) -> c_int,
}

/// `NvtxExportTableVersionInfo`.
#[repr(C)]
struct VersionInfo {
    struct_size: usize,
    version: u32,
    reserved: u32,
    set_tool_version: extern "C" fn(u32),
}

/// `NVTX_ETID_CALLBACKS`.
const CALLBACKS_ID: u32 = 1;
/// `NVTX_ETID_VERSIONINFO`.
const VERSION_INFO_ID: u32 = 3;

static CALLBACKS: Callbacks = Callbacks { struct_size: size_of::<Callbacks>(), module_table };
static VERSION_INFO: VersionInfo = VersionInfo {
    struct_size: size_of::<VersionInfo>(),
    version: 3,
    reserved: 0,
    set_tool_version,
};

/// `nvtxGetExportTable`, which the tool calls to find all other tables.
pub(super) extern "C" fn export_table(id: u32) -> *const c_void {
    match id {
        CALLBACKS_ID => (&raw const CALLBACKS).cast(),
        VERSION_INFO_ID => (&raw const VERSION_INFO).cast(),
        _ => ptr::null(),
    }
}

/// `GetModuleFunctionTable`.
extern "C" fn module_table(
    module: c_uint,
    table: *mut *const Option<&'static FunctionSlot>,
    size: *mut c_uint,
) -> c_int {
    let index = (module as usize).wrapping_sub(1);
    let (Some(found), Some(ids)) = (TABLES.get(index), SIZES.get(index)) else { return 0 };
    // SAFETY: each pointer is null or points to a variable of the tool.
    unsafe {
        if let Some(table) = table.as_mut() {
            *table = found.as_ptr();
        }
        if let Some(size) = size.as_mut() {
            *size = *ids as c_uint;
        }
    }
    1
}

extern "C" fn set_tool_version(_: u32) {}

/// Returns `nvtxRangePushA`, if the tool provides it.
pub(super) fn push() -> Option<unsafe extern "C" fn(*const c_char) -> c_int> {
    // SAFETY: null, or the tool's function of this type. A null pointer is `None`.
    unsafe { mem::transmute(PUSH.load(Acquire)) }
}

/// Returns `nvtxRangePop`, if the tool provides it.
pub(super) fn pop() -> Option<unsafe extern "C" fn() -> c_int> {
    // SAFETY: null, or the tool's function of this type. A null pointer is `None`.
    unsafe { mem::transmute(POP.load(Acquire)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attaches as a tool does, and returns the table of a module with its size.
    fn attached(module: c_uint) -> Option<&'static [Option<&'static FunctionSlot>]> {
        let callbacks = export_table(CALLBACKS_ID).cast::<Callbacks>();
        let (mut table, mut size) = (ptr::null(), 0);
        // SAFETY: the id belongs to this struct, and the table is a static array that ends with a null.
        unsafe {
            let answer = ((*callbacks).module_table)(module, &raw mut table, &raw mut size);
            (answer == 1).then(|| std::slice::from_raw_parts(table, size as usize + 1))
        }
    }

    #[test]
    fn modules_have_slot_per_id_and_end_with_null() {
        for (module, ids) in (1..).zip(SIZES) {
            let table = attached(module).unwrap();
            assert_eq!(table.len(), ids + 1);
            assert!(table[0].is_none() && table[ids].is_none());
            assert!(table[1..ids].iter().all(Option::is_some));
        }
        for unknown in [0, 7, c_uint::MAX] {
            assert!(attached(unknown).is_none());
        }
    }

    #[test]
    fn ranges_have_slots_of_their_own() {
        let core = attached(CORE).unwrap();
        let is = |id: usize, slot: &FunctionSlot| ptr::eq(core[id].unwrap(), slot);
        assert!(is(RANGE_PUSH_A, &PUSH) && is(RANGE_POP, &POP));
        let others = (1..SIZES[0]).filter(|id| ![RANGE_PUSH_A, RANGE_POP].contains(id));
        assert!(others.into_iter().all(|id| is(id, &UNUSED)));
        assert!(push().is_none() && pop().is_none());
    }

    #[test]
    fn other_export_tables_are_known_or_null() {
        let info = export_table(VERSION_INFO_ID).cast::<VersionInfo>();
        // SAFETY: the id belongs to this struct.
        assert_eq!(unsafe { ((*info).struct_size, (*info).version) }, (24, 3));
        for id in [0, 2, 4] {
            assert!(export_table(id).is_null());
        }
    }
}
