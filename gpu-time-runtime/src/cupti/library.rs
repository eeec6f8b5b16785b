//! Loads the CUPTI library and looks up its functions.

use std::error::Error;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::iter;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::ptr;

use libloading::os::unix::{Library as Loaded, RTLD_LAZY};

use crate::base::{console, environment};
use crate::cuda;
use crate::cupti::locate::{NAMES, Search, VARIABLE};
use crate::cupti::version;

/// `CUpti_SubscriberHandle`.
pub(super) type Subscriber = *mut c_void;
/// `CUpti_CallbackFunc`.
pub(super) type ApiCallback = unsafe extern "C" fn(*mut c_void, c_int, u32, *const CallbackData);
/// `CUpti_BuffersCallbackRequestFunc`.
pub(super) type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
/// `CUpti_BuffersCallbackCompleteFunc`.
pub(super) type Complete = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
/// `CUpti_BuffersCallbackRequestFunc_v2`.
pub(super) type RequestV2 = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize, *mut c_void);
/// `CUpti_BuffersCallbackCompleteFunc_v2`.
pub(super) type CompleteV2 = unsafe extern "C" fn(*mut u8, usize, usize, *mut c_void);

/// `CUPTI_CB_DOMAIN_DRIVER_API`. Sufficient, because the CUDA runtime and libraries launch through
/// the driver API.
pub(super) const DRIVER_API: c_int = 1;

/// `CUpti_CallbackData`, the same from CUDA 11.8 to 13.5.
#[repr(C)]
pub(super) struct CallbackData {
    pub site: c_int,
    pub function_name: *const c_char,
    /// The arguments of the call, as a struct.
    pub params: *const u8,
    pub return_value: *mut c_void,
    pub symbol_name: *const c_char,
    pub context: *mut c_void,
    pub context_uid: u32,
    pub correlation_data: *mut u64,
    pub correlation: u32,
}

const _: () = {
    assert!(offset_of!(CallbackData, params) == 16);
    assert!(offset_of!(CallbackData, context) == 40);
    assert!(offset_of!(CallbackData, correlation) == 64);
    assert!(size_of::<CallbackData>() == 72);
};

/// `CUpti_SubscriberParams`.
#[repr(C)]
pub(super) struct SubscriberParams {
    pub struct_size: usize,
    pub name: *const c_char,
    pub holder: *mut c_char,
    pub holder_size: usize,
    pub allow_several: u8,
    pub padding: [u8; 7],
}

/// Declares a table of functions, each with its symbol and its parameters.
macro_rules! functions {
    ($(#[$doc:meta])* $table:ident { $($field:ident = $symbol:literal: fn($($parameter:ty),* $(,)?);)* }) => {
        $(#[$doc])*
        pub(super) struct $table {
            $(pub $field: unsafe extern "C" fn($($parameter),*) -> c_int,)*
        }

        impl $table {
            /// Looks all functions up, or returns the name of one that the library lacks.
            fn find(loaded: &Loaded) -> Result<$table, &'static str> {
                // SAFETY: in every version that has them, these functions have these signatures.
                unsafe { Ok($table { $($field: symbol(loaded, $symbol).ok_or($symbol)?,)* }) }
            }
        }
    };
}

functions! {
    /// The functions of all accepted versions.
    Functions {
        subscribe = "cuptiSubscribe": fn(*mut Subscriber, ApiCallback, *mut c_void);
        unsubscribe = "cuptiUnsubscribe": fn(Subscriber);
        enable_callback = "cuptiEnableCallback": fn(u32, Subscriber, c_int, u32);
        enable = "cuptiActivityEnable": fn(c_int);
        disable = "cuptiActivityDisable": fn(c_int);
        register = "cuptiActivityRegisterCallbacks": fn(Request, Complete);
        flush = "cuptiActivityFlushAll": fn(u32);
        next_record = "cuptiActivityGetNextRecord": fn(*mut u8, usize, *mut *mut u8);
        dropped = "cuptiActivityGetNumDroppedRecords": fn(*mut c_void, u32, *mut usize);
        timestamp = "cuptiGetTimestamp": fn(*mut u64);
        result_string = "cuptiGetResultString": fn(c_int, *mut *const c_char);
    }
}

functions! {
    /// The functions of versions that allow several subscribers.
    Shared {
        subscribe = "cuptiSubscribe_v2":
            fn(*mut Subscriber, ApiCallback, *mut c_void, *mut SubscriberParams);
        enable = "cuptiActivityEnable_v2": fn(Subscriber, c_int, *mut c_void);
        disable = "cuptiActivityDisable_v2": fn(Subscriber, c_int, *mut c_void);
        register = "cuptiActivityRegisterCallbacks_v2": fn(Subscriber, RequestV2, CompleteV2);
        next_record = "cuptiActivityGetNextRecord_v2":
            fn(Subscriber, *mut u8, usize, *mut *mut u8);
        dropped = "cuptiActivityGetNumDroppedRecords_v2":
            fn(Subscriber, *mut c_void, u32, *mut usize);
    }
}

/// The loaded library.
pub(super) struct Library {
    pub version: u32,
    pub functions: Functions,
    /// `None` if this version allows only one subscriber.
    pub shared: Option<Shared>,
}

impl Library {
    /// Returns CUPTI's name for an error.
    pub fn name_of(&self, code: c_int) -> String {
        let mut name = ptr::null();
        // SAFETY: writes one pointer, which on success points to a static string.
        unsafe {
            if (self.functions.result_string)(code, &raw mut name) == 0 && !name.is_null() {
                return CStr::from_ptr(name).to_string_lossy().into_owned();
            }
        }
        format!("error {code}")
    }
}

/// Loads the library to use, or returns the reason why there is none.
///
/// That is the first usable library, in order of preference, for which `works` returns `true`, or the
/// first one of all if there is none. A library that the process has loaded or the user has named is used
/// as it is.
pub(super) fn load(
    works: impl FnMut(&'static Library) -> bool,
) -> Result<&'static Library, String> {
    // Without a driver, CUPTI of CUDA 13.2 calls itself until the stack overflows.
    if let Some(why) = cuda::why_unusable() {
        return Err(why.to_owned());
    }
    let driver = cuda::driver_version().ok_or("the CUDA driver does not report its version")?;
    // Prefer a copy that is already loaded: another copy would not see the subscription of the tool
    // that loaded this one.
    if let Some((name, loaded)) = NAMES.iter().find_map(|name| Some((name, resident(name)?))) {
        return examine(loaded, &format!("`{name}`, which the process has loaded,"));
    }
    let var = |name: &str| environment::var(name).filter(|value| !environment::is_blank(value));
    let search = Search { var: &var, root: Path::new("/") };
    let mut refused = None;
    if let Some(named) = search.named() {
        let library = usable(named, &mut refused).next();
        match library {
            Some(library) => return Ok(library),
            None => console::complain(complaint(&var(VARIABLE), refused.take())),
        }
    }
    let by_name = NAMES.iter().map(PathBuf::from);
    let paths = by_name.chain(iter::once_with(|| search.installed()).flatten());
    let chosen = choose(usable(paths, &mut refused), &driver, works);
    chosen.ok_or_else(|| refused.unwrap_or_else(|| NOT_FOUND.to_owned()))
}

/// Returns the first library that works, or the first one of all if there is none. Those that are too new
/// for the driver are tried after all others.
fn choose(
    mut libraries: impl Iterator<Item = &'static Library>,
    driver: &str,
    mut works: impl FnMut(&'static Library) -> bool,
) -> Option<&'static Library> {
    let (mut first, mut too_new) = (None, Vec::new());
    let mut try_out = |library| {
        first.get_or_insert(library);
        works(library)
    };
    let fitting = libraries.find(|library| {
        let is_too_new = version::is_too_new(library.version, driver);
        too_new.extend(is_too_new.then_some(*library));
        !is_too_new && try_out(library)
    });
    fitting.or_else(|| too_new.into_iter().find(|library| try_out(library))).or(first)
}

const NOT_FOUND: &str = "no libcupti was found: install the CUDA toolkit or the PyPI package \
                         `nvidia-cuda-cupti`, or set `GPU_TIME_CUPTI` to its path";

fn complaint(value: &Option<std::ffi::OsString>, refused: Option<String>) -> String {
    let value = value.clone().unwrap_or_default();
    let reason = refused.unwrap_or_else(|| "there is none".to_owned());
    format!(
        "invalid value `{}` for `{VARIABLE}`: expected a libcupti or its folder: {reason}",
        value.to_string_lossy().escape_debug()
    )
}

/// Loads the usable libraries, one after the other. If `refused` is empty, stores the reason why the
/// first unusable one was refused.
fn usable(
    paths: impl IntoIterator<Item = PathBuf>,
    refused: &mut Option<String>,
) -> impl Iterator<Item = &'static Library> {
    paths.into_iter().filter_map(|path| {
        let is_bare = path.components().count() == 1;
        // SAFETY: the initializers of CUPTI have no effect that the program can observe.
        let examined = match unsafe { Loaded::open(Some(&path), RTLD_LAZY) } {
            Ok(loaded) => examine(loaded, &format!("`{}`", path.display())),
            // The loader has not found it on its path.
            Err(_) if is_bare => return None,
            Err(error) => {
                // The loader's message, which is not part of the error's own message.
                let cause = error.source().unwrap_or(&error);
                Err(format!("`{}` cannot be loaded: {cause}", path.display()))
            }
        };
        examined.map_err(|why| _ = refused.get_or_insert(why)).ok()
    })
}

/// Returns a library if the process has already loaded it.
fn resident(name: &str) -> Option<Loaded> {
    // SAFETY: with `RTLD_NOLOAD`, nothing is loaded, so no code of the library runs.
    unsafe { Loaded::open(Some(name), RTLD_LAZY | libc::RTLD_NOLOAD) }.ok()
}

/// Checks the version of a library and looks up its functions. `what` names the library in messages.
fn examine(loaded: Loaded, what: &str) -> Result<&'static Library, String> {
    // Never unloaded: exit handlers and callbacks use it.
    let loaded: &'static Loaded = Box::leak(Box::new(loaded));
    let missing = |name| format!("{what} has no `{name}`: expected CUPTI of CUDA 11.8 to 13.x");
    // SAFETY: every version has a function of this type.
    let get_version: Option<unsafe extern "C" fn(*mut u32) -> c_int> =
        unsafe { symbol(loaded, "cuptiGetVersion") };
    let get_version = get_version.ok_or_else(|| missing("cuptiGetVersion"))?;
    let mut version = 0;
    // SAFETY: writes one number.
    let code = unsafe { get_version(&raw mut version) };
    if code != 0 {
        return Err(format!("{what} does not report its version: error {code}"));
    }
    if let Some(why) = version::why_refused(version) {
        return Err(format!("{what} has {why}"));
    }
    let functions = Functions::find(loaded).map_err(missing)?;
    let shared = version::can_share(version).then(|| Shared::find(loaded).ok()).flatten();
    Ok(Box::leak(Box::new(Library { version, functions, shared })))
}

/// Returns a function, or `None` if the library lacks it.
///
/// # Safety
///
/// `F` must match the function's type in every version that has it.
unsafe fn symbol<F: Copy>(loaded: &Loaded, name: &str) -> Option<F> {
    // SAFETY: guaranteed by the caller.
    unsafe { loaded.get::<F>(name) }.ok().map(|symbol| *symbol)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cupti::session::fake;

    /// Returns the chosen version, and those that were tried. The versions in `working` work.
    fn chosen(versions: &[u32], driver: &str, working: &[u32]) -> (Option<u32>, Vec<u32>) {
        let libraries = versions.iter().map(|version| fake::session_of(*version).library);
        let mut tried = Vec::new();
        let library = choose(libraries, driver, |library| {
            tried.push(library.version);
            working.contains(&library.version)
        });
        (library.map(|library| library.version), tried)
    }

    #[test]
    fn libraries_that_are_too_new_are_tried_last() {
        let versions = [130_200, 130_000, 28, 22, 18];
        for (driver, tried) in [
            ("13.0", [130_200, 130_000, 28, 22, 18]),
            ("12.2", [28, 22, 18, 130_200, 130_000]),
            ("11.4", [18, 130_200, 130_000, 28, 22]),
        ] {
            assert_eq!(
                chosen(&versions, driver, &[]),
                (Some(tried[0]), tried.to_vec()),
                "{driver}"
            );
            assert_eq!(chosen(&versions, driver, &[tried[2]]), (Some(tried[2]), tried[..3].into()));
        }
        assert_eq!(chosen(&[], "13.0", &[]), (None, vec![]));
    }
}
