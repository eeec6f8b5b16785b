//! Compiles the Rust code in the documentation as doc tests. This package has the required
//! dependencies; the README is compiled as the documentation of `gpu-time`.

/// Turns the code blocks in each file into a module's doc tests.
macro_rules! doc_tests {
    ($($module:ident: $file:literal,)*) => {
        $(
            #[doc = include_str!(concat!("../../../docs/", $file))]
            #[cfg(doctest)]
            mod $module {}
        )*

        #[cfg(test)]
        const FILES: &[&str] = &[$($file),*];
    };
}

doc_tests! {
    comparing: "comparing.md",
    keys: "keys-and-variables.md",
    production: "production.md",
}

/// The files tested in the package `gpu-time-scenarios`, which has the features that they need.
#[cfg(test)]
const ELSEWHERE: &[&str] = &["spans.md"];

#[cfg(test)]
mod links;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{ELSEWHERE, FILES};

    #[test]
    fn every_file_with_rust_code_is_listed_and_compiled() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let mut listed = 0;
        for entry in fs::read_dir(docs).expect("the docs are readable") {
            let path = entry.expect("the docs are readable").path();
            if path.extension().is_none_or(|extension| extension != "md") {
                continue;
            }
            let text = fs::read_to_string(&path).expect("the docs are readable");
            let name = path.file_name().and_then(|name| name.to_str()).expect("names are UTF-8");
            let blocks: Vec<&str> = text
                .lines()
                .map(str::trim_start)
                .filter_map(|line| line.strip_prefix("```rust"))
                .collect();
            let is_listed = FILES.contains(&name) || ELSEWHERE.contains(&name);
            assert_eq!(is_listed, !blocks.is_empty(), "`{name}` in tests/workspace/src/lib.rs");
            assert!(
                !blocks.iter().any(|options| options.contains("ignore")),
                "`ignore` in `{name}`"
            );
            listed += usize::from(is_listed);
        }
        assert_eq!(listed, FILES.len() + ELSEWHERE.len());
        assert!(!include_str!("../../../README.md").contains("```rust,ignore"));
    }

    /// The README shows the function without its program, so it cannot be compiled as a doc test.
    #[test]
    fn readme_function_matches_example() {
        let readme = include_str!("../../../README.md");
        let shown = readme
            .split("```text\n#[gpu_timed]\n")
            .nth(1)
            .and_then(|rest| rest.split("```").next());
        let example = include_str!("../../../examples/kernels.rs");
        assert!(example.contains(shown.expect("the README shows a function")));
    }
}
