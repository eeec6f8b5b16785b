//! Readable names of kernels.

use std::fmt::{self, Write as _};

use cpp_demangle::{DemangleOptions, Symbol};

/// The maximum length of a demangled name. A short symbol can expand to a very long name.
const LONGEST: usize = 8 * 1024;

/// Returns the name of a kernel as in its source, or the symbol itself if it is not mangled or the
/// name is too long.
pub(super) fn demangled(symbol: &[u8]) -> String {
    let plain = String::from_utf8_lossy(symbol);
    // Try Rust first. Its legacy mangling starts with `_Z` too, but does not match C++ functions,
    // whose symbols end with their parameters.
    if let Ok(rust) = rustc_demangle::try_demangle(&plain)
        && let Some(name) = bounded(|to| write!(to, "{rust:#}"))
    {
        return name;
    }
    let is_cpp = symbol.starts_with(b"_Z");
    let cpp = Symbol::new(symbol).ok().filter(|_| is_cpp);
    let name = cpp.and_then(|symbol| {
        let options = DemangleOptions::default();
        bounded(|to| symbol.structured_demangle(to, &options))
    });
    name.unwrap_or_else(|| plain.into_owned())
}

/// Returns the text that `write` produces, or `None` if it fails or the text is longer than
/// [`LONGEST`].
fn bounded(write: impl FnOnce(&mut BoundedText) -> fmt::Result) -> Option<String> {
    let mut name = BoundedText(String::new());
    write(&mut name).ok()?;
    Some(name.0)
}

/// Text of at most [`LONGEST`] bytes.
struct BoundedText(String);

impl fmt::Write for BoundedText {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.0.len() + part.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mangled_names_are_demangled() {
        for (symbol, name) in [
            ("_Z6vecAddPKfS0_Pfi", "vecAdd(float const*, float const*, float*, int)"),
            ("_Z4axpyIfEvPT_i", "void axpy<float>(float*, int)"),
            ("_ZN3foo3barEv", "foo::bar()"),
            ("_ZN7kernels4spin17h0123456789abcdefE", "kernels::spin"),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("saxpy", "saxpy"),
            ("i", "i"),
            ("_Z", "_Z"),
            ("_Z9short", "_Z9short"),
        ] {
            assert_eq!(demangled(symbol.as_bytes()), name, "{symbol}");
        }
    }

    #[test]
    fn different_template_arguments_stay_different() {
        let names = ["_Z4axpyIfEvPT_i", "_Z4axpyIdEvPT_i"].map(|name| demangled(name.as_bytes()));
        assert_ne!(names[0], names[1]);
    }

    #[test]
    fn name_that_is_not_text_is_kept() {
        assert_eq!(demangled(b"a\xffb"), "a\u{fffd}b");
    }

    #[test]
    fn huge_name_stays_mangled() {
        // `f(a<int, int>, …)`, where each parameter is a template with the previous parameter as
        // both arguments.
        let symbol = |parameters: &str| {
            let nested = parameters.chars().map(|id| format!("S_IS{id}_S{id}_E"));
            format!("_Z1f1aIiiE{}", nested.collect::<String>())
        };
        let (short, long) = (symbol("0"), symbol("0123456789ABC"));
        let name = "f(a<int, int>, a<a<int, int>, a<int, int> >)";
        assert_eq!(demangled(short.as_bytes()), name);
        assert_eq!(demangled(long.as_bytes()), long);
    }
}
