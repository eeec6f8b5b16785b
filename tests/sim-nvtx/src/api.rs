//! The tool's side of NVTX's injection protocol.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::process;
use std::ptr;
use std::sync::OnceLock;

use crate::VARIABLE;

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    struct_size: usize,
    module_table: unsafe extern "C" fn(c_uint, *mut *mut *mut *const c_void, *mut c_uint) -> c_int,
}

/// `NvtxExportTableVersionInfo`.
#[repr(C)]
struct VersionInfo {
    struct_size: usize,
    version: u32,
    reserved: u32,
    set_tool_version: unsafe extern "C" fn(u32),
}

const CALLBACKS: u32 = 1;
const VERSION_INFO: u32 = 3;
/// The ids of the NVTX modules, and the size of the function table in each.
const MODULES: [(c_uint, c_uint); 6] = [(1, 16), (2, 9), (3, 15), (4, 7), (5, 16), (6, 7)];
const CORE: c_uint = 1;
const RANGE_PUSH_A: usize = 9;
const RANGE_POP: usize = 11;

static LOG: OnceLock<File> = OnceLock::new();

thread_local! {
    static DEPTH: Cell<i32> = const { Cell::new(0) };
}

/// Attaches to a program. Returns 0 to refuse.
///
/// # Safety
///
/// `export_table` must return tables as NVTX 3 defines them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(
    export_table: unsafe extern "C" fn(u32) -> *const c_void,
) -> c_int {
    let Some(path) = std::env::var_os(VARIABLE) else { return 0 };
    let file = OpenOptions::new().create(true).append(true).open(path);
    if LOG.set(file.expect("the folder exists")).is_err() {
        fail("attached twice");
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        let info = export_table(VERSION_INFO).cast::<VersionInfo>();
        if (*info).struct_size != size_of::<VersionInfo>() || (*info).version != 3 {
            fail("another version");
        }
        ((*info).set_tool_version)(3);
        let callbacks = export_table(CALLBACKS).cast::<Callbacks>();
        if (*callbacks).struct_size != size_of::<Callbacks>() {
            fail("another table of callbacks");
        }
        for (module, ids) in MODULES {
            let (mut table, mut size) = (ptr::null_mut(), 0);
            let answer = ((*callbacks).module_table)(module, &raw mut table, &raw mut size);
            if answer != 1 || size != ids {
                fail("another size of a module");
            }
            for id in 1..ids as usize {
                let function: *const c_void = match (module, id) {
                    (CORE, RANGE_PUSH_A) => push as *const c_void,
                    (CORE, RANGE_POP) => pop as *const c_void,
                    _ => unexpected as *const c_void,
                };
                **table.add(id) = function;
            }
        }
    }
    1
}

/// `nvtxRangePushA`. Returns the depth of the new range.
unsafe extern "C" fn push(name: *const c_char) -> c_int {
    // SAFETY: the program passes a NUL-terminated string.
    let name = unsafe { CStr::from_ptr(name) };
    log(&format!("push {}", name.to_string_lossy()));
    DEPTH.replace(DEPTH.get() + 1)
}

/// `nvtxRangePop`. Returns the depth of the range that ends, or a negative value if there is none.
extern "C" fn pop() -> c_int {
    let depth = DEPTH.get() - 1;
    DEPTH.set(depth.max(0));
    log(&format!("pop {depth}"));
    depth
}

extern "C" fn unexpected() {
    fail("called something else than a range");
}

fn log(event: &str) {
    // SAFETY: the call has no preconditions.
    let thread = unsafe { libc::gettid() };
    let line = format!("{} {thread} {event}\n", process::id());
    // A single write, so that lines of different threads do not interleave.
    let mut file = LOG.get().expect("it has attached");
    file.write_all(line.as_bytes()).expect("the file is writable");
}

fn fail(why: &str) -> ! {
    eprintln!("stand-in for an NVTX tool: {why}");
    process::abort()
}
